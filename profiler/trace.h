// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Page-cache events of one command and its descendants, from a tracing instance of our own named
 * headstart-PID, so that nobody else's tracing is touched.
 *
 * Formats, event names and field offsets are read from the running kernel; what is missing decides
 * the source (trace_source()). The buffers keep the oldest events when they overflow, and
 * trace_stop() says how many were lost. The instance goes away with trace_free(); what a killed
 * process leaves is removed by settings_repair().
 */
#pragma once

#include <glib.h>
#include <sys/types.h>

#include "profiler/collect.h"

typedef struct Trace Trace;

/* Sets up the instance for the process (not started yet) and all it will fork; with pid 0 for every
 * process but this one and those it starts from now on. `until` is the mark
 * reported as ACCESS_MARK, or NULL. buffer_kb per CPU, 0 = by the memory of the machine. Errors:
 * COMMON_ERROR_UNSUPPORTED naming what is missing (tracefs, every page-cache event). */
Trace *trace_new(pid_t pid, const char *until, guint buffer_kb, GError **error);
/* Removes the instance. */
void trace_free(Trace *trace);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Trace, trace_free)

/* USED_PAGES, or READ_IN where the kernel lacks the events of used pages. */
ProfileSource trace_source(const Trace *trace);
/* What the kernel lacks for used pages, one text for people; NULL = nothing. */
const char *trace_missing(const Trace *trace);
/* TRUE when ACCESS_EXEC will be reported. */
gboolean trace_has_exec(const Trace *trace);

/* Also ACCESS_SWITCH and ACCESS_WAKE and, where *ret_syscalls is set, ACCESS_SYSCALL. Before the
 * command is released. Errors: COMMON_ERROR_UNSUPPORTED. */
gboolean trace_add_waits(Trace *trace, gboolean *ret_syscalls, GError **error);

typedef void (*TraceFunc)(const AccessEvent *event, gpointer data);

/* Hands on what has been recorded since the last call, in order of time; never waits. To be called
 * a few times a second: each call costs a system call a CPU and some 30 ns an event. */
void trace_read(Trace *trace, TraceFunc func, gpointer data);

/* Stops recording, hands on the rest and returns the number of events lost. */
guint64 trace_stop(Trace *trace, TraceFunc func, gpointer data);

/* What ran before the recorder: events of the instance named "headstart", which the kernel command
 * line makes (trace_instance=headstart,...; see docs/early-boot.md). Its tracing is turned off for
 * good, its events older than this trace are handed on in order of time, its memory is given back.
 * FALSE when there is no such instance or it does not trace. *ret_lost, *ret_first_ns (monotonic,
 * of the oldest event) are set when it returns TRUE. Call before the first trace_read(). */
gboolean trace_read_early(Trace *trace, TraceFunc func, gpointer data, guint64 *ret_events,
                          guint64 *ret_lost, guint64 *ret_first_ns);

/* Writes "headstart: TEXT" into every instance named headstart-*. Returns how many took it. Errors:
 * COMMON_ERROR_UNSUPPORTED (no tracefs). */
gint trace_mark(const char *text, GError **error);
