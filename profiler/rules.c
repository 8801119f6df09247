// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rules on paths: see rules.h. A pattern becomes a list of tokens; matching keeps one place to come
 * back to for "**" and one for "*", which is enough: an earlier "**" need never give more, as a
 * later one can take up any bytes, and an earlier "*" of the same part of a path neither.
 */
#include "profiler/rules.h"

#include <string.h>
#include <unistd.h>

#include "common/error.h"
#include "common/file.h"
#include "common/quote.h"

#define LINE_MAX_BYTES 4096U
#define FILE_MAX_BYTES (1U << 20)
#define RULES_MAX 100000U

typedef enum {
        TOKEN_BYTE,
        TOKEN_ANY, /* ? */
        TOKEN_SET,
        TOKEN_STAR,    /* any bytes but '/' */
        TOKEN_ALL,     /* any bytes */
        TOKEN_FOLDERS, /* any number of whole folders, each with its '/' */
} TokenKind;

typedef struct {
        guint8 kind;
        guint8 byte;
        guint16 set; /* index of 32 bytes of bits in Rules.sets */
} Token;

typedef struct {
        guint32 first, n;   /* tokens */
        guint32 tail_bytes; /* how many last tokens are plain bytes */
        gboolean again;     /* "!": takes in */
        gchar *place;
} Rule;

struct Rules {
        GArray *tokens;
        GArray *rules;
        GByteArray *sets;
};

static void
rule_clear(gpointer data)
{
        g_free(((Rule *)data)->place);
}

Rules *
rules_new(void)
{
        Rules *rules = g_new0(Rules, 1);

        rules->tokens = g_array_new(FALSE, FALSE, sizeof(Token));
        rules->rules = g_array_new(FALSE, FALSE, sizeof(Rule));
        g_array_set_clear_func(rules->rules, rule_clear);
        rules->sets = g_byte_array_new();
        return rules;
}

void
rules_free(Rules *rules)
{
        if (!rules)
                return;
        g_array_unref(rules->tokens);
        g_array_unref(rules->rules);
        g_byte_array_unref(rules->sets);
        g_free(rules);
}

guint
rules_count(const Rules *rules)
{
        return rules->rules->len;
}

/* ---- reading a pattern ---- */

typedef struct {
        const char *at, *end;
        const char *problem;
} Text;

/* The byte that the text gives next, escapes undone. */
static gboolean
take_byte(Text *text, guint8 *ret)
{
        if (*text->at != '\\') {
                *ret = (guint8)*text->at++;
                return TRUE;
        }
        if (++text->at == text->end) {
                text->problem = "a backslash with nothing behind it";
                return FALSE;
        }
        if (*text->at == 'x') {
                int high = text->end - text->at > 2 ? g_ascii_xdigit_value(text->at[1]) : -1;
                int low = high >= 0 ? g_ascii_xdigit_value(text->at[2]) : -1;

                if (low < 0 || high * 16 + low == 0) {
                        text->problem = "\\x needs two hexadecimal digits, not 00";
                        return FALSE;
                }
                *ret = (guint8)(high * 16 + low);
                text->at += 3;
                return TRUE;
        }
        *ret = (guint8)(*text->at == 'n' ? '\n' : *text->at == 't' ? '\t' : *text->at);
        text->at++;
        return TRUE;
}

static gboolean
take_set(Rules *rules, Text *text, Token *ret)
{
        guint8 bits[32] = {0};
        gboolean others = FALSE, first = TRUE;

        text->at++;
        if (text->at < text->end && (*text->at == '!' || *text->at == '^')) {
                others = TRUE;
                text->at++;
        }
        for (; text->at < text->end && (*text->at != ']' || first); first = FALSE) {
                guint8 low, high;

                if (!take_byte(text, &low))
                        return FALSE;
                high = low;
                if (text->end - text->at >= 2 && text->at[0] == '-' && text->at[1] != ']') {
                        text->at++;
                        if (!take_byte(text, &high))
                                return FALSE;
                }
                for (guint b = low; b <= high; b++)
                        bits[b / 8] |= (guint8)(1U << (b % 8));
        }
        if (text->at == text->end) {
                text->problem = "a [ without its ]";
                return FALSE;
        }
        text->at++;
        for (guint i = 0; others && i < sizeof bits; i++)
                bits[i] = (guint8)~bits[i];
        bits['/' / 8] &= (guint8) ~(1U << ('/' % 8));
        if (rules->sets->len / sizeof bits > G_MAXUINT16) {
                text->problem = "too many sets of bytes";
                return FALSE;
        }
        ret->kind = TOKEN_SET;
        ret->set = (guint16)(rules->sets->len / sizeof bits);
        g_byte_array_append(rules->sets, bits, sizeof bits);
        return TRUE;
}

static void
add_token(Rules *rules, TokenKind kind, guint8 byte)
{
        Token token = {.kind = (guint8)kind, .byte = byte};

        g_array_append_val(rules->tokens, token);
}

static gboolean
take_token(Rules *rules, Text *text, gboolean after_slash)
{
        Token token = {.kind = TOKEN_BYTE};

        if (*text->at == '*') {
                gsize stars = 0;

                while (text->at < text->end && *text->at == '*') {
                        text->at++;
                        stars++;
                }
                /* "**" alone between slashes stands for no folder as well */
                if (stars > 1 && after_slash && text->at < text->end && *text->at == '/') {
                        text->at++;
                        add_token(rules, TOKEN_FOLDERS, 0);
                } else {
                        add_token(rules, stars > 1 ? TOKEN_ALL : TOKEN_STAR, 0);
                }
                return TRUE;
        }
        if (*text->at == '?') {
                text->at++;
                token.kind = TOKEN_ANY;
        } else if (*text->at == '[') {
                if (!take_set(rules, text, &token))
                        return FALSE;
        } else if (!take_byte(text, &token.byte)) {
                return FALSE;
        }
        g_array_append_val(rules->tokens, token);
        return TRUE;
}

static gboolean
add_pattern(Rules *rules, Text *text, Rule *rule)
{
        const char *begin;
        gboolean below = text->end[-1] == '/';

        rule->first = rules->tokens->len;
        add_token(rules, TOKEN_BYTE, '/');
        if (*text->at == '/')
                text->at++;
        else
                add_token(rules, TOKEN_FOLDERS, 0);
        for (begin = text->at; text->at < text->end;) {
                if (!take_token(rules, text, text->at == begin || text->at[-1] == '/'))
                        return FALSE;
        }
        if (below)
                add_token(rules, TOKEN_ALL, 0);
        rule->n = rules->tokens->len - rule->first;
        while (rule->tail_bytes < rule->n &&
               g_array_index(rules->tokens, Token, rule->first + rule->n - 1 - rule->tail_bytes)
                               .kind == TOKEN_BYTE)
                rule->tail_bytes++;
        return TRUE;
}

static const char *
add_line(Rules *rules, const char *line, gsize length, const char *source, guint number)
{
        Rule rule = {0};
        Text text = {.at = line, .end = line + length};
        guint before = rules->tokens->len;

        if (memchr(line, '\0', length))
                return "a NUL byte";
        if (length > LINE_MAX_BYTES)
                return "longer than 4096 bytes";
        if (*text.at == '!') {
                rule.again = TRUE;
                text.at++;
        }
        if (text.at == text.end)
                return "a ! without a pattern";
        if (rules->rules->len >= RULES_MAX)
                return "more than 100000 rules";
        if (!add_pattern(rules, &text, &rule)) {
                g_array_set_size(rules->tokens, before);
                return text.problem;
        }
        rule.place = g_strdup_printf("%s:%u", source, number);
        g_array_append_val(rules->rules, rule);
        return NULL;
}

void
rules_add_text(Rules *rules, const char *text, gsize length, const char *source,
               GPtrArray *problems)
{
        const char *end = text + length;
        guint number = 0;

        for (const char *line = text; line < end;) {
                const char *newline = memchr(line, '\n', (gsize)(end - line));
                const char *stop = newline ? newline : end;
                const char *problem = NULL;

                number++;
                if (stop > line && *line != '#')
                        problem = add_line(rules, line, (gsize)(stop - line), source, number);
                if (problem && problems)
                        g_ptr_array_add(problems, g_strdup_printf("%s:%u: %s, ignoring", source,
                                                                  number, problem));
                line = stop + 1;
        }
}

/* ---- matching ---- */

static gboolean
token_takes(const Rules *rules, const Token *token, guint8 byte)
{
        switch (token->kind) {
        case TOKEN_BYTE: return token->byte == byte;
        case TOKEN_ANY: return byte != '/';
        default: return (rules->sets->data[token->set * 32U + byte / 8] >> (byte % 8)) & 1;
        }
}

typedef struct {
        guint32 token; /* the one after the star; 0 = no such place */
        const char *at;
} Back;

static gboolean
matches(const Rules *rules, const Rule *rule, const char *path, gsize length)
{
        const Token *tokens = &g_array_index(rules->tokens, Token, rule->first);
        const char *at = path, *end = path + length;
        Back star = {0}, all = {0};
        guint8 all_kind = TOKEN_ALL;
        guint32 t = 0;

        if (rule->tail_bytes > length)
                return FALSE;
        for (guint32 i = 1; i <= rule->tail_bytes; i++)
                if (tokens[rule->n - i].byte != (guint8)end[-(gssize)i])
                        return FALSE;
        for (;;) {
                if (t < rule->n && tokens[t].kind == TOKEN_STAR) {
                        star = (Back){++t, at};
                        continue;
                }
                if (t < rule->n && tokens[t].kind >= TOKEN_ALL) {
                        all_kind = tokens[t].kind;
                        all = (Back){++t, at};
                        star.token = 0;
                        continue;
                }
                if (t == rule->n && at == end)
                        return TRUE;
                if (t < rule->n && at < end && token_takes(rules, &tokens[t], (guint8)*at)) {
                        t++;
                        at++;
                        continue;
                }
                if (star.token && star.at < end && *star.at != '/') {
                        at = ++star.at;
                        t = star.token;
                        continue;
                }
                if (!all.token || all.at == end)
                        return FALSE;
                if (all_kind == TOKEN_FOLDERS) {
                        const char *slash = memchr(all.at, '/', (gsize)(end - all.at));

                        if (!slash)
                                return FALSE;
                        all.at = slash + 1;
                } else {
                        all.at++;
                }
                at = all.at;
                t = all.token;
                star.token = 0;
        }
}

const char *
rules_left_out_by(const Rules *rules, const char *path)
{
        gsize length = strlen(path);

        for (guint i = rules->rules->len; i-- > 0;) {
                const Rule *rule = &g_array_index(rules->rules, Rule, i);

                if (matches(rules, rule, path, length))
                        return rule->again ? NULL : rule->place;
        }
        return NULL;
}

/* ---- files ---- */

static gint
compare_names(gconstpointer a, gconstpointer b)
{
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void
collect_files(const char *folder, GHashTable *files, GPtrArray *problems)
{
        g_autoptr(GError) error = NULL;
        g_autoptr(GDir) dir = g_dir_open(folder, 0, &error);
        const char *name;

        if (!dir) {
                if (problems && !g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_NOENT))
                        g_ptr_array_add(problems, g_strdup_printf("%s, ignoring", error->message));
                return;
        }
        while ((name = g_dir_read_name(dir)))
                if (name[0] != '.' && g_str_has_suffix(name, ".conf"))
                        g_hash_table_replace(files, g_strdup(name),
                                             g_build_filename(folder, name, NULL));
}

Rules *
rules_load_folders(const char *const *folders, GPtrArray *problems)
{
        Rules *rules = rules_new();
        g_autoptr(GHashTable) files =
                g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
        g_autoptr(GPtrArray) names = NULL;
        GHashTableIter iter;
        gpointer name;

        for (; *folders; folders++)
                collect_files(*folders, files, problems);
        names = g_ptr_array_new();
        g_hash_table_iter_init(&iter, files);
        while (g_hash_table_iter_next(&iter, &name, NULL))
                g_ptr_array_add(names, name);
        g_ptr_array_sort(names, compare_names);
        for (guint i = 0; i < names->len; i++) {
                const char *path = g_hash_table_lookup(files, names->pdata[i]);
                g_autofree gchar *quoted = path_quote(path);
                g_autoptr(GError) error = NULL;
                /* a link to /dev/null is the way to turn a file off */
                g_autoptr(GBytes) bytes = g_file_test(path, G_FILE_TEST_IS_REGULAR) ||
                                                          !g_file_test(path, G_FILE_TEST_EXISTS)
                                                  ? file_read(path, FILE_MAX_BYTES, &error)
                                                  : NULL;

                if (bytes)
                        rules_add_text(rules, g_bytes_get_data(bytes, NULL),
                                       g_bytes_get_size(bytes), quoted, problems);
                else if (error && problems)
                        g_ptr_array_add(problems, g_strdup_printf("%s, ignoring", error->message));
        }
        return rules;
}

gchar *
rules_default_folder(void)
{
        g_autofree gchar *program = g_file_read_link("/proc/self/exe", NULL);
        g_autofree gchar *bin = program ? g_path_get_dirname(program) : NULL;
        g_autofree gchar *prefix = bin ? g_path_get_dirname(bin) : NULL;
        gchar *folder;

        if (!prefix)
                return NULL;
        folder = g_build_filename(prefix, "lib", "headstart", "exclude.d", NULL);
        if (g_file_test(folder, G_FILE_TEST_IS_DIR))
                return folder;
        g_free(folder);
        folder = g_build_filename(bin, "exclude.d", NULL);
        if (g_file_test(folder, G_FILE_TEST_IS_DIR))
                return folder;
        g_free(folder);
        return NULL;
}
