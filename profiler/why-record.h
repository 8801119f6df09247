// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The reasons for waiting in a recording: BPF where it can be loaded, else switches of the trace.
 */
#pragma once

#include <glib.h>

#include "profiler/collect.h"
#include "profiler/trace.h"

typedef enum { WHY_WAY_AUTO, WHY_WAY_BPF, WHY_WAY_TRACEFS } WhyWay;

typedef struct WhyRecorder WhyRecorder;

/* `pid` as for trace_new(). With `waits` FALSE only the marks of access() are wanted, which BPF
 * alone sees. *ret_note says, for people, what was missing for BPF; NULL = nothing. Errors:
 * COMMON_ERROR_UNSUPPORTED when no way works that `way` allows. */
WhyRecorder *why_recorder_new(pid_t pid, Trace *trace, WhyWay way, gboolean waits, gchar **ret_note,
                              GError **error);
void why_recorder_free(WhyRecorder *recorder);

/* "bpf", "tracefs" or, when the system calls could not be traced, "tracefs-states". */
const char *why_recorder_source(const WhyRecorder *recorder);
gboolean why_recorder_has_marks(const WhyRecorder *recorder);

/* Time zero and who runs are known: to be called before the first event. The marks of access() go
 * to `mark` as ACCESS_MARK. */
void why_recorder_begin(WhyRecorder *recorder, Collector *collector, guint64 start_ns,
                        TraceFunc mark, gpointer data);
/* After the collector has taken the event. */
void why_recorder_event(WhyRecorder *recorder, const AccessEvent *event);
/* After each trace_read(). */
void why_recorder_read(WhyRecorder *recorder);
/* After trace_stop(). Returns what was lost. */
guint64 why_recorder_stop(WhyRecorder *recorder);
/* After build_files(): fills profile->waits. */
void why_recorder_fill(WhyRecorder *recorder, Collector *collector, Profile *profile);
