// SPDX-License-Identifier: GPL-2.0-or-later
/* Reasons for waiting while recording: see why-record.h. */
#include "profiler/why-record.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "common/error.h"
#include "profiler/why-bpf.h"
#include "profiler/why.h"

struct WhyRecorder {
        WhyBpf *bpf; /* NULL: the trace */
        gboolean waits;
        gboolean syscalls; /* of the trace */
        Why *why;
        TraceFunc mark;
        gpointer mark_data;
};

/* The descriptor of a thread that waits now, so it is open still (it may just have been closed). */
static void
look_at_descriptor(gint32 tid, guint64 descriptor, guint32 *ret_mode, guint32 *ret_rdev)
{
        gchar path[64];
        struct stat st;

        if (descriptor > G_MAXINT)
                return;
        g_snprintf(path, sizeof path, "/proc/%d/fd/%d", tid, (int)descriptor);
        if (stat(path, &st) != 0)
                return;
        *ret_mode = st.st_mode;
        *ret_rdev = (guint32)(major(st.st_rdev) << 20 | minor(st.st_rdev));
}

WhyRecorder *
why_recorder_new(pid_t pid, Trace *trace, WhyWay way, gboolean waits, gchar **ret_note,
                 GError **error)
{
        WhyRecorder *recorder = g_new0(WhyRecorder, 1);
        g_autoptr(GError) local = NULL;

        *ret_note = NULL;
        recorder->waits = waits;
        if (way != WHY_WAY_TRACEFS)
                recorder->bpf = why_bpf_new(pid, &local);
        if (recorder->bpf)
                return recorder;
        if (way != WHY_WAY_BPF && waits && trace &&
            trace_add_waits(trace, &recorder->syscalls, error)) {
                if (local)
                        *ret_note = g_strdup(local->message);
                return recorder;
        }
        if (error && !*error) {
                if (local)
                        g_propagate_error(error, g_steal_pointer(&local));
                else
                        g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                                    "reasons for waiting need tracing");
        }
        g_free(recorder);
        return NULL;
}

void
why_recorder_free(WhyRecorder *recorder)
{
        if (!recorder)
                return;
        why_bpf_free(recorder->bpf);
        why_free(recorder->why);
        g_free(recorder);
}

const char *
why_recorder_source(const WhyRecorder *recorder)
{
        return recorder->bpf ? "bpf" : recorder->syscalls ? "tracefs" : "tracefs-states";
}

gboolean
why_recorder_has_marks(const WhyRecorder *recorder)
{
        return recorder->bpf && why_bpf_has_marks(recorder->bpf);
}

void
why_recorder_begin(WhyRecorder *recorder, Collector *collector, guint64 start_ns, TraceFunc mark,
                   gpointer data)
{
        recorder->why = why_new(collector_processes(collector), start_ns, WHY_WAITS_MAX,
                                recorder->bpf ? NULL : look_at_descriptor);
        recorder->mark = mark;
        recorder->mark_data = data;
}

void
why_recorder_event(WhyRecorder *recorder, const AccessEvent *event)
{
        if (!recorder->bpf)
                why_event(recorder->why, event);
}

static void
on_spell(const WhySpell *spell, gpointer data)
{
        WhyRecorder *recorder = data;

        if (recorder->waits)
                why_add(recorder->why, spell);
}

static void
on_mark(gint32 tid, guint64 time_ns, const char *text, gpointer data)
{
        WhyRecorder *recorder = data;
        AccessEvent event = {.kind = ACCESS_MARK, .tid = tid, .time_ns = time_ns, .text = text};

        recorder->mark(&event, recorder->mark_data);
}

void
why_recorder_read(WhyRecorder *recorder)
{
        if (recorder->bpf)
                why_bpf_read(recorder->bpf, on_spell, on_mark, recorder);
}

guint64
why_recorder_stop(WhyRecorder *recorder)
{
        struct timespec now;

        if (recorder->bpf)
                return why_bpf_stop(recorder->bpf, on_spell, on_mark, recorder);
        clock_gettime(CLOCK_MONOTONIC, &now);
        why_finish(recorder->why, (guint64)now.tv_sec * 1000000000U + (guint64)now.tv_nsec);
        return 0;
}

void
why_recorder_fill(WhyRecorder *recorder, Collector *collector, Profile *profile)
{
        if (!recorder->waits)
                return;
        why_fill(recorder->why, profile);
        collector_name_waits(collector, profile);
}
