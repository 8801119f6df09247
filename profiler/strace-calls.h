// SPDX-License-Identifier: GPL-2.0-or-later
/* What the system calls of a strace log mean for files. Used by profiler/import-strace.c only. */
#pragma once

#include "profiler/strace-line.h"
#include "profiler/strace-state.h"

/* TRUE when the call of this name matters; others need not be taken apart. */
gboolean trace_call_matters(Slice name);

/* A whole call of that process; `time_us` is when it began. */
void trace_call(TraceState *state, TraceProcess *process, Slice name, const StraceCall *call,
                guint64 time_us);
