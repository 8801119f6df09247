// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The processes of a traced command as far as names depend on them: working directories, roots and
 * descriptor tables, shared and inherited as clone's flags say. Used by the import of strace logs
 * only.
 */
#pragma once

#include <glib.h>

#include "profiler/import.h"
#include "profiler/strace-line.h"

#define TRACE_CWD (-100) /* AT_FDCWD */

/* An open file description: dup'ed and inherited descriptors share it, and its offset. */
typedef struct {
        guint refs;
        guint32 path;   /* in ImportList.paths; G_MAXUINT32 = no file, or not known which */
        gboolean known; /* FALSE: a file perhaps, but nothing says which */
        gboolean write_only;
        guint64 offset_bytes;
} TraceFile;

typedef struct {
        guint refs;
        GHashTable *files; /* descriptor -> TraceSlot * */
} TraceTable;

typedef struct {
        TraceFile *file;
        gboolean close_on_exec;
} TraceSlot;

typedef struct {
        guint refs;
        gchar *cwd;  /* NULL = not known */
        gchar *root; /* NULL = none */
} TraceDirs;

typedef struct {
        gint64 pid;
        guint32 number; /* in ImportList.processes */
        TraceTable *table;
        TraceDirs *dirs;
        /* a call that is not finished */
        GString *pending; /* its arguments so far; NULL = none */
        gchar *pending_name;
        guint64 pending_us;
        GList *forking; /* its place in TraceState.forking, NULL = not there */
} TraceProcess;

typedef struct {
        ImportList *list;
        GHashTable *processes; /* pid -> TraceProcess * */
        gchar *cwd;            /* where a process without a parent is */
        GQueue forking;        /* TraceProcess *: in clone and the like, oldest first */
} TraceState;

void trace_state_init(TraceState *state, ImportList *list, const char *cwd);
void trace_state_clear(TraceState *state);

/* The process; made when new, as a child of one that is just forking, else without a parent. */
TraceProcess *trace_process(TraceState *state, gint64 pid, guint64 time_us);
TraceProcess *trace_process_find(TraceState *state, gint64 pid);
/* The child of a fork that returned; `flags` are clone's ("" for fork). */
void trace_process_fork(TraceState *state, TraceProcess *parent, gint64 child, Slice flags,
                        guint64 time_us);
void trace_process_exit(TraceState *state, TraceProcess *process, guint64 time_us);
/* It gets another number (what was seen without one turns out to be this one). */
void trace_process_rename(TraceState *state, TraceProcess *process, gint64 pid);
void trace_process_set_pending(TraceState *state, TraceProcess *process, Slice name, Slice rest,
                               guint64 time_us);
void trace_process_drop_pending(TraceState *state, TraceProcess *process);

/* TRUE for clone, clone3, fork and vfork. */
gboolean trace_is_fork(Slice name);

TraceFile *trace_file_new(guint32 path, gboolean known);
void trace_file_unref(TraceFile *file);
/* NULL when nothing is known of the descriptor. */
TraceFile *trace_fd_get(const TraceProcess *process, gint64 fd);
/* Takes the reference. */
void trace_fd_set(TraceState *state, TraceProcess *process, gint64 fd, TraceFile *file,
                  gboolean close_on_exec);
void trace_fd_set_close_on_exec(TraceProcess *process, gint64 fd, gboolean close_on_exec);
void trace_fd_close(TraceProcess *process, gint64 fd);
void trace_fd_close_range(TraceProcess *process, gint64 first, gint64 last, gboolean on_exec);
/* execve: the table is its own from now on, without what is closed on exec. */
void trace_table_exec(TraceProcess *process);
/* unshare(2). */
void trace_table_unshare(TraceProcess *process);
void trace_dirs_unshare(TraceProcess *process);
