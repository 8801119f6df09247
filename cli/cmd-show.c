// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * show: print a profile, of a name or (with a '/' in it) of a file. The views are in show-*.c.
 */
#include "cli/show.h"

#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/quote.h"

typedef enum {
        SHOW_SUMMARY,
        SHOW_FILES,
        SHOW_RANGES,
        SHOW_EVENTS,
        SHOW_PROCESSES,
        SHOW_MISSES,
} View;

typedef struct {
        gboolean files, ranges, events, processes, misses;
        gchar *by, *before;
        View view;
        MissBy miss_by;
} Options;

static void
options_clear(Options *options)
{
        g_free(options->by);
        g_free(options->before);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Options, options_clear)

static void
json_whole(JsonBuilder *json, const Profile *profile)
{
        static const struct {
                const char *name;
                void (*add)(JsonBuilder *json, const Profile *profile);
        } PARTS[] = {
                {"files", show_files_json},   {"ranges", show_ranges_json},
                {"metadata", show_meta_json}, {"processes", show_processes_json},
                {"waits", show_waits_json},   {"marks", show_marks_json},
        };

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
        for (guint i = 0; i < G_N_ELEMENTS(PARTS); i++) {
                json_builder_set_member_name(json, PARTS[i].name);
                PARTS[i].add(json, profile);
        }
        json_builder_end_object(json);
}

/* Where the data came from and who waited for it. */
static void
print_cached(const Profile *profile)
{
        MissCount count = {0};
        g_autofree gchar *disk = NULL, *cached = NULL;

        for (guint i = 0; i < profile->ranges->len; i++)
                miss_count_add(&count, profile, &g_array_index(profile->ranges, ProfileRange, i));
        if (profile->processes->len)
                printf("processes: %u, %u waits, %u marks\n", profile->processes->len,
                       profile->waits->len, profile->marks->len);
        if (count.disk_bytes + count.cached_bytes == 0)
                return;
        disk = g_format_size_full(count.disk_bytes, G_FORMAT_SIZE_IEC_UNITS);
        cached = g_format_size_full(count.cached_bytes, G_FORMAT_SIZE_IEC_UNITS);
        printf("reads:     %s from the disk, %s cached, %.3f s waited\n", disk, cached,
               (double)count.stall_us / 1e6);
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
        print_cached(profile);
        for (guint i = 0; i < profile->fs->len; i++)
                printf("on:        %s %s\n", fs_at(profile, i)->type, fs_at(profile, i)->uuid);
}

static Profile *
load(const Cli *cli, const char *name, GError **error)
{
        return strchr(name, '/') ? profile_load(name, error) : cli_load_profile(cli, name, error);
}

static gboolean
print(const Cli *cli, const Options *options, const Profile *profile, const MissTable *misses,
      GError **error)
{
        g_autoptr(JsonBuilder) json = NULL;

        if (!cli->json) {
                switch (options->view) {
                case SHOW_FILES: show_files_text(profile, cli->null); break;
                case SHOW_RANGES: show_ranges_text(profile); break;
                case SHOW_EVENTS: show_events_text(profile); break;
                case SHOW_PROCESSES: show_processes_text(profile); break;
                case SHOW_MISSES: show_misses_text(misses, options->miss_by); break;
                default: print_summary(profile); break;
                }
                if (fflush(stdout) == 0 && !ferror(stdout))
                        return TRUE;
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_FAILED,
                            "cannot write to standard output");
                return FALSE;
        }
        json = json_builder_new();
        switch (options->view) {
        case SHOW_FILES: show_files_json(json, profile); break;
        case SHOW_RANGES: show_ranges_json(json, profile); break;
        case SHOW_EVENTS: show_events_json(json, profile); break;
        case SHOW_PROCESSES: show_processes_json(json, profile); break;
        case SHOW_MISSES: show_misses_json(json, misses, options->miss_by); break;
        default: json_whole(json, profile); break;
        }
        return json_print(json, error);
}

/* 0, or the exit status of a bad call. */
static int
check_options(Cli *cli, Options *options, int argc)
{
        if (argc != 2)
                return cli_usage(cli, "which profile? A name, or the path of a profile's file");
        if (options->files + options->ranges + options->events + options->processes +
                    options->misses >
            1)
                return cli_usage(cli, "--files, --ranges, --events, --processes and --misses "
                                      "exclude one another");
        if (cli->null && !options->files)
                return cli_usage(cli, "--null goes with --files");
        if ((options->by || options->before) && !options->misses)
                return cli_usage(cli, "--by and --before go with --misses");
        options->miss_by = MISS_BY_FILE;
        if (options->by && !miss_by_parse(options->by, &options->miss_by))
                return cli_usage(cli, "--by takes process, file, directory or package");
        options->view = options->files       ? SHOW_FILES
                        : options->ranges    ? SHOW_RANGES
                        : options->events    ? SHOW_EVENTS
                        : options->processes ? SHOW_PROCESSES
                        : options->misses    ? SHOW_MISSES
                                             : SHOW_SUMMARY;
        return 0;
}

int
cmd_show(Cli *cli, int argc, char **argv)
{
        g_auto(Options) options = {0};
        g_autoptr(GError) error = NULL;
        g_autoptr(Profile) profile = NULL, before = NULL;
        g_autoptr(MissTable) misses = NULL;
        const GOptionEntry entries[] = {
                {"files", 0, 0, G_OPTION_ARG_NONE, &options.files, "Files in order of first use",
                 NULL},
                {"ranges", 0, 0, G_OPTION_ARG_NONE, &options.ranges,
                 "Page ranges in order of first use", NULL},
                {"events", 0, 0, G_OPTION_ARG_NONE, &options.events,
                 "Reads, metadata, processes, waits and marks in order of time", NULL},
                {"processes", 0, 0, G_OPTION_ARG_NONE, &options.processes,
                 "The tree of processes: what each read and waited for", NULL},
                {"misses", 0, 0, G_OPTION_ARG_NONE, &options.misses,
                 "Reads from the disk and cached ones, summed", NULL},
                {"by", 0, 0, G_OPTION_ARG_STRING, &options.by,
                 "Sum by process, file (default), directory or package", "WHAT"},
                {"before", 0, 0, G_OPTION_ARG_FILENAME, &options.before,
                 "Compare with an earlier recording", "NAME|FILE"},
                {NULL, 0, 0, 0, NULL, NULL, NULL},
        };
        int status;

        if (!cli_parse(cli, &argc, &argv, entries, "NAME|FILE", FALSE, &error))
                return cli_fail(cli, error);
        status = check_options(cli, &options, argc);
        if (status)
                return status;
        profile = load(cli, argv[1], &error);
        if (profile && options.before)
                before = load(cli, options.before, &error);
        if (!error && options.misses)
                misses = show_misses(cli, profile, before, options.miss_by, &error);
        if (error || !print(cli, &options, profile, misses, &error))
                return cli_fail(cli, error);
        return EXIT_STATUS_DONE;
}
