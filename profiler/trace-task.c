// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Events of threads rather than of pages: who was made, executes, ends, leaves the CPU and gets it
 * back, and the marks. They are few; texts are kept once each for as long as the trace.
 */
#include <sched.h>
#include <string.h>

#include "profiler/trace-internal.h"

#define TEXT_MAX_BYTES 4096

static Field
field_of(struct tep_event *event, const char *name)
{
        struct tep_format_field *field = name ? tep_find_field(event, name) : NULL;

        return field ? (Field){field->offset, field->size} : (Field){0, 0};
}

static guint64
load(const guint8 *record, Field field)
{
        guint64 eight;
        guint32 four;

        switch (field.size) {
        case 1: return record[field.offset];
        case 4: memcpy(&four, record + field.offset, sizeof four); return four;
        case 8: memcpy(&eight, record + field.offset, sizeof eight); return eight;
        default: return 0;
        }
}

gboolean
trace_task_fields(struct tep_event *parsed, Event *event)
{
        static const struct {
                AccessKind kind;
                const char *first, *last, *text;
        } FIELDS[] = {
                {ACCESS_EXEC, NULL, NULL, "filename"},
                {ACCESS_FORK, "pid", "clone_flags", "comm"},
                {ACCESS_NAME, NULL, NULL, "newcomm"},
                {ACCESS_EXIT, "group_dead", NULL, NULL},
                {ACCESS_SWITCH, "prev_state", "next_pid", NULL},
                {ACCESS_WAKE, "pid", NULL, NULL},
                {ACCESS_SYSCALL, "id", "args", NULL},
        };

        for (guint i = 0; i < G_N_ELEMENTS(FIELDS); i++) {
                if (FIELDS[i].kind != event->kind)
                        continue;
                event->first = field_of(parsed, FIELDS[i].first);
                event->last = field_of(parsed, FIELDS[i].last);
                event->text = field_of(parsed, FIELDS[i].text);
                if (event->kind == ACCESS_SYSCALL && event->last.size)
                        event->last.size = sizeof(long); /* the first of six */
                return (!FIELDS[i].last || event->last.size) &&
                       (!FIELDS[i].first || event->first.size || event->kind == ACCESS_EXIT) &&
                       (!FIELDS[i].text || event->text.size || event->kind == ACCESS_EXEC);
        }
        return FALSE;
}

/* A text of fixed length, or one whose place is told in the record (__data_loc: offset, length <<
 * 16). */
static const gchar *
load_text(Trace *trace, const guint8 *record, int size, Field field)
{
        gint offset = field.offset, length = field.size;
        gchar text[TEXT_MAX_BYTES];

        if (field.size == sizeof(guint32)) {
                guint32 where = (guint32)load(record, field);

                offset = (gint)(where & 0xffff);
                length = (gint)(where >> 16);
        }
        length = MIN(length, TEXT_MAX_BYTES - 1);
        if (length <= 0 || offset < 0 || offset > size - length)
                return NULL;
        memcpy(text, record + offset, (gsize)length);
        text[length] = '\0';
        return g_string_chunk_insert_const(trace->texts, text);
}

void
trace_task_decode(Trace *trace, const Event *event, const guint8 *record, int size,
                  AccessEvent *ret)
{
        ret->first = load(record, event->first);
        ret->last = load(record, event->last);
        if (event->text.size)
                ret->text = load_text(trace, record, size, event->text);
        if (event->kind == ACCESS_FORK)
                ret->last = (ret->last & CLONE_THREAD) != 0;
        else if (event->kind == ACCESS_NAME)
                ret->first = (guint64)ret->tid;
}

gboolean
trace_mark_decode(Trace *trace, const Event *event, const guint8 *record, int size,
                  AccessEvent *ret)
{
        const gchar *text = (const gchar *)record + event->text.offset;
        gsize length, prefix = strlen(MARK_PREFIX);
        g_autofree gchar *line = NULL;

        if (size <= event->text.offset)
                return FALSE;
        length = strnlen(text, (gsize)(size - event->text.offset));
        if (length && text[length - 1] == '\n')
                length--;
        if (length <= prefix || memcmp(text, MARK_PREFIX, prefix) != 0)
                return FALSE;
        line = g_strndup(text, length);
        ret->text = g_string_chunk_insert_const(trace->texts, line + prefix);
        ret->first = trace->until && g_str_equal(line, trace->until);
        ret->last = ret->first;
        return TRUE;
}
