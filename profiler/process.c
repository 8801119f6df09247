// SPDX-License-Identifier: GPL-2.0-or-later
/* Who runs: see process.h. */
#include "profiler/process.h"

#define NO_THREAD G_MAXUINT32

typedef struct {
        gint32 tid;
        guint32 process; /* number */
} Thread;

typedef struct {
        gint32 pid;
        guint32 parent; /* number */
        guint64 start_us, exit_us;
        const gchar *comm, *executable; /* in the chunk; NULL = none */
} Process;

struct ProcessTable {
        GArray *threads;    /* Thread */
        GArray *processes;  /* Process */
        GHashTable *by_tid; /* tid -> index + 1 in threads */
        GStringChunk *texts;
        gint32 last_tid; /* cache; 0 = none */
        guint32 last_thread;
};

ProcessTable *
process_table_new(void)
{
        ProcessTable *table = g_new0(ProcessTable, 1);

        table->threads = g_array_new(FALSE, FALSE, sizeof(Thread));
        table->processes = g_array_new(FALSE, FALSE, sizeof(Process));
        table->by_tid = g_hash_table_new(NULL, NULL);
        table->texts = g_string_chunk_new(1024);
        return table;
}

void
process_table_free(ProcessTable *table)
{
        if (!table)
                return;
        g_array_unref(table->threads);
        g_array_unref(table->processes);
        g_hash_table_unref(table->by_tid);
        g_string_chunk_free(table->texts);
        g_free(table);
}

static Process *
process_at(const ProcessTable *table, guint32 number)
{
        return &g_array_index(table->processes, Process, number - 1);
}

static const gchar *
keep(ProcessTable *table, const char *text)
{
        return text ? g_string_chunk_insert_const(table->texts, text) : NULL;
}

static guint32
add_thread(ProcessTable *table, gint32 tid, guint32 process)
{
        Thread thread = {tid, process};

        g_array_append_val(table->threads, thread);
        g_hash_table_insert(table->by_tid, GINT_TO_POINTER(tid),
                            GUINT_TO_POINTER(table->threads->len));
        table->last_tid = 0;
        return table->threads->len - 1;
}

static guint32
add_process(ProcessTable *table, gint32 pid, guint32 parent, guint64 start_us, const char *comm)
{
        Process process = {.pid = pid,
                           .parent = parent,
                           .start_us = start_us,
                           .comm = keep(table, comm),
                           .executable = parent ? process_at(table, parent)->executable : NULL};

        g_array_append_val(table->processes, process);
        return table->processes->len;
}

guint32
process_table_find(const ProcessTable *table, gint32 tid)
{
        gpointer found = g_hash_table_lookup(table->by_tid, GINT_TO_POINTER(tid));

        return found ? GPOINTER_TO_UINT(found) - 1 : NO_THREAD;
}

guint32
process_table_thread(ProcessTable *table, gint32 tid)
{
        guint32 thread;

        if (tid && tid == table->last_tid)
                return table->last_thread;
        thread = process_table_find(table, tid);
        if (thread == NO_THREAD)
                thread = add_thread(table, tid, add_process(table, tid, 0, 0, NULL));
        table->last_tid = tid;
        table->last_thread = thread;
        return thread;
}

guint32
process_table_process(const ProcessTable *table, guint32 thread)
{
        return g_array_index(table->threads, Thread, thread).process;
}

gint32
process_table_tid(const ProcessTable *table, guint32 thread)
{
        return g_array_index(table->threads, Thread, thread).tid;
}

guint
process_table_n_threads(const ProcessTable *table)
{
        return table->threads->len;
}

guint
process_table_n(const ProcessTable *table)
{
        return table->processes->len;
}

void
process_table_seed(ProcessTable *table, gint32 pid, gint32 parent_pid, const char *comm,
                   const char *executable)
{
        guint32 parent = process_table_find(table, parent_pid);
        guint32 number;

        if (process_table_find(table, pid) != NO_THREAD)
                return;
        number = add_process(table, pid,
                             parent == NO_THREAD ? 0 : process_table_process(table, parent), 0,
                             comm);
        process_at(table, number)->executable = keep(table, executable);
        add_thread(table, pid, number);
}

void
process_table_seed_thread(ProcessTable *table, gint32 tid, gint32 pid)
{
        guint32 leader = process_table_find(table, pid);

        if (leader != NO_THREAD && process_table_find(table, tid) == NO_THREAD)
                add_thread(table, tid, process_table_process(table, leader));
}

void
process_table_fork(ProcessTable *table, guint64 time_us, gint32 parent_tid, gint32 tid,
                   gboolean is_thread, const char *comm)
{
        guint32 parent = process_table_process(table, process_table_thread(table, parent_tid));

        add_thread(table, tid, is_thread ? parent : add_process(table, tid, parent, time_us, comm));
}

void
process_table_exec(ProcessTable *table, guint64 time_us, gint32 tid, const char *filename)
{
        guint32 number = process_table_process(table, process_table_thread(table, tid));
        Process *process = process_at(table, number);

        (void)time_us;
        /* Other threads than the leader take over its id in an exec. */
        process->pid = tid;
        if (filename)
                process->executable = keep(table, filename);
}

void
process_table_name(ProcessTable *table, gint32 tid, const char *comm)
{
        guint32 thread = process_table_thread(table, tid);
        Process *process = process_at(table, process_table_process(table, thread));

        /* The name of a process is its leader's. */
        if (comm && process->pid == tid)
                process->comm = keep(table, comm);
}

void
process_table_exit(ProcessTable *table, guint64 time_us, gint32 tid, gboolean whole_process)
{
        guint32 thread = process_table_find(table, tid);
        Process *process;

        if (thread == NO_THREAD)
                return;
        process = process_at(table, process_table_process(table, thread));
        if (whole_process || process->pid == tid)
                process->exit_us = MAX(time_us, 1);
}

void
process_table_fill(const ProcessTable *table, Profile *profile)
{
        for (guint i = 0; i < table->processes->len; i++) {
                const Process *process = &g_array_index(table->processes, Process, i);
                ProfileProcess out = {
                        .pid = process->pid,
                        .parent = process->parent,
                        .start_us = process->start_us,
                        .exit_us = process->exit_us,
                        .comm = (gchar *)process->comm,
                        .executable = (gchar *)process->executable,
                };

                profile_add_process(profile, &out);
        }
}
