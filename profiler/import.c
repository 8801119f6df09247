// SPDX-License-Identifier: GPL-2.0-or-later
/* The list of accesses: names once, ranges once. */
#include "profiler/import.h"

#include <string.h>

#include "common/profile.h"
#include "profiler/page-set.h"

#define ACCESSES_MAX 16000000
/* A piece that continues the last one is the same access when it follows this soon. */
#define JOIN_US 50000

static void
clear_path(gpointer data)
{
        ImportPath *path = data;

        g_free(path->bytes);
        page_set_free(path->pages);
}

static void
clear_process(gpointer data)
{
        ImportProcess *process = data;

        g_free(process->comm);
        g_free(process->executable);
}

static void
clear_mark(gpointer data)
{
        g_free(((ImportMark *)data)->text);
}

static void
clear_problem(gpointer data)
{
        g_free(((ImportProblem *)data)->example);
}

ImportList *
import_list_new(guint32 page_bytes)
{
        ImportList *list = g_new0(ImportList, 1);

        list->page_bytes = page_bytes;
        list->paths = g_array_new(FALSE, TRUE, sizeof(ImportPath));
        g_array_set_clear_func(list->paths, clear_path);
        list->accesses = g_array_new(FALSE, FALSE, sizeof(ImportAccess));
        list->processes = g_array_new(FALSE, TRUE, sizeof(ImportProcess));
        g_array_set_clear_func(list->processes, clear_process);
        list->marks = g_array_new(FALSE, FALSE, sizeof(ImportMark));
        g_array_set_clear_func(list->marks, clear_mark);
        list->problems = g_array_new(FALSE, FALSE, sizeof(ImportProblem));
        g_array_set_clear_func(list->problems, clear_problem);
        list->index = g_hash_table_new(g_str_hash, g_str_equal);
        return list;
}

void
import_list_free(ImportList *list)
{
        if (!list)
                return;
        g_hash_table_unref(list->index);
        g_array_unref(list->paths);
        g_array_unref(list->accesses);
        g_array_unref(list->processes);
        g_array_unref(list->marks);
        g_array_unref(list->problems);
        g_free(list);
}

void
import_list_problem(ImportList *list, const char *reason, const char *bytes, gsize length)
{
        ImportProblem problem = {.reason = reason, .count = 1};

        for (guint i = 0; i < list->problems->len; i++) {
                ImportProblem *known = &g_array_index(list->problems, ImportProblem, i);

                if (known->reason == reason || strcmp(known->reason, reason) == 0) {
                        known->count++;
                        return;
                }
        }
        if (bytes)
                problem.example = g_strndup(bytes, MIN(length, 300));
        g_array_append_val(list->problems, problem);
}

guint32
import_list_path(ImportList *list, const char *bytes, gsize length)
{
        g_autofree gchar *name = NULL;
        ImportPath path = {0};
        gpointer known;

        if (length == 0 || memchr(bytes, 0, length)) {
                import_list_problem(list, length ? "a name that holds a NUL" : "an empty name",
                                    bytes, length);
                return G_MAXUINT32;
        }
        if (length > IMPORT_NAME_MAX || list->paths->len >= PROFILE_FILES_MAX) {
                import_list_problem(list,
                                    length > IMPORT_NAME_MAX ? "a name longer than 65,536 bytes"
                                                             : "more than 4,000,000 names",
                                    bytes, length);
                return G_MAXUINT32;
        }
        name = g_strndup(bytes, length);
        known = g_hash_table_lookup(list->index, name);
        if (known)
                return GPOINTER_TO_UINT(known) - 1;
        path.bytes = g_steal_pointer(&name);
        g_array_append_val(list->paths, path);
        g_hash_table_insert(list->index, path.bytes, GUINT_TO_POINTER(list->paths->len));
        return list->paths->len - 1;
}

typedef struct {
        ImportList *list;
        const ImportAccess *access;
} Adding;

static void
add_piece(guint64 first, guint64 end, gpointer data)
{
        const Adding *adding = data;
        ImportList *list = adding->list;
        guint64 page = list->page_bytes;
        ImportAccess access = *adding->access;
        ImportAccess *last = NULL;

        access.offset_bytes = first * page;
        access.length_bytes = end > G_MAXINT64 / page ? IMPORT_WHOLE : (end - first) * page;
        if (list->accesses->len)
                last = &g_array_index(list->accesses, ImportAccess, list->accesses->len - 1);
        if (last && last->path == access.path && last->kind == access.kind &&
            last->process == access.process && last->length_bytes != IMPORT_WHOLE &&
            last->offset_bytes + last->length_bytes == access.offset_bytes &&
            access.time_us - last->time_us < JOIN_US) {
                last->length_bytes = access.length_bytes == IMPORT_WHOLE
                                             ? IMPORT_WHOLE
                                             : last->length_bytes + access.length_bytes;
                return;
        }
        if (list->accesses->len >= ACCESSES_MAX) {
                import_list_problem(list, "more than 16,000,000 ranges", NULL, 0);
                return;
        }
        g_array_append_val(list->accesses, access);
}

void
import_list_add(ImportList *list, const ImportAccess *access)
{
        ImportPath *path = &g_array_index(list->paths, ImportPath, access->path);
        guint64 page = list->page_bytes, end;
        Adding adding = {.list = list, .access = access};

        switch (access->kind) {
        case IMPORT_OPENED:
        case IMPORT_EXECUTED:
        case IMPORT_LISTED:
                if (path->kinds & 1U << access->kind)
                        return;
                path->kinds |= 1U << access->kind;
                g_array_append_val(list->accesses, *access);
                return;
        default: break;
        }
        /* beyond what any file can hold: nothing that was read */
        if (access->length_bytes == 0 || access->offset_bytes > G_MAXINT64)
                return;
        end = access->length_bytes > G_MAXINT64 - access->offset_bytes
                      ? (guint64)G_MAXINT64 / page + 1
                      : (access->offset_bytes + access->length_bytes - 1) / page + 1;
        if (!path->pages)
                path->pages = page_set_new();
        page_set_add(path->pages, access->offset_bytes / page, end, add_piece, &adding);
}
