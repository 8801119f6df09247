// SPDX-License-Identifier: GPL-2.0-or-later
/* Who runs now, from /proc: for recordings of the whole machine. */
#pragma once

#include "profiler/process.h"

/* Seeds every process and thread, parents first; kernel threads are left out. Best effort. */
void process_scan(ProcessTable *table);
