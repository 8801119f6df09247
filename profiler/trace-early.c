// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Events from before the recorder: the tracing instance that the kernel command line made.
 *
 * Its clock is sched_clock ("local") unless the command line says otherwise, and changing it would
 * empty the buffers; so its times are moved to CLOCK_MONOTONIC by the difference of the two clocks
 * now, which is known to the microsecond that per_cpu/cpuN/stats prints.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "profiler/trace-internal.h"

#define EARLY_INSTANCE "headstart"
#define EARLY_BUFFER_KB "4"

static guint64
monotonic_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (guint64)now.tv_sec * 1000000000U + (guint64)now.tv_nsec;
}

/* "local [mono] ..." -> "mono" */
static gchar *
chosen_clock(struct tracefs_instance *instance)
{
        char *text = tracefs_instance_file_read(instance, "trace_clock", NULL);
        const char *from = text ? strchr(text, '[') : NULL;
        const char *to = from ? strchr(from, ']') : NULL;
        gchar *clock = to ? g_strndup(from + 1, (gsize)(to - from - 1)) : NULL;

        free(text);
        return clock;
}

/* What to add to the instance's times. FALSE for clocks that do not count nanoseconds. */
static gboolean
clock_difference(struct tracefs_instance *instance, gint64 *ret_ns)
{
        static const char *const IN_NS[] = {"local", "global", "perf", "mono_raw",
                                            "boot",  "tai",    NULL};
        g_autofree gchar *clock = chosen_clock(instance);
        guint64 before = monotonic_ns(), after;
        const char *line;
        char *text;
        double now_s;

        *ret_ns = 0;
        if (g_strcmp0(clock, "mono") == 0)
                return TRUE;
        if (!clock || !g_strv_contains(IN_NS, clock))
                return FALSE;
        text = tracefs_instance_file_read(instance, "per_cpu/cpu0/stats", NULL);
        after = monotonic_ns();
        line = text ? strstr(text, "now ts:") : NULL;
        now_s = line ? g_ascii_strtod(line + strlen("now ts:"), NULL) : 0;
        free(text);
        if (now_s <= 0)
                return FALSE;
        *ret_ns = (gint64)(before + (after - before) / 2) - (gint64)(now_s * 1e9);
        return TRUE;
}

static gboolean
is_tracing(struct tracefs_instance *instance)
{
        return tracefs_trace_is_on(instance) > 0;
}

static void
read_all(Trace *trace, struct tracefs_instance *instance)
{
        for (guint i = 0; i < trace->n_cpus; i++) {
                struct tracefs_cpu *cpu = tracefs_cpu_open(instance, (int)i, TRUE);

                if (!cpu)
                        continue;
                trace_read_cpu(trace, cpu);
                tracefs_cpu_close(cpu);
        }
}

gboolean
trace_read_early(Trace *trace, TraceFunc func, gpointer data, guint64 *ret_events,
                 guint64 *ret_lost, guint64 *ret_first_ns)
{
        struct tracefs_instance *instance;
        GArray *own = trace->pending;
        guint64 missed = trace->missed, events = 0;
        gint64 difference_ns = 0;

        if (!tracefs_instance_exists(EARLY_INSTANCE) ||
            !(instance = tracefs_instance_alloc(NULL, EARLY_INSTANCE)))
                return FALSE;
        if (!is_tracing(instance) || !clock_difference(instance, &difference_ns)) {
                tracefs_instance_free(instance);
                return FALSE;
        }
        tracefs_trace_off(instance);

        trace->pending = g_array_new(FALSE, FALSE, sizeof(AccessEvent));
        read_all(trace, instance);
        *ret_lost = MAX(trace_lost_events(instance, trace->n_cpus), trace->missed - missed);
        trace->missed = missed;
        trace_sort_pending(trace);
        *ret_first_ns = trace->on_ns;
        for (guint i = 0; i < trace->pending->len; i++) {
                AccessEvent *event = &g_array_index(trace->pending, AccessEvent, i);

                event->time_ns = (guint64)MAX((gint64)event->time_ns + difference_ns, 0);
                /* From here on our own instance has them. */
                if (event->time_ns >= trace->on_ns)
                        break;
                if (events++ == 0)
                        *ret_first_ns = event->time_ns;
                func(event, data);
        }
        *ret_events = events;
        g_array_unref(trace->pending);
        trace->pending = own;
        tracefs_instance_file_write(instance, "buffer_size_kb", EARLY_BUFFER_KB);
        tracefs_instance_free(instance);
        return TRUE;
}
