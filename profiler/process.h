// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Who runs: processes and their threads, from the events of their making, executing and ending.
 * Pure. Processes are numbered from 1 in the order in which they were first seen, parents before
 * their children, as Profile.processes wants it. A thread id that is used again means the thread
 * made last. Costs one hash look-up where the thread changes.
 */
#pragma once

#include <glib.h>

#include "common/profile.h"

typedef struct ProcessTable ProcessTable;

ProcessTable *process_table_new(void);
void process_table_free(ProcessTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ProcessTable, process_table_free)

/* One that ran before the recording; its threads share `pid`. Texts may be NULL. Those that have a
 * parent in the table must come after it. */
void process_table_seed(ProcessTable *table, gint32 pid, gint32 parent_pid, const char *comm,
                        const char *executable);
void process_table_seed_thread(ProcessTable *table, gint32 tid, gint32 pid);

/* Times in microseconds since the start of the recording. */
void process_table_fork(ProcessTable *table, guint64 time_us, gint32 parent_tid, gint32 tid,
                        gboolean is_thread, const char *comm);
void process_table_exec(ProcessTable *table, guint64 time_us, gint32 tid, const char *filename);
void process_table_name(ProcessTable *table, gint32 tid, const char *comm);
void process_table_exit(ProcessTable *table, guint64 time_us, gint32 tid, gboolean whole_process);

/* Index of the thread, from 0 without gaps; an unknown thread becomes a process of its own. */
guint32 process_table_thread(ProcessTable *table, gint32 tid);
/* The same, G_MAXUINT32 for an unknown one. */
guint32 process_table_find(const ProcessTable *table, gint32 tid);
/* Number of the process that the thread (index) belongs to. */
guint32 process_table_process(const ProcessTable *table, guint32 thread);
gint32 process_table_tid(const ProcessTable *table, guint32 thread);
guint process_table_n_threads(const ProcessTable *table);
guint process_table_n(const ProcessTable *table);

/* Every process to profile->processes, which must be empty. */
void process_table_fill(const ProcessTable *table, Profile *profile);
