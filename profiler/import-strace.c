// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * strace logs, line by line, in one pass: whose line it is, when, and whole calls from unfinished
 * and resumed ones. Memory holds one line, the processes that live and what was found so far.
 *
 * Lines without a number belong to the one process there is: the first, or (strace drops "[pid N]"
 * when one is left) the last that lives.
 */
#include "profiler/import.h"

#include <string.h>

#include "common/error.h"
#include "profiler/strace-calls.h"

#define LINE_BYTES_MAX (16 << 20)
#define DAY_NS (G_GUINT64_CONSTANT(86400) * 1000000000)

struct StraceImport {
        ImportList *list;
        TraceState state;
        GString *line;      /* the beginning of a line that has not ended */
        gboolean too_long;  /* and what follows of it is dropped */
        gboolean has_times; /* the clock below is one */
        StraceTime time_kind;
        guint64 first_ns, last_ns, days_ns; /* of the stamps */
        guint64 delta_ns, now_us;
        guint64 calls, lines;
        gint64 unnumbered; /* which process the lines without a number are of; 0 = the first */
};

StraceImport *
strace_import_new(ImportList *list, const char *cwd)
{
        StraceImport *strace = g_new0(StraceImport, 1);

        strace->list = list;
        strace->line = g_string_new(NULL);
        trace_state_init(&strace->state, list, cwd);
        return strace;
}

void
strace_import_free(StraceImport *strace)
{
        if (!strace)
                return;
        trace_state_clear(&strace->state);
        g_string_free(strace->line, TRUE);
        g_free(strace);
}

/* Stamps of any kind to microseconds since the first line; without any, the line's number. */
static void
take_time(StraceImport *strace, const StraceLine *line)
{
        guint64 ns = line->time_ns;

        strace->lines++;
        if (line->time_kind == STRACE_NO_TIME) {
                if (!strace->has_times)
                        strace->now_us = strace->lines;
                return;
        }
        if (!strace->has_times) {
                strace->has_times = TRUE;
                strace->time_kind = line->time_kind;
                strace->first_ns = strace->last_ns = ns;
                strace->now_us = 0;
                return;
        }
        if (line->time_kind != strace->time_kind)
                return;
        if (line->time_kind == STRACE_TIME_DELTA) {
                strace->delta_ns += MIN(ns, DAY_NS * 1000);
                ns = strace->delta_ns;
        } else {
                ns += strace->days_ns;
                if (line->time_kind == STRACE_TIME_OF_DAY && ns + DAY_NS / 2 < strace->last_ns) {
                        strace->days_ns += DAY_NS;
                        ns += DAY_NS;
                }
                strace->last_ns = ns;
                ns = ns > strace->first_ns ? ns - strace->first_ns : 0;
        }
        strace->now_us = ns / 1000;
        strace->list->end_us = MAX(strace->list->end_us, strace->now_us);
}

/* The process of lines without a number: strace leaves it out while there is only one. */
static gint64
unnumbered_process(StraceImport *strace)
{
        GHashTable *processes = strace->state.processes;

        if (!g_hash_table_contains(processes, GINT_TO_POINTER((gint)strace->unnumbered)) &&
            g_hash_table_size(processes) > 0) {
                GHashTableIter iter;
                gpointer key;

                g_hash_table_iter_init(&iter, processes);
                if (g_hash_table_iter_next(&iter, &key, NULL))
                        strace->unnumbered = GPOINTER_TO_INT(key);
        }
        return strace->unnumbered;
}

static TraceProcess *
find_process(StraceImport *strace, const StraceLine *line)
{
        TraceProcess *process, *first;

        if (line->pid < 0)
                return trace_process(&strace->state, unnumbered_process(strace), strace->now_us);
        process = trace_process_find(&strace->state, line->pid);
        if (process)
                return process;
        /* The first one gets its number when there are two; a child is announced by the fork that
         * is pending, and resumes nothing. */
        first = trace_process_find(&strace->state, 0);
        if (first && line->pid > 0 &&
            (g_queue_is_empty(&strace->state.forking) ||
             (line->kind == STRACE_RESUMED && first->pending &&
              strlen(first->pending_name) == line->name.n &&
              memcmp(first->pending_name, line->name.p, line->name.n) == 0))) {
                trace_process_rename(&strace->state, first, line->pid);
                strace->unnumbered = line->pid;
                return first;
        }
        return trace_process(&strace->state, line->pid, strace->now_us);
}

static void
whole_call(StraceImport *strace, TraceProcess *process, Slice name, Slice rest, guint64 time_us)
{
        StraceCall call;

        strace->calls++;
        if (!trace_call_matters(name))
                return;
        if (strace_call_parse(rest.p, rest.n, &call))
                trace_call(&strace->state, process, name, &call, time_us);
        else if (rest.n >= 14 && memcmp(rest.p + rest.n - 14, "<detached ...>", 14) == 0)
                ; /* strace was stopped in the middle of it */
        else
                import_list_problem(strace->list,
                                    "a call that is cut off or not in strace's format", name.p,
                                    name.n);
}

static void
resume(StraceImport *strace, TraceProcess *process, const StraceLine *line)
{
        g_autoptr(GString) text = NULL;
        g_autofree gchar *name = NULL;
        guint64 time_us = process->pending_us;

        if (!process->pending || strlen(process->pending_name) != line->name.n ||
            memcmp(process->pending_name, line->name.p, line->name.n) != 0) {
                trace_process_drop_pending(&strace->state, process);
                if (trace_call_matters(line->name))
                        import_list_problem(strace->list,
                                            "a call that resumes without its beginning",
                                            line->name.p, line->name.n);
                return;
        }
        text = g_string_new_len(process->pending->str, (gssize)process->pending->len);
        g_string_append_len(text, line->rest.p, (gssize)line->rest.n);
        name = g_strdup(process->pending_name);
        trace_process_drop_pending(&strace->state, process);
        whole_call(strace, process, (Slice){name, strlen(name)}, (Slice){text->str, text->len},
                   time_us);
}

static void
take_line(StraceImport *strace, const char *text, gsize length)
{
        StraceLine line;
        TraceProcess *process, *other;

        if (length > 0 && text[length - 1] == '\r')
                length--;
        strace_line_parse(text, length, &line);
        if (line.kind == STRACE_OTHER)
                return;
        take_time(strace, &line);
        process = find_process(strace, &line);
        if (line.comm.n > 0 && process->number) {
                ImportProcess *entry =
                        &g_array_index(strace->list->processes, ImportProcess, process->number - 1);

                if (!entry->comm || strncmp(entry->comm, line.comm.p, line.comm.n) != 0) {
                        g_free(entry->comm);
                        entry->comm = g_strndup(line.comm.p, line.comm.n);
                }
        }
        switch (line.kind) {
        case STRACE_CALL:
                /* whatever was pending never came back */
                trace_process_drop_pending(&strace->state, process);
                whole_call(strace, process, line.name, line.rest, strace->now_us);
                break;
        case STRACE_UNFINISHED:
                strace->calls++;
                if (trace_call_matters(line.name))
                        trace_process_set_pending(&strace->state, process, line.name, line.rest,
                                                  strace->now_us);
                else
                        trace_process_drop_pending(&strace->state, process);
                break;
        case STRACE_RESUMED:
                if (process->pending || trace_call_matters(line.name))
                        resume(strace, process, &line);
                break;
        case STRACE_EXITED:
                if (process->pid == strace->unnumbered)
                        strace->unnumbered = 0;
                trace_process_exit(&strace->state, process, strace->now_us);
                break;
        case STRACE_SUPERSEDED:
                /* the execve of that thread goes on under this number */
                other = trace_process_find(&strace->state, line.other);
                if (other && other != process && other->pending) {
                        Slice name = {other->pending_name, strlen(other->pending_name)};
                        Slice rest = {other->pending->str, other->pending->len};

                        trace_process_set_pending(&strace->state, process, name, rest,
                                                  other->pending_us);
                        trace_process_exit(&strace->state, other, strace->now_us);
                }
                break;
        default: break;
        }
}

/* "vfork(strace: Process 12 attached" and, on the next line, " <unfinished ...>": strace's own
 * messages go to the same terminal in the middle of a line. TRUE when it was one. */
static gboolean
drop_message(StraceImport *strace, const char *text, gsize length)
{
        static const char begin[] = "strace: Process ", end[] = " attached";
        const char *at;

        if (length < strlen(end) || memcmp(text + length - strlen(end), end, strlen(end)) != 0)
                return FALSE;
        at = g_strrstr_len(text, (gssize)length, begin);
        if (!at)
                return FALSE;
        /* what stood before it goes on in the next line */
        if (text != strace->line->str)
                g_string_append_len(strace->line, text, at - text);
        else
                g_string_truncate(strace->line, (gsize)(at - text));
        return TRUE;
}

static void
end_of_line(StraceImport *strace, const char *text, gsize length)
{
        if (strace->line->len > 0) {
                g_string_append_len(strace->line, text, (gssize)length);
                if (drop_message(strace, strace->line->str, strace->line->len))
                        return;
                take_line(strace, strace->line->str, strace->line->len);
                g_string_truncate(strace->line, 0);
        } else if (!drop_message(strace, text, length)) {
                take_line(strace, text, length);
        }
}

void
strace_import_feed(StraceImport *strace, const char *data, gsize size)
{
        while (size > 0) {
                const char *stop = memchr(data, '\n', size);
                gsize length = stop ? (gsize)(stop - data) : size;

                if (strace->too_long || strace->line->len + length > LINE_BYTES_MAX) {
                        if (!strace->too_long)
                                import_list_problem(strace->list, "a line longer than 16 MiB", NULL,
                                                    0);
                        strace->too_long = !stop;
                        g_string_truncate(strace->line, 0);
                } else if (stop) {
                        end_of_line(strace, data, length);
                } else {
                        g_string_append_len(strace->line, data, (gssize)length);
                }
                length += stop ? 1 : 0;
                data += length;
                size -= length;
        }
}

gboolean
strace_import_finish(StraceImport *strace, GError **error)
{
        GHashTableIter iter;
        gpointer value;

        if (strace->line->len > 0) {
                g_autofree gchar *rest = g_strndup(strace->line->str, strace->line->len);
                gsize length = strace->line->len;

                g_string_truncate(strace->line, 0);
                take_line(strace, rest, length);
        }
        g_hash_table_iter_init(&iter, strace->state.processes);
        while (g_hash_table_iter_next(&iter, NULL, &value)) {
                const TraceProcess *process = value;

                if (process->pending && (g_str_has_prefix(process->pending_name, "open") ||
                                         g_str_has_prefix(process->pending_name, "exec")))
                        import_list_problem(strace->list, "a call that had not ended yet",
                                            process->pending_name, strlen(process->pending_name));
        }
        strace->list->has_times = strace->has_times;
        if (strace->calls == 0) {
                g_set_error_literal(error, COMMON_ERROR, COMMON_ERROR_INPUT,
                                    "no system call in it: not a log of strace");
                return FALSE;
        }
        return TRUE;
}
