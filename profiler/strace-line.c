// SPDX-License-Identifier: GPL-2.0-or-later
/* strace's lines. What they may hold was read off its output (versions 4.26 to 6.x); every byte of
 * them is untrusted. */
#include "profiler/strace-line.h"

#include <string.h>

#define UNFINISHED " <unfinished ...>"

static gboolean
begins(const char *p, const char *end, const char *text)
{
        gsize n = strlen(text);

        return (gsize)(end - p) >= n && memcmp(p, text, n) == 0;
}

static const char *
skip_blanks(const char *p, const char *end)
{
        while (p < end && *p == ' ')
                p++;
        return p;
}

/* Digits; NULL when there are none, or too many for a number. */
static const char *
take_digits(const char *p, const char *end, guint64 *ret)
{
        const char *begin = p;
        guint64 value = 0;

        while (p < end && g_ascii_isdigit(*p)) {
                if (p - begin > 17)
                        return NULL;
                value = value * 10 + (guint64)(*p++ - '0');
        }
        *ret = value;
        return p > begin ? p : NULL;
}

/* A fraction of a second, up to nine digits, in ns; p behind the point. */
static const char *
take_fraction(const char *p, const char *end, guint64 *ret_ns)
{
        const char *begin = p;
        guint64 scale = 100000000, ns = 0;

        while (p < end && g_ascii_isdigit(*p)) {
                ns += (guint64)(*p++ - '0') * scale;
                scale /= 10;
        }
        *ret_ns = ns;
        return p > begin ? p : NULL;
}

/* "<comm>" behind a pid of -Y; nothing there is fine. NULL when it does not end. */
static const char *
take_comm(const char *p, const char *end, StraceLine *ret)
{
        const char *stop;

        if (p >= end || *p != '<')
                return p;
        stop = memchr(p, '>', (gsize)(end - p));
        if (!stop)
                return NULL;
        ret->comm = (Slice){p + 1, (gsize)(stop - p - 1)};
        return stop + 1;
}

/* One "1234", "12:34:56[.789]" or "12.345" and the blanks behind it; a pid or a time. NULL = none.
 */
static const char *
take_stamp(const char *p, const char *end, StraceLine *ret)
{
        guint64 value, minutes, seconds, ns = 0;
        const char *next = take_digits(p, end, &value);

        if (!next || next >= end)
                return NULL;
        if (*next == ':') {
                next = take_digits(next + 1, end, &minutes);
                if (!next || next >= end || *next != ':' ||
                    !(next = take_digits(next + 1, end, &seconds)))
                        return NULL;
                if (value > 24 || minutes > 60 || seconds > 61)
                        return NULL;
                if (next < end && *next == '.' && !(next = take_fraction(next + 1, end, &ns)))
                        return NULL;
                ret->time_kind = STRACE_TIME_OF_DAY;
                ret->time_ns = ((value * 60 + minutes) * 60 + seconds) * 1000000000 + ns;
        } else if (*next == '.') {
                next = take_fraction(next + 1, end, &ns);
                if (!next || value > 9000000000)
                        return NULL;
                ret->time_kind = value >= 100000000 ? STRACE_TIME_EPOCH : STRACE_TIME_DELTA;
                ret->time_ns = value * 1000000000 + ns;
        } else if (value > STRACE_PID_MAX) {
                if (value > 9000000000)
                        return NULL;
                ret->time_kind = STRACE_TIME_EPOCH;
                ret->time_ns = value * 1000000000;
        } else {
                if (ret->pid >= 0 || ret->time_kind != STRACE_NO_TIME)
                        return NULL;
                ret->pid = (gint64)value;
                next = take_comm(next, end, ret);
                if (!next)
                        return NULL;
        }
        if (next >= end || *next != ' ')
                return NULL;
        return skip_blanks(next, end);
}

/* "[pid 123] ", "[pid 123<comm>] ": the pid. */
static const char *
take_bracketed_pid(const char *p, const char *end, StraceLine *ret)
{
        guint64 value;
        const char *next = take_digits(skip_blanks(p + 5, end), end, &value);

        if (!next || value > STRACE_PID_MAX)
                return NULL;
        ret->pid = (gint64)value;
        next = take_comm(next, end, ret);
        return next && next < end && *next == ']' ? skip_blanks(next + 1, end) : NULL;
}

/* "[ 257] " of -n, "[00007f12ab] " of -i. */
static const char *
skip_bracket(const char *p, const char *end)
{
        const char *next = p + 1;

        while (next < end && (g_ascii_isxdigit(*next) || *next == ' ' || *next == '?'))
                next++;
        return next < end && *next == ']' ? skip_blanks(next + 1, end) : NULL;
}

static const char *
parse_prefix(const char *p, const char *end, StraceLine *ret)
{
        const char *next;

        p = skip_blanks(p, end);
        for (guint i = 0; i < 6 && p < end; i++) {
                if (begins(p, end, "[pid "))
                        next = take_bracketed_pid(p, end, ret);
                else if (*p == '[')
                        next = skip_bracket(p, end);
                else if (*p == '(' && begins(p, end, "(+")) {
                        next = memchr(p, ')', (gsize)(end - p));
                        next = next ? skip_blanks(next + 1, end) : NULL;
                } else if (g_ascii_isdigit(*p))
                        next = take_stamp(p, end, ret);
                else
                        break;
                if (!next)
                        break;
                p = next;
        }
        return p;
}

static const char *
take_name(const char *p, const char *end, Slice *ret)
{
        const char *next = p;

        while (next < end && (g_ascii_isalnum(*next) || *next == '_'))
                next++;
        *ret = (Slice){p, (gsize)(next - p)};
        return next > p && next - p < 64 ? next : NULL;
}

void
strace_line_parse(const char *line, gsize length, StraceLine *ret)
{
        const char *end = line + length, *p, *next;
        guint64 number;

        *ret = (StraceLine){.pid = -1, .other = -1};
        p = parse_prefix(line, end, ret);
        if (begins(p, end, "+++ ")) {
                next = g_strstr_len(p, end - p, "superseded by execve in pid ");
                if (next && take_digits(next + 28, end, &number)) {
                        ret->other = (gint64)number;
                        ret->kind = STRACE_SUPERSEDED;
                } else {
                        ret->kind = STRACE_EXITED;
                }
                return;
        }
        if (begins(p, end, "--- ")) {
                ret->kind = STRACE_SIGNAL;
                return;
        }
        if (begins(p, end, "<... ")) {
                next = take_name(p + 5, end, &ret->name);
                if (!next || !begins(next, end, " resumed"))
                        return;
                next = memchr(next, '>', (gsize)(end - next));
                if (!next)
                        return;
                ret->kind = STRACE_RESUMED;
                p = next;
        } else {
                next = take_name(p, end, &ret->name);
                if (!next || next >= end || *next != '(')
                        return;
                ret->kind = STRACE_CALL;
                p = next;
        }
        p++;
        ret->rest = (Slice){p, (gsize)(end - p)};
        if (length >= strlen(UNFINISHED) - 1 && end[-1] == '>') {
                gsize n = strlen(UNFINISHED);

                /* "wait4(-1,  <unfinished ...>", "vfork( <unfinished ...>", a resumed call
                 * may be interrupted again */
                if (ret->rest.n >= n && memcmp(end - n, UNFINISHED, n) == 0) {
                        ret->rest.n -= n;
                        if (ret->kind == STRACE_CALL)
                                ret->kind = STRACE_UNFINISHED;
                }
        }
}

/* Behind the closing quotation mark (and "..."); NULL when it is missing. */
static const char *
skip_string(const char *p, const char *end)
{
        for (p++; p < end && *p != '"'; p++)
                if (*p == '\\')
                        p++;
        if (p >= end)
                return NULL;
        p++;
        return begins(p, end, "...") ? p + 3 : p;
}

/* p at '<': behind the '>' that closes it. Those in names are escaped, but an address pair has one
 * ("<TCP:[10.0.0.1:80->10.0.0.2:443]>"). NULL when there is none. */
static const char *
skip_annotation(const char *p, const char *end)
{
        const gboolean name = end - p > 1 && p[1] == '/';
        guint depth = 0;

        for (; p < end; p++) {
                if (*p == '\\')
                        p++;
                else if (*p == '<')
                        depth++;
                else if (*p == '>' && (name || p[-1] != '-') && --depth == 0)
                        return p + 1;
        }
        return NULL;
}

/* What stands between '<' and the '>' before `behind`; of a device without "<char 5:0>". */
static Slice
annotation(const char *open, const char *behind)
{
        Slice inside = {open + 1, (gsize)(behind - open - 2)};
        const char *nested = memchr(inside.p, '<', inside.n);

        if (inside.n > 0 && inside.p[0] == '/' && nested)
                inside.n = (gsize)(nested - inside.p);
        return inside;
}

static void
add_arg(StraceCall *ret, const char *begin, const char *end)
{
        begin = skip_blanks(begin, end);
        while (end > begin && end[-1] == ' ')
                end--;
        if (ret->n_args < STRACE_ARGS_MAX)
                ret->args[ret->n_args++] = (Slice){begin, (gsize)(end - begin)};
}

/* Behind the ')' that ends the arguments; NULL when there is none. */
static const char *
parse_args(const char *text, const char *end, StraceCall *ret)
{
        const char *p = text, *begin = text, *next;
        guint depth = 0;

        while (p < end) {
                switch (*p) {
                case '"':
                        next = skip_string(p, end);
                        if (!next)
                                return NULL;
                        p = next;
                        continue;
                case '/': /* a comment: "/" stands outside of strings nowhere else */
                        if (begins(p, end, "/*") &&
                            (next = g_strstr_len(p + 2, end - p - 2, "*/"))) {
                                p = next + 2;
                                continue;
                        }
                        break;
                case '<':
                        if (begins(p, end, "<<")) {
                                p += 2;
                                continue;
                        }
                        if (p > text && g_ascii_isalnum(p[-1]) &&
                            (next = skip_annotation(p, end))) {
                                p = next;
                                continue;
                        }
                        break;
                case '(':
                case '[':
                case '{': depth++; break;
                case ']':
                case '}':
                        if (depth > 0)
                                depth--;
                        break;
                case ')':
                        if (depth == 0) {
                                if (skip_blanks(begin, p) < p || ret->n_args > 0)
                                        add_arg(ret, begin, p);
                                return p + 1;
                        }
                        /* "(deleted)" behind an annotation, "htons(80)", "makedev(1, 3)" */
                        depth--;
                        break;
                case ',':
                        if (depth == 0) {
                                add_arg(ret, begin, p);
                                begin = p + 1;
                        }
                        break;
                default: break;
                }
                p++;
        }
        return NULL;
}

gboolean
strace_call_parse(const char *text, gsize length, StraceCall *ret)
{
        const char *end = text + length, *p, *next;
        Slice value;

        ret->n_args = 0;
        ret->returned = FALSE;
        ret->deleted = FALSE;
        ret->value = 0;
        ret->annotation = (Slice){NULL, 0};
        p = parse_args(text, end, ret);
        if (!p)
                return FALSE;
        p = skip_blanks(p, end);
        if (p >= end || *p != '=')
                return FALSE;
        p = skip_blanks(p + 1, end);
        next = p;
        while (next < end && *next != ' ' && *next != '<')
                next++;
        value = (Slice){p, (gsize)(next - p)};
        ret->returned = strace_number(value, &ret->value);
        if (ret->returned && next < end && *next == '<') {
                p = skip_annotation(next, end);
                if (p) {
                        ret->annotation = annotation(next, p);
                        ret->deleted = begins(p, end, "(deleted)");
                }
        }
        return TRUE;
}

static guint
digit_value(char c)
{
        return (guint)g_ascii_xdigit_value(c);
}

static gchar *
unescape(const char *p, const char *end, gsize *ret_length)
{
        GString *out = g_string_sized_new((gsize)(end - p));

        while (p < end) {
                char c = *p++;
                guint value = 0, n = 0;

                if (c != '\\' || p >= end) {
                        g_string_append_c(out, c);
                        continue;
                }
                c = *p++;
                switch (c) {
                case 'n': c = '\n'; break;
                case 't': c = '\t'; break;
                case 'r': c = '\r'; break;
                case 'v': c = '\v'; break;
                case 'f': c = '\f'; break;
                case 'b': c = '\b'; break;
                case 'a': c = '\a'; break;
                case 'x':
                        for (; n < 2 && p < end && g_ascii_isxdigit(*p); n++)
                                value = value * 16 + digit_value(*p++);
                        c = (char)value;
                        break;
                default:
                        if (c < '0' || c > '7')
                                break;
                        value = digit_value(c);
                        for (n = 1; n < 3 && p < end && *p >= '0' && *p <= '7'; n++)
                                value = value * 8 + digit_value(*p++);
                        c = (char)value;
                }
                g_string_append_c(out, c);
        }
        *ret_length = out->len;
        return g_string_free(out, FALSE);
}

gchar *
strace_unescape(Slice slice, gsize *ret_length)
{
        return unescape(slice.p, slice.p + slice.n, ret_length);
}

gchar *
strace_string(Slice slice, gsize *ret_length, gboolean *ret_cut)
{
        const char *end = slice.p + slice.n;

        *ret_cut = FALSE;
        if (slice.n < 2 || slice.p[0] != '"')
                return NULL;
        if (slice.n >= 5 && memcmp(end - 3, "...", 3) == 0) {
                *ret_cut = TRUE;
                end -= 3;
        }
        if (end[-1] != '"' || end - slice.p < 2)
                return NULL;
        return unescape(slice.p + 1, end - 1, ret_length);
}

gboolean
strace_descriptor(Slice slice, gint64 *ret_fd, Slice *ret_annotation, gboolean *ret_deleted)
{
        const char *p = slice.p, *end = p + slice.n, *next;
        const char *open = memchr(p, '<', slice.n);

        *ret_annotation = (Slice){NULL, 0};
        *ret_deleted = FALSE;
        if (open) {
                next = skip_annotation(open, end);
                if (!next)
                        return FALSE;
                *ret_annotation = annotation(open, next);
                *ret_deleted = begins(next, end, "(deleted)");
                end = open;
        }
        if (begins(p, end, "AT_FDCWD") || begins(p, end, "0xffffff9c")) {
                *ret_fd = -100;
                return TRUE;
        }
        return strace_number((Slice){p, (gsize)(end - p)}, ret_fd) && *ret_fd <= G_MAXINT &&
               *ret_fd >= -100;
}

gboolean
strace_number(Slice slice, gint64 *ret)
{
        const char *p = slice.p, *end = p + slice.n;
        gboolean negative = FALSE;
        guint64 value = 0;
        guint base = 10;

        if (p < end && *p == '[')
                p++;
        if (p < end && *p == '-') {
                negative = TRUE;
                p++;
        }
        if (end - p > 2 && p[0] == '0' && p[1] == 'x') {
                base = 16;
                p += 2;
        } else if (end - p > 1 && p[0] == '0') {
                base = 8;
        }
        if (p >= end || !g_ascii_isxdigit(*p))
                return FALSE;
        for (; p < end && g_ascii_isxdigit(*p); p++) {
                guint digit = digit_value(*p);

                if (digit >= base)
                        return FALSE;
                if (value > G_MAXUINT64 / 16)
                        return FALSE;
                value = value * base + digit;
        }
        /* a number and nothing else, or the first of a list, or "[x] => [y]" */
        if (p < end && *p != ']' && *p != ',' && *p != ' ' && *p != '<')
                return FALSE;
        *ret = (gint64)(negative ? -value : value);
        return TRUE;
}

gboolean
strace_has_flag(Slice slice, const char *flag)
{
        gsize n = strlen(flag);
        const char *p = slice.p, *end = p + slice.n;

        while (p && (gsize)(end - p) >= n) {
                p = memmem(p, (gsize)(end - p), flag, n);
                if (!p)
                        return FALSE;
                if ((p == slice.p || !(g_ascii_isalnum(p[-1]) || p[-1] == '_')) &&
                    (p + n == end || !(g_ascii_isalnum(p[n]) || p[n] == '_')))
                        return TRUE;
                p += n;
        }
        return FALSE;
}
