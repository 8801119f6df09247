// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads by cause: see misses.h. */
#include "profiler/misses.h"

#include <string.h>

static const char *const NAMES[] = {"process", "file", "directory", "package"};

gboolean
miss_by_parse(const char *text, MissBy *ret)
{
        for (guint i = 0; i < G_N_ELEMENTS(NAMES); i++) {
                if (strcmp(text, NAMES[i]) != 0)
                        continue;
                *ret = (MissBy)i;
                return TRUE;
        }
        return FALSE;
}

const char *
miss_by_name(MissBy by)
{
        return NAMES[by];
}

static void
row_free(gpointer data)
{
        MissRow *row = data;

        g_free(row->key);
        g_free(row->label);
        g_free(row);
}

void
miss_table_free(MissTable *table)
{
        if (!table)
                return;
        g_ptr_array_unref(table->rows);
        g_free(table);
}

void
miss_count_add(MissCount *count, const Profile *profile, const ProfileRange *range)
{
        guint64 size = g_array_index(profile->files, ProfileFile, range->file).size_bytes;
        guint64 bytes = range->offset_bytes < size
                                ? MIN(range->length_bytes, size - range->offset_bytes)
                                : 0;

        count->reads++;
        count->used_bytes += bytes;
        count->stall_us += range->stall_us;
        if (range->flags & PROFILE_RANGE_MISS) {
                count->disk_reads++;
                count->disk_bytes += bytes;
                if (range->stall_us == 0)
                        count->ahead_bytes += bytes;
        } else if (range->flags & PROFILE_RANGE_HIT) {
                count->cached_reads++;
                count->cached_bytes += bytes;
        } else {
                count->unknown_bytes += bytes;
        }
}

MissCount *
miss_count_processes(const Profile *profile)
{
        MissCount *counts = g_new0(MissCount, profile->processes->len + 1);

        for (guint i = 0; i < profile->ranges->len; i++) {
                const ProfileRange *range = &g_array_index(profile->ranges, ProfileRange, i);

                miss_count_add(&counts[MIN(range->process, profile->processes->len)], profile,
                               range);
        }
        return counts;
}

gchar *
miss_process_name(const Profile *profile, guint32 number)
{
        const ProfileProcess *process;
        const char *slash;

        if (number == 0 || number > profile->processes->len)
                return g_strdup("(unknown)");
        process = &g_array_index(profile->processes, ProfileProcess, number - 1);
        if (*process->comm)
                return g_strdup(process->comm);
        slash = strrchr(process->executable, '/');
        if (*process->executable)
                return g_strdup(slash && slash[1] ? slash + 1 : process->executable);
        return g_strdup_printf("pid %d", process->pid);
}

/* Sets *ret_key and *ret_label; the key of paths holds the file system, which two of them may
 * share. */
static void
range_key(const Profile *profile, const ProfileRange *range, MissBy by, const char *const *packages,
          gchar **ret_key, gchar **ret_label)
{
        const ProfileFile *file = &g_array_index(profile->files, ProfileFile, range->file);
        const char *uuid = g_array_index(profile->fs, ProfileFs, file->fs).uuid;
        const char *slash;

        switch (by) {
        case MISS_BY_PROCESS: *ret_label = miss_process_name(profile, range->process); break;
        case MISS_BY_PACKAGE:
                *ret_label = g_strdup(packages && packages[range->file] ? packages[range->file]
                                                                        : "(no package)");
                break;
        case MISS_BY_DIRECTORY:
                slash = strrchr(file->path, '/');
                *ret_label = slash > file->path ? g_strndup(file->path, (gsize)(slash - file->path))
                                                : g_strdup("/");
                break;
        default: *ret_label = g_strdup(file->path); break;
        }
        *ret_key = by == MISS_BY_FILE || by == MISS_BY_DIRECTORY
                           ? g_strdup_printf("%s%s", uuid, *ret_label)
                           : g_strdup(*ret_label);
}

static void
add_count(MissCount *sum, const MissCount *count)
{
        sum->reads += count->reads;
        sum->disk_reads += count->disk_reads;
        sum->cached_reads += count->cached_reads;
        sum->used_bytes += count->used_bytes;
        sum->disk_bytes += count->disk_bytes;
        sum->ahead_bytes += count->ahead_bytes;
        sum->cached_bytes += count->cached_bytes;
        sum->unknown_bytes += count->unknown_bytes;
        sum->stall_us += count->stall_us;
}

static gint
compare_numbers(guint64 a, guint64 b)
{
        return (a < b) - (a > b); /* larger first */
}

static gint
compare_rows(gconstpointer a, gconstpointer b)
{
        const MissRow *x = *(MissRow *const *)a, *y = *(MissRow *const *)b;
        const guint64 values[][2] = {
                {MAX(x->count.stall_us, x->before.stall_us),
                 MAX(y->count.stall_us, y->before.stall_us)},
                {MAX(x->count.disk_bytes, x->before.disk_bytes),
                 MAX(y->count.disk_bytes, y->before.disk_bytes)},
                {MAX(x->count.used_bytes, x->before.used_bytes),
                 MAX(y->count.used_bytes, y->before.used_bytes)},
        };

        for (guint i = 0; i < G_N_ELEMENTS(values); i++)
                if (values[i][0] != values[i][1])
                        return compare_numbers(values[i][0], values[i][1]);
        return strcmp(x->key, y->key);
}

/* Ranges of one file or process have the same key: asked once. */
static MissRow *
find_row(MissTable *table, GHashTable *by_key, const Profile *profile, const ProfileRange *range,
         MissBy by, const char *const *packages)
{
        g_autofree gchar *key = NULL, *label = NULL;
        MissRow *row;

        range_key(profile, range, by, packages, &key, &label);
        row = g_hash_table_lookup(by_key, key);
        if (!row) {
                row = g_new0(MissRow, 1);
                row->key = g_steal_pointer(&key);
                row->label = g_steal_pointer(&label);
                row->process = by == MISS_BY_PROCESS ? range->process : 0;
                g_ptr_array_add(table->rows, row);
                g_hash_table_insert(by_key, row->key, row);
        }
        if (row->process != range->process)
                row->process = 0;
        return row;
}

MissTable *
miss_table_new(const Profile *profile, MissBy by, const char *const *packages)
{
        MissTable *table = g_new0(MissTable, 1);
        g_autoptr(GHashTable) by_key = g_hash_table_new(g_str_hash, g_str_equal);
        guint n = by == MISS_BY_PROCESS ? profile->processes->len + 1 : profile->files->len;
        g_autofree MissRow **rows = g_new0(MissRow *, MAX(n, 1));

        table->rows = g_ptr_array_new_with_free_func(row_free);
        for (guint i = 0; i < profile->ranges->len; i++) {
                const ProfileRange *range = &g_array_index(profile->ranges, ProfileRange, i);
                MissRow **row =
                        &rows[by == MISS_BY_PROCESS ? MIN(range->process, profile->processes->len)
                                                    : range->file];

                if (!*row)
                        *row = find_row(table, by_key, profile, range, by, packages);
                miss_count_add(&(*row)->count, profile, range);
        }
        for (guint i = 0; i < table->rows->len; i++)
                add_count(&table->total, &((MissRow *)table->rows->pdata[i])->count);
        g_ptr_array_sort(table->rows, compare_rows);
        return table;
}

void
miss_table_compare(MissTable *table, const MissTable *before)
{
        g_autoptr(GHashTable) by_key = g_hash_table_new(g_str_hash, g_str_equal);

        for (guint i = 0; i < table->rows->len; i++) {
                MissRow *row = table->rows->pdata[i];

                g_hash_table_insert(by_key, row->key, row);
        }
        for (guint i = 0; i < before->rows->len; i++) {
                const MissRow *old = before->rows->pdata[i];
                MissRow *row = g_hash_table_lookup(by_key, old->key);

                if (!row) {
                        row = g_new0(MissRow, 1);
                        row->key = g_strdup(old->key);
                        row->label = g_strdup(old->label);
                        g_ptr_array_add(table->rows, row);
                }
                row->before = old->count;
        }
        table->before = before->total;
        table->compared = TRUE;
        g_ptr_array_sort(table->rows, compare_rows);
}
