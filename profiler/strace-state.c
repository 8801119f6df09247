// SPDX-License-Identifier: GPL-2.0-or-later
/* Who is where and has what open. */
#include "profiler/strace-state.h"

#include <string.h>

/* A hostile log must not make every fork copy a million descriptors. */
#define TABLE_MAX 16384
#define PROCESSES_MAX 200000 /* further ones are "not known" */

static TraceTable *
table_new(void)
{
        TraceTable *table = g_new0(TraceTable, 1);

        table->refs = 1;
        return table;
}

static void
slot_free(gpointer data)
{
        TraceSlot *slot = data;

        trace_file_unref(slot->file);
        g_free(slot);
}

static GHashTable *
table_files(TraceTable *table)
{
        if (!table->files)
                table->files = g_hash_table_new_full(NULL, NULL, NULL, slot_free);
        return table->files;
}

static void
table_unref(TraceTable *table)
{
        if (--table->refs > 0)
                return;
        g_clear_pointer(&table->files, g_hash_table_unref);
        g_free(table);
}

static TraceTable *
table_copy(const TraceTable *table)
{
        TraceTable *copy = table_new();
        GHashTableIter iter;
        gpointer fd, value;

        if (!table->files)
                return copy;
        g_hash_table_iter_init(&iter, table->files);
        while (g_hash_table_iter_next(&iter, &fd, &value)) {
                TraceSlot *slot = g_new(TraceSlot, 1);

                *slot = *(TraceSlot *)value;
                slot->file->refs++;
                g_hash_table_insert(table_files(copy), fd, slot);
        }
        return copy;
}

static TraceDirs *
dirs_new(const char *cwd, const char *root)
{
        TraceDirs *dirs = g_new0(TraceDirs, 1);

        dirs->refs = 1;
        dirs->cwd = g_strdup(cwd);
        dirs->root = g_strdup(root);
        return dirs;
}

static void
dirs_unref(TraceDirs *dirs)
{
        if (--dirs->refs > 0)
                return;
        g_free(dirs->cwd);
        g_free(dirs->root);
        g_free(dirs);
}

static void
process_free(gpointer data)
{
        TraceProcess *process = data;

        table_unref(process->table);
        dirs_unref(process->dirs);
        if (process->pending)
                g_string_free(process->pending, TRUE);
        g_free(process->pending_name);
        g_free(process);
}

void
trace_state_init(TraceState *state, ImportList *list, const char *cwd)
{
        state->list = list;
        state->cwd = g_strdup(cwd);
        state->processes = g_hash_table_new_full(NULL, NULL, NULL, process_free);
        g_queue_init(&state->forking);
}

void
trace_state_clear(TraceState *state)
{
        g_queue_clear(&state->forking);
        g_clear_pointer(&state->processes, g_hash_table_unref);
        g_clear_pointer(&state->cwd, g_free);
}

static guint32
add_number(TraceState *state, gint64 pid, guint32 parent, guint64 time_us)
{
        ImportProcess entry = {.pid = pid, .parent = parent, .start_us = parent ? time_us : 0};

        if (state->list->processes->len >= PROCESSES_MAX)
                return 0;
        g_array_append_val(state->list->processes, entry);
        return state->list->processes->len;
}

static gboolean
has_flag(Slice flags, const char *flag)
{
        return flags.n > 0 && strace_has_flag(flags, flag);
}

static void
inherit(TraceProcess *child, TraceProcess *parent, Slice flags)
{
        if (child->table)
                table_unref(child->table);
        if (child->dirs)
                dirs_unref(child->dirs);
        if (has_flag(flags, "CLONE_FILES")) {
                child->table = parent->table;
                child->table->refs++;
        } else {
                child->table = table_copy(parent->table);
        }
        if (has_flag(flags, "CLONE_FS")) {
                child->dirs = parent->dirs;
                child->dirs->refs++;
        } else {
                child->dirs = dirs_new(parent->dirs->cwd, parent->dirs->root);
        }
}

static TraceProcess *
add_child(TraceState *state, TraceProcess *parent, gint64 pid, Slice flags, guint64 time_us)
{
        TraceProcess *child = g_new0(TraceProcess, 1);

        child->pid = pid;
        /* a thread is its process */
        child->number = has_flag(flags, "CLONE_THREAD")
                                ? parent->number
                                : add_number(state, pid, parent->number, time_us);
        inherit(child, parent, flags);
        g_hash_table_insert(state->processes, GINT_TO_POINTER((gint)pid), child);
        return child;
}

TraceProcess *
trace_process_find(TraceState *state, gint64 pid)
{
        return g_hash_table_lookup(state->processes, GINT_TO_POINTER((gint)pid));
}

TraceProcess *
trace_process(TraceState *state, gint64 pid, guint64 time_us)
{
        TraceProcess *process = trace_process_find(state, pid);

        if (process)
                return process;
        if (!g_queue_is_empty(&state->forking)) {
                TraceProcess *parent = g_queue_pop_head(&state->forking);
                Slice flags = {parent->pending->str, parent->pending->len};

                parent->forking = NULL;
                return add_child(state, parent, pid, flags, time_us);
        }
        process = g_new0(TraceProcess, 1);
        process->pid = pid;
        process->number = add_number(state, pid, 0, time_us);
        process->table = table_new();
        process->dirs = dirs_new(state->cwd, NULL);
        g_hash_table_insert(state->processes, GINT_TO_POINTER((gint)pid), process);
        return process;
}

void
trace_process_fork(TraceState *state, TraceProcess *parent, gint64 child_pid, Slice flags,
                   guint64 time_us)
{
        TraceProcess *child = trace_process_find(state, child_pid);

        if (child == parent || child_pid <= 0 || child_pid > STRACE_PID_MAX)
                return;
        if (!child) {
                add_child(state, parent, child_pid, flags, time_us);
        } else if (child->number != parent->number && child->number > parent->number) {
                /* It ran before its parent's call returned. It was taken for the child of the one
                 * that had called first; the names it used until now were resolved by that. */
                ImportProcess *entry =
                        &g_array_index(state->list->processes, ImportProcess, child->number - 1);

                if (entry->parent != parent->number && !child->pending) {
                        entry->parent = parent->number;
                        inherit(child, parent, flags);
                }
        }
}

void
trace_process_drop_pending(TraceState *state, TraceProcess *process)
{
        if (!process->pending)
                return;
        g_string_free(process->pending, TRUE);
        process->pending = NULL;
        g_clear_pointer(&process->pending_name, g_free);
        if (process->forking)
                g_queue_delete_link(&state->forking, process->forking);
        process->forking = NULL;
}

gboolean
trace_is_fork(Slice name)
{
        static const char *const names[] = {"clone", "clone3", "fork", "vfork"};

        for (guint i = 0; i < G_N_ELEMENTS(names); i++)
                if (name.n == strlen(names[i]) && memcmp(name.p, names[i], name.n) == 0)
                        return TRUE;
        return FALSE;
}

void
trace_process_set_pending(TraceState *state, TraceProcess *process, Slice name, Slice rest,
                          guint64 time_us)
{
        trace_process_drop_pending(state, process);
        process->pending = g_string_new_len(rest.p, (gssize)rest.n);
        process->pending_name = g_strndup(name.p, name.n);
        process->pending_us = time_us;
        if (trace_is_fork(name)) {
                g_queue_push_tail(&state->forking, process);
                process->forking = state->forking.tail;
        }
}

void
trace_process_exit(TraceState *state, TraceProcess *process, guint64 time_us)
{
        trace_process_drop_pending(state, process);
        if (process->number) {
                ImportProcess *entry =
                        &g_array_index(state->list->processes, ImportProcess, process->number - 1);

                if (entry->pid == process->pid)
                        entry->exit_us = time_us;
        }
        g_hash_table_remove(state->processes, GINT_TO_POINTER((gint)process->pid));
}

void
trace_process_rename(TraceState *state, TraceProcess *process, gint64 pid)
{
        TraceProcess *other = trace_process_find(state, pid);

        if (other == process)
                return;
        if (other)
                trace_process_exit(state, other, 0);
        g_hash_table_steal(state->processes, GINT_TO_POINTER((gint)process->pid));
        process->pid = pid;
        if (process->number)
                g_array_index(state->list->processes, ImportProcess, process->number - 1).pid = pid;
        g_hash_table_insert(state->processes, GINT_TO_POINTER((gint)pid), process);
}

TraceFile *
trace_file_new(guint32 path, gboolean known)
{
        TraceFile *file = g_new0(TraceFile, 1);

        file->refs = 1;
        file->path = path;
        file->known = known;
        return file;
}

void
trace_file_unref(TraceFile *file)
{
        if (--file->refs == 0)
                g_free(file);
}

static TraceSlot *
find_slot(const TraceProcess *process, gint64 fd)
{
        return process->table->files
                       ? g_hash_table_lookup(process->table->files, GINT_TO_POINTER((gint)fd))
                       : NULL;
}

TraceFile *
trace_fd_get(const TraceProcess *process, gint64 fd)
{
        TraceSlot *slot = find_slot(process, fd);

        return slot ? slot->file : NULL;
}

void
trace_fd_set(TraceState *state, TraceProcess *process, gint64 fd, TraceFile *file,
             gboolean close_on_exec)
{
        GHashTable *files = table_files(process->table);
        TraceSlot *slot;

        if (fd < 0 || fd > G_MAXINT || g_hash_table_size(files) >= TABLE_MAX) {
                if (fd >= 0 && fd <= G_MAXINT)
                        import_list_problem(state->list,
                                            "more than 16,384 descriptors of one process", NULL, 0);
                trace_file_unref(file);
                return;
        }
        slot = g_new(TraceSlot, 1);
        slot->file = file;
        slot->close_on_exec = close_on_exec;
        g_hash_table_insert(files, GINT_TO_POINTER((gint)fd), slot);
}

void
trace_fd_set_close_on_exec(TraceProcess *process, gint64 fd, gboolean close_on_exec)
{
        TraceSlot *slot = find_slot(process, fd);

        if (slot)
                slot->close_on_exec = close_on_exec;
}

void
trace_fd_close(TraceProcess *process, gint64 fd)
{
        if (process->table->files)
                g_hash_table_remove(process->table->files, GINT_TO_POINTER((gint)fd));
}

void
trace_fd_close_range(TraceProcess *process, gint64 first, gint64 last, gboolean on_exec)
{
        GHashTableIter iter;
        gpointer fd, value;

        if (!process->table->files)
                return;
        g_hash_table_iter_init(&iter, process->table->files);
        while (g_hash_table_iter_next(&iter, &fd, &value)) {
                if (GPOINTER_TO_INT(fd) < first || GPOINTER_TO_INT(fd) > last)
                        continue;
                if (on_exec)
                        ((TraceSlot *)value)->close_on_exec = TRUE;
                else
                        g_hash_table_iter_remove(&iter);
        }
}

void
trace_table_unshare(TraceProcess *process)
{
        TraceTable *own;

        if (process->table->refs == 1)
                return;
        own = table_copy(process->table);
        table_unref(process->table);
        process->table = own;
}

void
trace_dirs_unshare(TraceProcess *process)
{
        TraceDirs *own;

        if (process->dirs->refs == 1)
                return;
        own = dirs_new(process->dirs->cwd, process->dirs->root);
        dirs_unref(process->dirs);
        process->dirs = own;
}

void
trace_table_exec(TraceProcess *process)
{
        GHashTableIter iter;
        gpointer fd, value;

        trace_table_unshare(process);
        trace_dirs_unshare(process);
        if (!process->table->files)
                return;
        g_hash_table_iter_init(&iter, process->table->files);
        while (g_hash_table_iter_next(&iter, &fd, &value))
                if (((TraceSlot *)value)->close_on_exec)
                        g_hash_table_iter_remove(&iter);
}
