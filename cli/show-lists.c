// SPDX-License-Identifier: GPL-2.0-or-later
/* show: files, ranges and metadata objects. */
#include "cli/show.h"

#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/quote.h"

/* Used bytes of each file, clipped to its size. */
static guint64 *
used_by_file(const Profile *profile)
{
        guint64 *used = g_new0(guint64, MAX(profile->files->len, 1));

        for (guint i = 0; i < profile->ranges->len; i++) {
                const ProfileRange *range = &g_array_index(profile->ranges, ProfileRange, i);
                guint64 size = file_at(profile, range->file)->size_bytes;

                if (range->offset_bytes < size)
                        used[range->file] += MIN(range->length_bytes, size - range->offset_bytes);
        }
        return used;
}

void
show_files_json(JsonBuilder *json, const Profile *profile)
{
        g_autofree guint64 *used = used_by_file(profile);

        json_builder_begin_array(json);
        for (guint i = 0; i < profile->files->len; i++) {
                const ProfileFile *file = file_at(profile, i);

                json_builder_begin_object(json);
                json_add_path(json, "path", file->path);
                json_add_int(json, "order", i);
                json_add_double(json, "first_use_ms", ms(file->first_use_us));
                if (file->opened_us)
                        json_add_double(json, "opened_ms", ms(file->opened_us));
                if (file->last_use_us)
                        json_add_double(json, "last_use_ms", ms(file->last_use_us));
                json_add_bool(json, "executed", (file->flags & PROFILE_FILE_EXECUTED) != 0);
                json_add_bool(json, "low", (file->flags & PROFILE_FILE_LOW) != 0);
                json_add_int(json, "used_bytes", (gint64)used[i]);
                json_add_int(json, "size_bytes", (gint64)file->size_bytes);
                json_add_string(json, "fs_uuid", fs_at(profile, file->fs)->uuid);
                json_add_int(json, "inode", (gint64)file->inode);
                json_add_int(json, "generation", file->generation);
                json_add_int(json, "mtime_ns", file->mtime_ns);
                json_builder_end_object(json);
        }
        json_builder_end_array(json);
}

void
show_range_members(JsonBuilder *json, const Profile *profile, const ProfileRange *range)
{
        json_add_path(json, "path", file_at(profile, range->file)->path);
        json_add_int(json, "file", range->file);
        json_add_int(json, "offset_bytes", (gint64)range->offset_bytes);
        json_add_int(json, "length_bytes", (gint64)range->length_bytes);
        json_add_double(json, "first_use_ms", ms(range->first_use_us));
        json_add_string(json, "cause", profile_cause_name(range->cause));
        json_add_string(json, "from",
                        range->flags & PROFILE_RANGE_MISS  ? "disk"
                        : range->flags & PROFILE_RANGE_HIT ? "cache"
                                                           : "unknown");
        json_add_double(json, "stall_ms", ms(range->stall_us));
        json_add_int(json, "process", range->process);
}

void
show_ranges_json(JsonBuilder *json, const Profile *profile)
{
        json_builder_begin_array(json);
        for (guint i = 0; i < profile->ranges->len; i++) {
                json_builder_begin_object(json);
                show_range_members(json, profile, &g_array_index(profile->ranges, ProfileRange, i));
                json_builder_end_object(json);
        }
        json_builder_end_array(json);
}

void
show_ranges_text(const Profile *profile)
{
        printf("%10s %-8s %-7s %9s %12s %10s %s\n", "FIRST MS", "CAUSE", "FROM", "STALL MS",
               "OFFSET", "LENGTH", "PATH");
        for (guint i = 0; i < profile->ranges->len; i++) {
                const ProfileRange *range = &g_array_index(profile->ranges, ProfileRange, i);
                g_autofree gchar *path = path_quote(file_at(profile, range->file)->path);

                printf("%10.3f %-8s %-7s %9.3f %12" G_GUINT64_FORMAT " %10" G_GUINT64_FORMAT
                       " %s\n",
                       ms(range->first_use_us), profile_cause_name(range->cause),
                       range->flags & PROFILE_RANGE_MISS  ? "disk"
                       : range->flags & PROFILE_RANGE_HIT ? "cache"
                                                          : "-",
                       ms(range->stall_us), range->offset_bytes, range->length_bytes, path);
        }
}

void
show_meta_members(JsonBuilder *json, const Profile *profile, const ProfileMeta *meta)
{
        json_add_string(json, "kind", profile_meta_kind_name(meta->kind));
        json_add_string(json, "fs_uuid", fs_at(profile, meta->fs)->uuid);
        json_add_int(json, "inode", (gint64)meta->inode);
        json_add_int(json, "index", (gint64)meta->index);
        json_add_bool(json, "seen", (meta->flags & PROFILE_META_SEEN) != 0);
        json_add_bool(json, "computed", (meta->flags & PROFILE_META_COMPUTED) != 0);
        json_add_double(json, "first_use_ms", ms(meta->first_use_us));
}

void
show_meta_json(JsonBuilder *json, const Profile *profile)
{
        json_builder_begin_array(json);
        for (guint i = 0; i < profile->meta->len; i++) {
                json_builder_begin_object(json);
                show_meta_members(json, profile, &g_array_index(profile->meta, ProfileMeta, i));
                json_builder_end_object(json);
        }
        json_builder_end_array(json);
}

void
show_files_text(const Profile *profile, gboolean null)
{
        g_autofree guint64 *used = used_by_file(profile);

        if (!null)
                printf("%10s %12s %12s %s\n", "FIRST MS", "USED", "SIZE", "PATH");
        for (guint i = 0; i < profile->files->len; i++) {
                const ProfileFile *file = file_at(profile, i);
                g_autofree gchar *path = NULL;

                if (null) {
                        fwrite(file->path, 1, strlen(file->path) + 1, stdout);
                        continue;
                }
                path = path_quote(file->path);
                printf("%10.3f %12" G_GUINT64_FORMAT " %12" G_GUINT64_FORMAT " %s\n",
                       ms(file->first_use_us), used[i], file->size_bytes, path);
        }
}
