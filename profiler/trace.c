// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The tracing instance. Field offsets are looked up once through libtraceevent; an event then costs
 * a few loads. CPUs are read one after the other, so a batch is sorted by time before it is handed
 * on, and what is younger than the moment the reading began waits for the next batch.
 */
#include "profiler/trace-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "common/error.h"

#define BUFFER_KB_DEFAULT 8192U
#define BUFFER_KB_MIN 256U
#define MEMORY_SHARE 32U /* all buffers together take at most this fraction of the memory */

static const Event EVENTS[N_EVENTS] = {
        [EVENT_ADD] = {"filemap", "mm_filemap_add_to_page_cache", ACCESS_ADD},
        [EVENT_READ] = {"filemap", "mm_filemap_get_pages", ACCESS_READ},
        [EVENT_FAULT] = {"filemap", "mm_filemap_fault", ACCESS_FAULT},
        [EVENT_MAP] = {"filemap", "mm_filemap_map_pages", ACCESS_MAP},
        [EVENT_EXEC] = {"sched", "sched_process_exec", ACCESS_EXEC},
        [EVENT_PRINT] = {"ftrace", "print", ACCESS_MARK},
        [EVENT_SYNC_RA] = {"readahead", "page_cache_sync_ra", ACCESS_RA},
        [EVENT_ASYNC_RA] = {"readahead", "page_cache_async_ra", ACCESS_RA},
        /* unlike sched_process_fork it tells a thread from a process */
        [EVENT_FORK] = {"task", "task_newtask", ACCESS_FORK},
        [EVENT_NAME] = {"task", "task_rename", ACCESS_NAME},
        [EVENT_EXIT] = {"sched", "sched_process_exit", ACCESS_EXIT},
        [EVENT_SWITCH] = {"sched", "sched_switch", ACCESS_SWITCH},
        [EVENT_WAKE] = {"sched", "sched_waking", ACCESS_WAKE},
        [EVENT_SYSCALL] = {"raw_syscalls", "sys_enter", ACCESS_SYSCALL},
};

static Field
field_of(struct tep_event *event, const char *name, gboolean common)
{
        struct tep_format_field *field =
                common ? tep_find_common_field(event, name) : tep_find_field(event, name);

        return field ? (Field){field->offset, field->size} : (Field){0, 0};
}

static gboolean
load_event(Trace *trace, Event *event)
{
        int size = 0;
        char *format = tracefs_event_file_read(NULL, event->system, event->name, "format", &size);
        struct tep_event *parsed;

        if (!format)
                return FALSE;
        tep_parse_event(trace->tep, format, (unsigned long)size, event->system);
        free(format);
        parsed = tep_find_event_by_name(trace->tep, event->system, event->name);
        if (!parsed)
                return FALSE;

        event->id = parsed->id;
        event->inode = field_of(parsed, "i_ino", FALSE);
        event->dev = field_of(parsed, "s_dev", FALSE);
        event->first = field_of(parsed, "index", FALSE);
        event->last = field_of(parsed, "last_index", FALSE);
        event->order = field_of(parsed, "order", FALSE);
        event->text = field_of(parsed, "buf", FALSE);
        trace->type = field_of(parsed, "common_type", TRUE);
        trace->tid = field_of(parsed, "common_pid", TRUE);
        if (!trace->type.size || !trace->tid.size)
                return FALSE;
        switch (event->kind) {
        case ACCESS_READ:
        case ACCESS_MAP:
                if (!event->last.size)
                        return FALSE;
                G_GNUC_FALLTHROUGH;
        case ACCESS_ADD:
        case ACCESS_FAULT: return event->inode.size && event->dev.size && event->first.size;
        case ACCESS_MARK: return event->text.offset > 0;
        case ACCESS_RA: return event->inode.size && event->dev.size && event->first.size;
        default: return trace_task_fields(parsed, event);
        }
}

static gboolean
load_formats(Trace *trace, GError **error)
{
        g_autoptr(GString) missing = g_string_new(NULL);
        int size = 0;
        char *header = tracefs_instance_file_read(NULL, "events/header_page", &size);

        if (!header ||
            tep_parse_header_page(trace->tep, header, (unsigned long)size, sizeof(long)) != 0) {
                free(header);
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                            "tracefs has no readable events/header_page");
                return FALSE;
        }
        free(header);

        for (guint i = 0; i < N_EVENTS; i++) {
                Event *event = &trace->events[i];

                *event = EVENTS[i];
                event->present = load_event(trace, event);
                if (!event->present && i <= EVENT_MAP)
                        g_string_append_printf(missing, "%s%s:%s", missing->len ? ", " : "",
                                               event->system, event->name);
        }
        if (missing->len)
                trace->missing = g_strdup(missing->str);
        if (!trace->events[EVENT_ADD].present &&
            !(trace->events[EVENT_READ].present && trace->events[EVENT_FAULT].present)) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                            "the kernel lacks the trace events %s", trace->missing);
                return FALSE;
        }
        return TRUE;
}

static guint
default_buffer_kb(guint n_cpus)
{
        guint64 memory_kb =
                (guint64)sysconf(_SC_PHYS_PAGES) * ((guint64)sysconf(_SC_PAGESIZE) / 1024);
        guint64 share = memory_kb / MEMORY_SHARE / MAX(n_cpus, 1);

        return (guint)CLAMP(share, BUFFER_KB_MIN, BUFFER_KB_DEFAULT);
}

static guint64
monotonic_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (guint64)now.tv_sec * 1000000000U + (guint64)now.tv_nsec;
}

static gboolean
write_file(Trace *trace, const char *file, const char *value, GError **error)
{
        if (tracefs_instance_file_write(trace->instance, file, value) >= 0)
                return TRUE;
        g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                    "cannot set tracing %s to \"%s\": %s", file, value, g_strerror(errno));
        return FALSE;
}

static gboolean
enable_events(Trace *trace, GError **error)
{
        for (guint i = 0; i < N_EVENTS; i++) {
                Event *event = &trace->events[i];

                if (!event->present || i == EVENT_PRINT || i >= EVENT_SWITCH)
                        continue;
                if (tracefs_event_enable(trace->instance, event->system, event->name) == 0)
                        continue;
                if (i >= EVENT_EXEC) {
                        event->present = FALSE;
                        continue;
                }
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                            "cannot enable the trace event %s:%s: %s", event->system, event->name,
                            g_strerror(errno));
                return FALSE;
        }
        return TRUE;
}

static gboolean
open_cpus(Trace *trace, GError **error)
{
        trace->cpus = g_new0(struct tracefs_cpu *, trace->n_cpus);
        for (guint i = 0; i < trace->n_cpus; i++) {
                trace->cpus[i] = tracefs_cpu_open(trace->instance, (int)i, TRUE);
                if (!trace->cpus[i] && errno != ENOENT && errno != ENODEV) {
                        g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                                    "cannot open the trace buffer of CPU %u: %s", i,
                                    g_strerror(errno));
                        return FALSE;
                }
                if (trace->cpus[i] && !trace->page)
                        trace->page = g_malloc((gsize)tracefs_cpu_read_size(trace->cpus[i]));
        }
        return TRUE;
}

Trace *
trace_new(pid_t pid, const char *until, guint buffer_kb, GError **error)
{
        g_autoptr(Trace) trace = g_new0(Trace, 1);
        g_autofree gchar *name = g_strdup_printf("headstart-%d", (int)getpid());
        gchar number[32];

        tep_set_loglevel(TEP_LOG_NONE);
        tracefs_set_loglevel(TEP_LOG_NONE);
        trace->pending = g_array_new(FALSE, FALSE, sizeof(AccessEvent));
        trace->texts = g_string_chunk_new(4096);
        trace->n_cpus = (guint)MAX(sysconf(_SC_NPROCESSORS_CONF), 1);
        if (until)
                trace->until = g_strdup_printf(MARK_PREFIX "%s", until);
        if (!tracefs_tracing_dir()) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                            "tracefs is not there (mount it: mount -t tracefs tracefs "
                            "/sys/kernel/tracing)");
                return NULL;
        }
        trace->tep = tep_alloc();
        trace->kbuffer = kbuffer_alloc(KBUFFER_LSIZE_SAME_AS_HOST, KBUFFER_ENDIAN_SAME_AS_HOST);
        if (!load_formats(trace, error))
                return NULL;
        if (tep_is_old_format(trace->tep))
                kbuffer_set_old_format(trace->kbuffer);

        trace->instance = tracefs_instance_create(name);
        if (!trace->instance) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                            "cannot make the tracing instance %s: %s", name, g_strerror(errno));
                return NULL;
        }
        g_snprintf(number, sizeof number, "%u",
                   buffer_kb ? buffer_kb : default_buffer_kb(trace->n_cpus));
        if (!write_file(trace, "tracing_on", "0", error) ||
            !write_file(trace, "buffer_size_kb", number, error) ||
            !write_file(trace, "trace_clock", "mono", error) ||
            !write_file(trace, "options/overwrite", "0", error) ||
            !write_file(trace, "options/event-fork", "1", error))
                return NULL;
        g_snprintf(number, sizeof number, "%d", (int)(pid > 0 ? pid : getpid()));
        if (pid > 0 && !write_file(trace, "set_event_pid", number, error))
                return NULL;
        /* Every process but this one and what it will start; before Linux 5.8 only this thread. */
        if (pid <= 0) {
                trace->own_tid = (gint32)getpid();
                tracefs_instance_file_write(trace->instance, "set_event_notrace_pid", number);
        }
        if (!enable_events(trace, error) || !open_cpus(trace, error) ||
            !write_file(trace, "tracing_on", "1", error))
                return NULL;
        trace->on_ns = monotonic_ns();
        return g_steal_pointer(&trace);
}

void
trace_free(Trace *trace)
{
        if (!trace)
                return;
        for (guint i = 0; trace->cpus && i < trace->n_cpus; i++)
                if (trace->cpus[i])
                        tracefs_cpu_close(trace->cpus[i]);
        g_free(trace->cpus);
        if (trace->instance) {
                tracefs_trace_off(trace->instance);
                tracefs_instance_destroy(trace->instance);
                tracefs_instance_free(trace->instance);
        }
        kbuffer_free(trace->kbuffer);
        if (trace->tep)
                tep_free(trace->tep);
        g_free(trace->page);
        g_free(trace->missing);
        g_free(trace->until);
        g_array_unref(trace->pending);
        g_string_chunk_free(trace->texts);
        g_free(trace);
}

ProfileSource
trace_source(const Trace *trace)
{
        return trace->events[EVENT_READ].present && trace->events[EVENT_FAULT].present
                       ? PROFILE_SOURCE_USED_PAGES
                       : PROFILE_SOURCE_READ_IN;
}

const char *
trace_missing(const Trace *trace)
{
        return trace->missing;
}

gboolean
trace_has_exec(const Trace *trace)
{
        return trace->events[EVENT_EXEC].present;
}

static inline guint64
load(const guint8 *record, Field field)
{
        switch (field.size) {
        case 1: return record[field.offset];
        case 2: {
                guint16 value;

                memcpy(&value, record + field.offset, sizeof value);
                return value;
        }
        case 4: {
                guint32 value;

                memcpy(&value, record + field.offset, sizeof value);
                return value;
        }
        case 8: {
                guint64 value;

                memcpy(&value, record + field.offset, sizeof value);
                return value;
        }
        default: return 0;
        }
}

static void
decode(Trace *trace, const guint8 *record, int size, guint64 time_ns)
{
        int id = (int)load(record, trace->type);
        const Event *event = NULL;
        AccessEvent out = {.time_ns = time_ns};
        guint64 dev;

        for (guint i = 0; i < N_EVENTS; i++)
                if (trace->events[i].present && trace->events[i].id == id) {
                        event = &trace->events[i];
                        break;
                }
        if (!event)
                return;
        out.kind = event->kind;
        out.tid = (gint32)load(record, trace->tid);
        if (trace->own_tid && out.tid == trace->own_tid)
                return;
        if (event->kind == ACCESS_MARK) {
                if (!trace_mark_decode(trace, event, record, size, &out))
                        return;
        } else if (event->kind == ACCESS_EXEC || event->kind > ACCESS_RA) {
                trace_task_decode(trace, event, record, size, &out);
        } else {
                dev = load(record, event->dev);
                out.dev = makedev(dev >> 20, dev & ((1U << 20) - 1));
                out.inode = load(record, event->inode);
                out.first = load(record, event->first);
                out.last = out.first;
                if (event->last.size)
                        out.last = load(record, event->last);
                else if (event->order.size)
                        out.last += ((guint64)1 << MIN(load(record, event->order), 20)) - 1;
        }
        g_array_append_val(trace->pending, out);
}

static int
compare_events(const void *a, const void *b)
{
        const AccessEvent *x = a, *y = b;

        return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

void
trace_read_cpu(Trace *trace, struct tracefs_cpu *cpu)
{
        unsigned long long time_ns;
        void *record;

        while (tracefs_cpu_read(cpu, trace->page, TRUE) > 0) {
                if (kbuffer_load_subbuffer(trace->kbuffer, trace->page) < 0)
                        continue;
                /* Negative: some were lost, the kernel does not know how many. */
                if (kbuffer_missed_events(trace->kbuffer))
                        trace->missed += (guint64)MAX(kbuffer_missed_events(trace->kbuffer), 1);
                while ((record = kbuffer_read_event(trace->kbuffer, &time_ns))) {
                        decode(trace, record, kbuffer_event_size(trace->kbuffer), time_ns);
                        kbuffer_next_event(trace->kbuffer, NULL);
                }
        }
}

void
trace_sort_pending(Trace *trace)
{
        if (trace->pending->len)
                qsort(trace->pending->data, trace->pending->len, sizeof(AccessEvent),
                      compare_events);
}

static void
read_until(Trace *trace, guint64 limit_ns, TraceFunc func, gpointer data)
{
        guint n = 0;

        for (guint i = 0; i < trace->n_cpus; i++)
                if (trace->cpus[i])
                        trace_read_cpu(trace, trace->cpus[i]);
        trace_sort_pending(trace);
        for (; n < trace->pending->len; n++) {
                const AccessEvent *event = &g_array_index(trace->pending, AccessEvent, n);

                if (event->time_ns >= limit_ns)
                        break;
                func(event, data);
        }
        if (n)
                g_array_remove_range(trace->pending, 0, n);
}

void
trace_read(Trace *trace, TraceFunc func, gpointer data)
{
        read_until(trace, monotonic_ns(), func, data);
}

/* Each line of per_cpu/cpuN/stats is "name: value". */
static guint64
lost_on_cpu(struct tracefs_instance *instance, guint cpu)
{
        static const char *const LOSSES[] = {"overrun", "commit overrun", "dropped events"};
        g_autofree gchar *file = g_strdup_printf("per_cpu/cpu%u/stats", cpu);
        char *text = tracefs_instance_file_read(instance, file, NULL);
        g_auto(GStrv) lines = text ? g_strsplit(text, "\n", -1) : NULL;
        guint64 lost = 0;

        free(text);
        for (guint i = 0; lines && lines[i]; i++) {
                gchar *colon = strchr(lines[i], ':');

                if (!colon)
                        continue;
                *colon = '\0';
                for (guint k = 0; k < G_N_ELEMENTS(LOSSES); k++)
                        if (strcmp(lines[i], LOSSES[k]) == 0)
                                lost += g_ascii_strtoull(colon + 1, NULL, 10);
        }
        return lost;
}

guint64
trace_lost_events(struct tracefs_instance *instance, guint n_cpus)
{
        guint64 lost = 0;

        for (guint i = 0; i < n_cpus; i++)
                lost += lost_on_cpu(instance, i);
        return lost;
}

guint64
trace_stop(Trace *trace, TraceFunc func, gpointer data)
{
        tracefs_trace_off(trace->instance);
        read_until(trace, G_MAXUINT64, func, data);
        return MAX(trace_lost_events(trace->instance, trace->n_cpus), trace->missed);
}

gint
trace_mark(const char *text, GError **error)
{
        g_autofree gchar *line = g_strdup_printf("headstart: %s", text);
        char **names;
        gint n = 0, found = 0;

        tracefs_set_loglevel(TEP_LOG_NONE);
        if (!tracefs_tracing_dir()) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED, "tracefs is not there");
                return -1;
        }
        names = tracefs_instances(NULL);
        if (!names) {
                char *folder = tracefs_get_tracing_file("instances");
                const gboolean readable = folder && access(folder, R_OK | X_OK) == 0;

                tracefs_put_tracing_file(folder);
                if (readable) /* there are none */
                        return 0;
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                            geteuid() ? "marking through tracefs needs root; a program can mark by "
                                        "access(\"MARK: TEXT\", 0)"
                                      : "tracefs has no instances here: nothing could be marked");
                return -1;
        }
        for (guint i = 0; names[i]; i++) {
                struct tracefs_instance *instance;

                if (!g_str_has_prefix(names[i], "headstart-"))
                        continue;
                found++;
                instance = tracefs_instance_alloc(NULL, names[i]);

                if (instance && tracefs_instance_file_write(instance, "trace_marker", line) >= 0)
                        n++;
                if (instance)
                        tracefs_instance_free(instance);
        }
        if (found > 0 && n == 0) {
                tracefs_list_free(names);
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                            "the trace marker cannot be written: %s", g_strerror(errno));
                return -1;
        }
        tracefs_list_free(names);
        return n;
}
