// SPDX-License-Identifier: GPL-2.0-or-later
/* Who runs now: see process-scan.h. */
#include "profiler/process-scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL_THREADS 2 /* the parent of them all */

typedef struct {
        gint32 pid, parent;
        guint64 start; /* clock ticks since boot */
        gchar *comm;
} Found;

static void
found_clear(gpointer data)
{
        g_free(((Found *)data)->comm);
}

/* "PID (COMM) STATE PPID ..." with any byte in COMM; the start is field 22. */
static gboolean
parse_stat(const char *text, Found *ret)
{
        const char *open = strchr(text, '('), *close = strrchr(text, ')');
        gint parent;
        unsigned long long start;

        if (!open || !close || close < open ||
            sscanf(close + 1,
                   " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
                   "%llu",
                   &parent, &start) != 2)
                return FALSE;
        ret->pid = (gint32)strtol(text, NULL, 10);
        ret->parent = parent;
        ret->start = start;
        ret->comm = g_strndup(open + 1, (gsize)(close - open - 1));
        return TRUE;
}

static gint
compare_start(gconstpointer a, gconstpointer b)
{
        const Found *x = a, *y = b;

        if (x->start != y->start)
                return x->start < y->start ? -1 : 1;
        return x->pid - y->pid;
}

static void
seed_threads(ProcessTable *table, gint32 pid)
{
        g_autofree gchar *path = g_strdup_printf("/proc/%d/task", pid);
        g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
        const gchar *name;

        while (dir && (name = g_dir_read_name(dir)))
                process_table_seed_thread(table, (gint32)strtol(name, NULL, 10), pid);
}

void
process_scan(ProcessTable *table)
{
        g_autoptr(GDir) dir = g_dir_open("/proc", 0, NULL);
        g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(Found));
        const gchar *name;

        g_array_set_clear_func(all, found_clear);
        while (dir && (name = g_dir_read_name(dir))) {
                g_autofree gchar *path = NULL, *text = NULL;
                Found found;

                if (!g_ascii_isdigit(*name))
                        continue;
                path = g_strdup_printf("/proc/%s/stat", name);
                if (!g_file_get_contents(path, &text, NULL, NULL) || !parse_stat(text, &found))
                        continue;
                if (found.pid == KERNEL_THREADS || found.parent == KERNEL_THREADS)
                        found_clear(&found);
                else
                        g_array_append_val(all, found);
        }
        g_array_sort(all, compare_start);
        for (guint i = 0; i < all->len; i++) {
                const Found *found = &g_array_index(all, Found, i);
                g_autofree gchar *link = g_strdup_printf("/proc/%d/exe", found->pid);
                g_autofree gchar *executable = g_file_read_link(link, NULL);

                process_table_seed(table, found->pid, found->parent, found->comm, executable);
                seed_threads(table, found->pid);
        }
}
