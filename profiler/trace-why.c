// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Switches, wake-ups and the system calls that may wait, added to a trace. The latter only through
 * a filter: every system call of a recorded thread takes the slower way in then, but few are
 * written down. Without them the reasons are what the state alone tells.
 */
#include <errno.h>

#include "common/error.h"
#include "profiler/trace-internal.h"
#include "profiler/why.h"

static gboolean
enable(Trace *trace, guint index)
{
        Event *event = &trace->events[index];

        return event->present &&
               tracefs_event_enable(trace->instance, event->system, event->name) == 0;
}

static gboolean
filter_syscalls(Trace *trace)
{
        g_autoptr(GString) filter = g_string_new(NULL);
        const gint32 *numbers = why_syscalls();

        for (guint i = 0; numbers[i] >= 0; i++)
                g_string_append_printf(filter, "%sid==%d", i ? "||" : "", numbers[i]);
        return tracefs_event_file_write(trace->instance, "raw_syscalls", "sys_enter", "filter",
                                        filter->str) >= 0;
}

gboolean
trace_add_waits(Trace *trace, gboolean *ret_syscalls, GError **error)
{
        if (!enable(trace, EVENT_SWITCH) || !enable(trace, EVENT_WAKE)) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                            "the kernel lacks the trace events sched:sched_switch, "
                            "sched:sched_waking");
                return FALSE;
        }
        *ret_syscalls = trace->events[EVENT_SYSCALL].present && filter_syscalls(trace) &&
                        enable(trace, EVENT_SYSCALL);
        return TRUE;
}
