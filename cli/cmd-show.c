// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * show: print a profile, of a name or (with a '/' in it) of a file. Times are milliseconds since
 * the start of the recording.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/quote.h"

typedef struct {
        gboolean files, ranges, events;
} What;

static const ProfileFile *
file_at(const Profile *profile, guint index)
{
        return &g_array_index(profile->files, ProfileFile, index);
}

static const ProfileFs *
fs_at(const Profile *profile, guint index)
{
        return &g_array_index(profile->fs, ProfileFs, index);
}

static double
ms(guint64 us)
{
        return (double)us / 1000;
}

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

static void
json_files(JsonBuilder *json, const Profile *profile)
{
        g_autofree guint64 *used = used_by_file(profile);

        json_builder_begin_array(json);
        for (guint i = 0; i < profile->files->len; i++) {
                const ProfileFile *file = file_at(profile, i);

                json_builder_begin_object(json);
                json_add_path(json, "path", file->path);
                json_add_int(json, "order", i);
                json_add_double(json, "first_use_ms", ms(file->first_use_us));
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

static void
json_range(JsonBuilder *json, const Profile *profile, const ProfileRange *range)
{
        json_builder_begin_object(json);
        json_add_path(json, "path", file_at(profile, range->file)->path);
        json_add_int(json, "file", range->file);
        json_add_int(json, "offset_bytes", (gint64)range->offset_bytes);
        json_add_int(json, "length_bytes", (gint64)range->length_bytes);
        json_add_double(json, "first_use_ms", ms(range->first_use_us));
        json_add_string(json, "cause", profile_cause_name(range->cause));
        json_builder_end_object(json);
}

static void
json_ranges(JsonBuilder *json, const Profile *profile)
{
        json_builder_begin_array(json);
        for (guint i = 0; i < profile->ranges->len; i++)
                json_range(json, profile, &g_array_index(profile->ranges, ProfileRange, i));
        json_builder_end_array(json);
}

static void
json_meta_object(JsonBuilder *json, const Profile *profile, const ProfileMeta *meta)
{
        json_builder_begin_object(json);
        json_add_string(json, "kind", profile_meta_kind_name(meta->kind));
        json_add_string(json, "fs_uuid", fs_at(profile, meta->fs)->uuid);
        json_add_int(json, "inode", (gint64)meta->inode);
        json_add_int(json, "index", (gint64)meta->index);
        json_add_bool(json, "seen", (meta->flags & PROFILE_META_SEEN) != 0);
        json_add_bool(json, "computed", (meta->flags & PROFILE_META_COMPUTED) != 0);
        json_add_double(json, "first_use_ms", ms(meta->first_use_us));
        json_builder_end_object(json);
}

static void
json_whole(JsonBuilder *json, const Profile *profile)
{
        json_builder_begin_object(json);
        json_add_string(json, "name", profile->name);
        json_builder_set_member_name(json, "argv");
        json_builder_begin_array(json);
        for (guint i = 0; i < profile->argv->len; i++) {
                g_autofree gchar *text = path_quote(profile->argv->pdata[i]);
                const char *word = profile->argv->pdata[i];

                json_builder_add_string_value(json, g_utf8_validate(word, -1, NULL) ? word : text);
        }
        json_builder_end_array(json);
        json_add_int(json, "created_us", profile->created_us);
        json_add_string(json, "source", profile_source_name(profile->source));
        json_add_bool(json, "exact", profile->exact);
        json_add_bool(json, "complete", profile->complete);
        json_add_int(json, "lost_events", (gint64)profile->lost_events);
        json_add_int(json, "unnamed_files", (gint64)profile->unnamed_files);
        json_add_double(json, "elapsed_ms", ms(profile->elapsed_us));
        json_add_double(json, "cpu_ms", ms(profile->cpu_us));
        json_add_int(json, "page_bytes", profile->page_bytes);
        json_add_int(json, "used_bytes", (gint64)profile_used_bytes(profile));
        json_add_int(json, "file_bytes", (gint64)profile_file_bytes(profile));
        json_builder_set_member_name(json, "file_systems");
        json_builder_begin_array(json);
        for (guint i = 0; i < profile->fs->len; i++) {
                json_builder_begin_object(json);
                json_add_string(json, "uuid", fs_at(profile, i)->uuid);
                json_add_string(json, "type", fs_at(profile, i)->type);
                json_add_int(json, "block_bytes", fs_at(profile, i)->block_bytes);
                json_builder_end_object(json);
        }
        json_builder_end_array(json);
        json_builder_set_member_name(json, "files");
        json_files(json, profile);
        json_builder_set_member_name(json, "ranges");
        json_ranges(json, profile);
        json_builder_set_member_name(json, "metadata");
        json_builder_begin_array(json);
        for (guint i = 0; i < profile->meta->len; i++)
                json_meta_object(json, profile, &g_array_index(profile->meta, ProfileMeta, i));
        json_builder_end_array(json);
        json_builder_end_object(json);
}

/* Ranges and metadata objects merged in order of first use. */
typedef struct {
        guint64 time_us;
        guint index;
        gboolean meta;
} Entry;

static int
compare_entries(const void *a, const void *b)
{
        const Entry *x = a, *y = b;

        if (x->time_us != y->time_us)
                return x->time_us < y->time_us ? -1 : 1;
        /* What leads to the data comes before it. */
        if (x->meta != y->meta)
                return x->meta ? -1 : 1;
        return x->index < y->index ? -1 : x->index > y->index;
}

static GArray *
entries(const Profile *profile)
{
        GArray *list = g_array_new(FALSE, FALSE, sizeof(Entry));

        for (guint i = 0; i < profile->ranges->len; i++) {
                Entry entry = {g_array_index(profile->ranges, ProfileRange, i).first_use_us, i,
                               FALSE};

                g_array_append_val(list, entry);
        }
        for (guint i = 0; i < profile->meta->len; i++) {
                Entry entry = {g_array_index(profile->meta, ProfileMeta, i).first_use_us, i, TRUE};

                g_array_append_val(list, entry);
        }
        if (list->len)
                qsort(list->data, list->len, sizeof(Entry), compare_entries);
        return list;
}

static void
json_events(JsonBuilder *json, const Profile *profile)
{
        g_autoptr(GArray) list = entries(profile);

        json_builder_begin_array(json);
        for (guint i = 0; i < list->len; i++) {
                const Entry *entry = &g_array_index(list, Entry, i);

                if (entry->meta)
                        json_meta_object(json, profile,
                                         &g_array_index(profile->meta, ProfileMeta, entry->index));
                else
                        json_range(json, profile,
                                   &g_array_index(profile->ranges, ProfileRange, entry->index));
        }
        json_builder_end_array(json);
}

static void
print_range(const Profile *profile, const ProfileRange *range)
{
        g_autofree gchar *path = path_quote(file_at(profile, range->file)->path);

        printf("%10.3f %-8s %12" G_GUINT64_FORMAT " %10" G_GUINT64_FORMAT " %s\n",
               ms(range->first_use_us), profile_cause_name(range->cause), range->offset_bytes,
               range->length_bytes, path);
}

static void
print_meta(const ProfileMeta *meta)
{
        printf("%10.3f %-8s %s, inode %" G_GUINT64_FORMAT ", number %" G_GUINT64_FORMAT "%s\n",
               ms(meta->first_use_us), "metadata", profile_meta_kind_name(meta->kind), meta->inode,
               meta->index, meta->flags & PROFILE_META_SEEN ? ", seen read" : "");
}

static void
print_files(const Profile *profile, gboolean null)
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

static void
print_summary(const Profile *profile)
{
        g_autoptr(GDateTime) date =
                g_date_time_new_from_unix_local(profile->created_us / G_USEC_PER_SEC);
        g_autofree gchar *when = date ? g_date_time_format(date, "%Y-%m-%d %H:%M:%S") : NULL;
        g_autofree gchar *used =
                g_format_size_full(profile_used_bytes(profile), G_FORMAT_SIZE_IEC_UNITS);
        g_autofree gchar *size =
                g_format_size_full(profile_file_bytes(profile), G_FORMAT_SIZE_IEC_UNITS);
        guint by_kind[PROFILE_META_INODE_BITMAP + 1] = {0};

        printf("name:      %s\n", profile->name);
        printf("command:  ");
        for (guint i = 0; i < profile->argv->len; i++) {
                g_autofree gchar *word = path_quote(profile->argv->pdata[i]);

                printf(" %s", word);
        }
        printf("\nrecorded:  %s\n", when ? when : "-");
        printf("source:    %s%s%s\n", profile_source_name(profile->source),
               profile->exact ? ", exact" : "",
               profile->complete ? "" : ", not complete: events were lost");
        if (profile->lost_events)
                printf("lost:      %" G_GUINT64_FORMAT " events\n", profile->lost_events);
        if (profile->unnamed_files)
                printf("unnamed:   %" G_GUINT64_FORMAT " files\n", profile->unnamed_files);
        printf("start:     %.3f s, %.3f s of CPU\n", (double)profile->elapsed_us / 1e6,
               (double)profile->cpu_us / 1e6);
        printf("data:      %s used of %s in %u files, %u ranges\n", used, size, profile->files->len,
               profile->ranges->len);
        for (guint i = 0; i < profile->meta->len; i++)
                by_kind[MIN(g_array_index(profile->meta, ProfileMeta, i).kind,
                            PROFILE_META_INODE_BITMAP)]++;
        printf("metadata:  %u blocks", profile->meta->len);
        for (guint kind = 0; kind < G_N_ELEMENTS(by_kind); kind++)
                if (by_kind[kind])
                        printf(", %u %s", by_kind[kind], profile_meta_kind_name(kind));
        printf("\n");
        for (guint i = 0; i < profile->fs->len; i++)
                printf("on:        %s %s\n", fs_at(profile, i)->type, fs_at(profile, i)->uuid);
}

static void
print_text(const Profile *profile, const What *what, gboolean null)
{
        if (what->files) {
                print_files(profile, null);
        } else if (what->ranges) {
                printf("%10s %-8s %12s %10s %s\n", "FIRST MS", "CAUSE", "OFFSET", "LENGTH", "PATH");
                for (guint i = 0; i < profile->ranges->len; i++)
                        print_range(profile, &g_array_index(profile->ranges, ProfileRange, i));
        } else if (what->events) {
                g_autoptr(GArray) list = entries(profile);

                for (guint i = 0; i < list->len; i++) {
                        const Entry *entry = &g_array_index(list, Entry, i);

                        if (entry->meta)
                                print_meta(
                                        &g_array_index(profile->meta, ProfileMeta, entry->index));
                        else
                                print_range(profile, &g_array_index(profile->ranges, ProfileRange,
                                                                    entry->index));
                }
        } else {
                print_summary(profile);
        }
}

int
cmd_show(Cli *cli, int argc, char **argv)
{
        What what = {0};
        g_autoptr(GError) error = NULL;
        g_autoptr(Profile) profile = NULL;
        g_autoptr(JsonBuilder) json = NULL;
        const GOptionEntry options[] = {
                {"files", 0, 0, G_OPTION_ARG_NONE, &what.files, "Files in order of first use",
                 NULL},
                {"ranges", 0, 0, G_OPTION_ARG_NONE, &what.ranges,
                 "Page ranges in order of first use", NULL},
                {"events", 0, 0, G_OPTION_ARG_NONE, &what.events,
                 "Page ranges and metadata in order of first use", NULL},
                {NULL, 0, 0, 0, NULL, NULL, NULL},
        };

        if (!cli_parse(cli, &argc, &argv, options, "NAME|FILE", FALSE, &error))
                return cli_fail(cli, error);
        if (argc != 2)
                return cli_usage(cli, "which profile? A name, or the path of a profile's file");
        if (what.files + what.ranges + what.events > 1)
                return cli_usage(cli, "--files, --ranges and --events exclude one another");
        if (cli->null && !what.files)
                return cli_usage(cli, "--null goes with --files");
        profile = strchr(argv[1], '/') ? profile_load(argv[1], &error)
                                       : cli_load_profile(cli, argv[1], &error);
        if (!profile)
                return cli_fail(cli, error);
        if (!cli->json) {
                print_text(profile, &what, cli->null);
                if (fflush(stdout) == 0 && !ferror(stdout))
                        return EXIT_STATUS_DONE;
                g_set_error(&error, COMMON_ERROR, COMMON_ERROR_FAILED,
                            "cannot write to standard output");
                return cli_fail(cli, error);
        }
        json = json_builder_new();
        if (what.files)
                json_files(json, profile);
        else if (what.ranges)
                json_ranges(json, profile);
        else if (what.events)
                json_events(json, profile);
        else
                json_whole(json, profile);
        if (!json_print(json, &error))
                return cli_fail(cli, error);
        return EXIT_STATUS_DONE;
}
