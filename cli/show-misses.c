// SPDX-License-Identifier: GPL-2.0-or-later
/* show --misses: reads from the disk and cached ones, summed, perhaps beside an earlier recording.
 */
#include "cli/show.h"

#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/quote.h"
#include "measure/mounts.h"
#include "profiler/packages.h"

/* The path in the tree that --root names; NULL when the file lies outside of it. */
static gchar *
path_in_tree(const Cli *cli, GPtrArray *mounts, const ProfileFs *fs, const char *path)
{
        Mount *mount = *fs->uuid ? mount_find_uuid(mounts, fs->uuid) : NULL;
        g_autofree gchar *outside = mount ? mount_path_outside(mount, path) : NULL;
        g_autofree gchar *root = cli->root ? g_canonicalize_filename(cli->root, NULL) : NULL;
        gsize length = root && strcmp(root, "/") != 0 ? strlen(root) : 0;

        /* Of a file system that is not mounted: then its own top is the best guess. */
        if (!outside)
                return g_strdup(path);
        if (!length)
                return g_steal_pointer(&outside);
        if (!g_str_has_prefix(outside, root) || outside[length] != '/')
                return NULL;
        return g_strdup(outside + length);
}

static MissTable *
count(const Cli *cli, const Profile *profile, MissBy by, GError **error)
{
        g_autoptr(GPtrArray) paths = NULL, packages = NULL, mounts = NULL;
        g_autofree gchar *root = NULL;

        if (by != MISS_BY_PACKAGE)
                return miss_table_new(profile, by, NULL);
        mounts = mount_table_load(error);
        if (!mounts)
                return NULL;
        paths = g_ptr_array_new_with_free_func(g_free);
        for (guint i = 0; i < profile->files->len; i++) {
                const ProfileFile *file = file_at(profile, i);

                g_ptr_array_add(paths,
                                path_in_tree(cli, mounts, fs_at(profile, file->fs), file->path));
        }
        root = cli->root ? g_canonicalize_filename(cli->root, NULL) : g_strdup("");
        packages = packages_of(strcmp(root, "/") == 0 ? "" : root, paths, error);
        return packages ? miss_table_new(profile, by, (const char *const *)packages->pdata) : NULL;
}

MissTable *
show_misses(const Cli *cli, const Profile *profile, const Profile *before, MissBy by,
            GError **error)
{
        g_autoptr(MissTable) table = count(cli, profile, by, error), old = NULL;

        if (!table || !before)
                return g_steal_pointer(&table);
        old = count(cli, before, by, error);
        if (!old)
                return NULL;
        miss_table_compare(table, old);
        return g_steal_pointer(&table);
}

static void
count_members(JsonBuilder *json, const MissCount *c)
{
        json_add_int(json, "reads", (gint64)c->reads);
        json_add_int(json, "disk_reads", (gint64)c->disk_reads);
        json_add_int(json, "cached_reads", (gint64)c->cached_reads);
        json_add_int(json, "used_bytes", (gint64)c->used_bytes);
        json_add_int(json, "disk_bytes", (gint64)c->disk_bytes);
        json_add_int(json, "ahead_bytes", (gint64)c->ahead_bytes);
        json_add_int(json, "cached_bytes", (gint64)c->cached_bytes);
        json_add_int(json, "unknown_bytes", (gint64)c->unknown_bytes);
        json_add_double(json, "stall_ms", ms(c->stall_us));
}

/* The members of the counts; with two recordings those of the earlier one in "before". */
static void
counts_json(JsonBuilder *json, const MissTable *table, const MissCount *now,
            const MissCount *before)
{
        count_members(json, now);
        if (!table->compared)
                return;
        json_builder_set_member_name(json, "before");
        json_builder_begin_object(json);
        count_members(json, before);
        json_builder_end_object(json);
        json_builder_set_member_name(json, "change");
        json_builder_begin_object(json);
        json_add_int(json, "used_bytes", (gint64)now->used_bytes - (gint64)before->used_bytes);
        json_add_int(json, "disk_bytes", (gint64)now->disk_bytes - (gint64)before->disk_bytes);
        json_add_int(json, "cached_bytes",
                     (gint64)now->cached_bytes - (gint64)before->cached_bytes);
        json_add_double(json, "stall_ms", ms(now->stall_us) - ms(before->stall_us));
        json_builder_end_object(json);
}

void
show_misses_json(JsonBuilder *json, const MissTable *table, MissBy by)
{
        json_builder_begin_object(json);
        json_add_string(json, "by", miss_by_name(by));
        json_builder_set_member_name(json, "rows");
        json_builder_begin_array(json);
        for (guint i = 0; i < table->rows->len; i++) {
                const MissRow *row = table->rows->pdata[i];

                json_builder_begin_object(json);
                json_add_path(json, "key", row->label);
                if (row->process)
                        json_add_int(json, "process", row->process);
                counts_json(json, table, &row->count, &row->before);
                json_builder_end_object(json);
        }
        json_builder_end_array(json);
        json_builder_set_member_name(json, "total");
        json_builder_begin_object(json);
        counts_json(json, table, &table->total, &table->before);
        json_builder_end_object(json);
        json_builder_end_object(json);
}

static void
print_row(const MissTable *table, const MissCount *now, const MissCount *before, const char *label)
{
        g_autofree gchar *quoted = path_quote(label);

        if (table->compared)
                printf("%10.3f %10.3f %+10.3f %12" G_GUINT64_FORMAT " %12" G_GUINT64_FORMAT
                       " %+12" G_GINT64_FORMAT " %s\n",
                       ms(before->stall_us), ms(now->stall_us),
                       ms(now->stall_us) - ms(before->stall_us), before->disk_bytes,
                       now->disk_bytes, (gint64)now->disk_bytes - (gint64)before->disk_bytes,
                       quoted);
        else
                printf("%10.3f %12" G_GUINT64_FORMAT " %12" G_GUINT64_FORMAT " %12" G_GUINT64_FORMAT
                       " %12" G_GUINT64_FORMAT " %7" G_GUINT64_FORMAT " %7" G_GUINT64_FORMAT
                       " %s\n",
                       ms(now->stall_us), now->used_bytes, now->disk_bytes, now->ahead_bytes,
                       now->cached_bytes, now->disk_reads, now->cached_reads, quoted);
}

void
show_misses_text(const MissTable *table, MissBy by)
{
        g_autofree gchar *title = g_ascii_strup(miss_by_name(by), -1);

        if (table->compared)
                printf("%10s %10s %10s %12s %12s %12s %s\n", "STALL MS", "NOW", "CHANGE", "DISK",
                       "NOW", "CHANGE", title);
        else
                printf("%10s %12s %12s %12s %12s %7s %7s %s\n", "STALL MS", "USED", "DISK",
                       "OF IT AHEAD", "CACHED", "READS", "CACHED", title);
        for (guint i = 0; i < table->rows->len; i++) {
                const MissRow *row = table->rows->pdata[i];

                print_row(table, &row->count, &row->before, row->label);
        }
        print_row(table, &table->total, &table->before, "total");
        if (table->total.unknown_bytes)
                printf("Of the used bytes %" G_GUINT64_FORMAT
                       " are of recordings that do not tell where they came from.\n",
                       table->total.unknown_bytes);
}
