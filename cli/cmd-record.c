// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * record: make a profile of a command's start, of the boot, or of what the whole machine does for a
 * while. The profile is saved as soon as the start has ended; then the command, if there is one, is
 * waited for and its exit status passed on.
 */
#include "cli/cli.h"
#include "cli/record-merge.h"
#include "cli/replay-name.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "common/quote.h"
#include "common/state.h"
#include "profiler/record.h"
#include "profiler/rules.h"

#define DURATION_S_MAX 86400.0
#define BUFFER_KB_MAX (1024 * 1024)
/* A boot has pauses that a program's start has not. */
#define BOOT_QUIET_US (5 * G_USEC_PER_SEC)
#define BOOT_LIMIT_US (300 * G_USEC_PER_SEC)

typedef struct {
        gchar *name, *until, *output, *why_source;
        gboolean why;
        WhyWay why_way;
        gchar *root; /* resolved; NULL = all */
        gboolean exact, fresh, system, boot, limited_queue, wait_goal;
        double duration_s;
        int buffer_kb;
} Options;

static void
options_clear(Options *options)
{
        g_free(options->name);
        g_free(options->until);
        g_free(options->why_source);
        g_free(options->output);
        g_free(options->root);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Options, options_clear)

static void
on_note(const char *text, gpointer data)
{
        cli_note(data, "%s", text);
}

/* Our own failures are 125, but a missing privilege, kernel feature or a bad call keep their
 * status. */
static int
fail(const Cli *cli, const GError *error)
{
        int status = cli_fail(cli, error);

        if (error->domain == START_ERROR)
                return start_error_exit_status(error);
        if (status == EXIT_STATUS_UNSUPPORTED || status == EXIT_STATUS_USAGE ||
            status == EXIT_STATUS_INTERRUPTED)
                return status;
        return EXIT_STATUS_OWN_FAILURE;
}

/* Kept from earlier starts. */
static guint
low_files(const Profile *profile)
{
        guint n = 0;

        for (guint i = 0; i < profile->files->len; i++)
                n += (g_array_index(profile->files, ProfileFile, i).flags & PROFILE_FILE_LOW) != 0;
        return n;
}

static void
print_json(const Profile *profile, const RecordResult *result, GError **error)
{
        g_autoptr(JsonBuilder) json = json_builder_new();

        json_builder_begin_object(json);
        json_add_string(json, "name", profile->name);
        json_add_bool(json, "complete", profile->complete);
        json_add_int(json, "lost_events", (gint64)profile->lost_events);
        json_add_string(json, "source", profile_source_name(profile->source));
        if (result->why_source) {
                json_add_string(json, "why_source", result->why_source);
                json_add_int(json, "waits", profile->waits->len);
                json_add_bool(json, "access_marks", result->access_marks);
        }
        json_add_int(json, "processes", profile->processes->len);
        json_add_int(json, "marks", profile->marks->len);
        json_add_string(json, "method", result->method);
        json_add_bool(json, "exact", profile->exact);
        json_add_int(json, "files", profile->files->len);
        json_add_int(json, "ranges", profile->ranges->len);
        json_add_int(json, "used_bytes", (gint64)profile_used_bytes(profile));
        json_add_int(json, "file_bytes", (gint64)profile_file_bytes(profile));
        json_add_int(json, "metadata_blocks", profile->meta->len);
        json_add_double(json, "elapsed_ms", (double)profile->elapsed_us / 1000);
        json_add_double(json, "cpu_ms", (double)profile->cpu_us / 1000);
        json_add_string(json, "ended_by", start_end_name(result->end));
        if (result->goal_us)
                json_add_double(json, "goal_ms", (double)result->goal_us / 1000);
        json_add_int(json, "unnamed_files", (gint64)profile->unnamed_files);
        json_add_int(json, "cached_before_bytes", (gint64)result->built.cached_before_bytes);
        json_add_int(json, "low_files", low_files(profile));
        json_add_skipped(json, "left_out", result->built.left_out);
        json_builder_end_object(json);
        json_print(json, error);
}

/* How far what was computed and what was seen read agree. */
static void
note_metadata(const Cli *cli, const Profile *profile, const BuildResult *built)
{
        guint computed = 0, both = 0, seen = 0;

        for (guint i = 0; i < profile->meta->len; i++) {
                guint flags = g_array_index(profile->meta, ProfileMeta, i).flags &
                              (PROFILE_META_SEEN | PROFILE_META_COMPUTED);

                computed += (flags & PROFILE_META_COMPUTED) != 0;
                seen += flags == PROFILE_META_SEEN;
                both += flags == (PROFILE_META_COMPUTED | PROFILE_META_SEEN);
        }
        cli_note(cli,
                 "metadata: %u objects that the files need, %u of them seen read; %u more seen; "
                 "%" G_GUINT64_FORMAT " only read along, left out; %" G_GUINT64_FORMAT
                 " of %" G_GUINT64_FORMAT " blocks read not identified",
                 computed, both, seen, built->meta_readahead, built->meta_unknown_blocks,
                 built->meta_seen_blocks);
}

static void
summarize(const Cli *cli, const Profile *profile, const RecordResult *result)
{
        g_autofree gchar *used =
                g_format_size_full(profile_used_bytes(profile), G_FORMAT_SIZE_IEC_UNITS);
        g_autofree gchar *size =
                g_format_size_full(profile_file_bytes(profile), G_FORMAT_SIZE_IEC_UNITS);

        cli_note(
                cli,
                "%s: %u files, %s used of %s, %u ranges, %u metadata blocks, %s%s, start of %.1f s "
                "(ended by %s)",
                profile->name, profile->files->len, used, size, profile->ranges->len,
                profile->meta->len, profile_source_name(profile->source),
                profile->exact ? ", exact" : "", (double)profile->elapsed_us / 1e6,
                start_end_name(result->end));
        if (profile->source == PROFILE_SOURCE_OPENS && result->built.cached_before_bytes) {
                g_autofree gchar *before = g_format_size_full(result->built.cached_before_bytes,
                                                              G_FORMAT_SIZE_IEC_UNITS);

                cli_note(cli,
                         "%s of that were cached when the opens were noticed: whether they are "
                         "used is not known",
                         before);
        }
        if (!profile->complete)
                cli_note(cli,
                         "%" G_GUINT64_FORMAT " events were lost: the profile is not complete; "
                         "record again, with a larger --buffer-kb if it happens again",
                         profile->lost_events);
        if (profile->exact && result->built.cached_before_bytes) {
                g_autofree gchar *before = g_format_size_full(result->built.cached_before_bytes,
                                                              G_FORMAT_SIZE_IEC_UNITS);

                cli_note(cli,
                         "%s of that were in the page cache beforehand, their use is not exact",
                         before);
        }
        if (!profile->exact && profile->source == PROFILE_SOURCE_USED_PAGES &&
            result->built.cached_before_bytes > profile_used_bytes(profile) / 2)
                cli_note(cli,
                         "most of it was in the page cache: what a cold start uses is known best "
                         "after a boot, with record --exact");
        if (profile->unnamed_files)
                cli_note(cli, "%" G_GUINT64_FORMAT " files were read that no name was found for",
                         profile->unnamed_files);
        for (guint i = 0; i < result->built.notes->len; i++)
                cli_note(cli, "%s", (const char *)result->built.notes->pdata[i]);
        if (cli->verbose) {
                note_metadata(cli, profile, &result->built);
                cli_print_skipped(cli, result->built.left_out);
        }
}

/* Right away, so that a later cold replay need not read the file system to find the places. */
static void
compile_pack(const Cli *cli, const Profile *profile)
{
        g_autoptr(GError) error = NULL;

        if (!replay_name_compile(cli, profile->name, &error))
                cli_note(cli, "no pack made yet, the first prefetch makes it: %s", error->message);
}

static Profile *load_previous(const Cli *cli, const Options *options);

/* A start that found 95 % of what it used in the cache did not spend its time on reading. */
static gboolean
was_warm(const Profile *profile, const RecordResult *result)
{
        return !profile->exact &&
               result->built.cached_before_bytes >= profile_used_bytes(profile) / 100 * 95;
}

/* A boot is recorded before the state directory can be written, and a recording that cannot be
 * saved there at its end must not fail the boot: it waits in /run. */
static gboolean
save_boot(const Cli *cli, const Profile *profile, const char *path, GError **error)
{
        g_autoptr(GError) local = NULL;
        g_autofree gchar *pending = NULL, *quoted = NULL;

        if (state_prepare(cli->state, &local) && profile_save(profile, path, &local)) {
                compile_pack(cli, profile);
                return TRUE;
        }
        pending = state_pending_path(cli->state, profile->name, error);
        if (!pending || !profile_save(profile, pending, error))
                return FALSE;
        quoted = path_quote(pending);
        cli_note(cli, "%s: saved to %s; the next headstart that can write there moves it",
                 local->message, quoted);
        return TRUE;
}

static gboolean
save(const Cli *cli, const Options *options, Profile *profile, const RecordResult *result,
     GError **error)
{
        g_autofree gchar *path = options->output ? g_strdup(options->output)
                                                 : state_profile_path(cli->state, profile->name);
        g_autoptr(Profile) previous = load_previous(cli, options);

        profile->warm_us = was_warm(profile, result) ? profile->elapsed_us : 0;
        if (previous)
                profile_keep_warm(profile, previous);
        if (!options->output)
                record_merge(cli, profile, options->fresh ? NULL : previous, &result->built);
        if (!options->output && !state_file_check(path, error))
                return FALSE;
        if (options->boot && !options->output)
                return save_boot(cli, profile, path, error);
        if (!profile_save(profile, path, error))
                return FALSE;
        if (!options->output)
                compile_pack(cli, profile);
        return TRUE;
}

static Profile *
load_previous(const Cli *cli, const Options *options)
{
        g_autofree gchar *path = options->output ? g_strdup(options->output)
                                                 : state_profile_path(cli->state, options->name);

        return access(path, R_OK) == 0 ? profile_load(path, NULL) : NULL;
}

/* The profile is in hand: prints, saves; returns our own status, 0 = the command's counts. */
static int
finish(const Cli *cli, const Options *options, Profile *profile, const RecordResult *result)
{
        g_autoptr(GError) error = NULL;

        if (profile->files->len == 0)
                cli_note(cli, "%s: nothing to save",
                         profile->argv->len ? "the command read no file from a disk"
                                            : "no file was read from a disk");
        else if (!save(cli, options, profile, result, &error))
                return fail(cli, error);
        else
                summarize(cli, profile, result);
        if (cli->json)
                print_json(profile, result, &error);
        if (error)
                return fail(cli, error);
        return profile->complete ? 0 : EXIT_STATUS_PARTIAL;
}

/* What to leave out by its path. A missing folder or a bad line never keeps a start from being
 * recorded. */
static Rules *
load_rules(const Cli *cli)
{
        g_autofree gchar *defaults = rules_default_folder();
        const char *folders[] = {defaults, RULES_FOLDER_OF_THE_MACHINE, NULL};
        g_autoptr(GPtrArray) problems = g_ptr_array_new_with_free_func(g_free);
        Rules *rules = rules_load_folders(defaults ? folders : folders + 1, problems);

        if (!defaults)
                cli_note(cli,
                         "the default rules of what to leave out are not installed; only %s "
                         "counts",
                         RULES_FOLDER_OF_THE_MACHINE);
        for (guint i = 0; i < problems->len; i++)
                cli_note(cli, "%s", (const char *)problems->pdata[i]);
        return rules;
}

static int
record(Cli *cli, const Options *options, char **argv)
{
        g_autoptr(GError) error = NULL;
        g_autoptr(Profile) previous = options->exact ? load_previous(cli, options) : NULL;
        g_autoptr(Profile) profile = NULL;
        g_autoptr(Rules) rules = load_rules(cli);
        RecordResult result;
        RecordOptions record_options = {
                .argv = argv,
                .name = options->name,
                .exact = options->exact,
                .whole_machine = options->system || options->boot || options->root,
                .root = options->root,
                /* Of a tree inside (a container) nobody tells its goal. */
                .wait_goal = options->wait_goal || (options->boot && !options->root),
                .limited_queue = options->limited_queue,
                .until = options->until,
                .why = options->why,
                .why_way = options->why_way,
                .buffer_kb = (guint)options->buffer_kb,
                .previous = previous,
                .rules = rules,
                .stdout_to_stderr = cli->json,
                .note = on_note,
                .note_data = (gpointer)cli,
                .rule = {.duration_us = (guint64)(options->duration_s * G_USEC_PER_SEC),
                         .until_mark = options->until != NULL,
                         .quiet_us = options->boot ? BOOT_QUIET_US : START_QUIET_US_DEFAULT,
                         .limit_us = options->boot ? BOOT_LIMIT_US : START_LIMIT_US_DEFAULT},
        };
        int status;

        /* a signal that came before record_command() takes them over */
        if (cli_interrupted)
                return 128 + cli_interrupted;
        profile = record_command(&record_options, &result, &error);
        if (!profile && options->boot &&
            g_error_matches(error, COMMON_ERROR, COMMON_ERROR_FAILED)) {
                /* nothing at boot may fail */
                cli_note(cli, "%s, ignoring", error->message);
                status = EXIT_STATUS_DONE;
        } else {
                status = profile ? finish(cli, options, profile, &result) : fail(cli, error);
        }
        /* The command runs on, whatever became of the recording. */
        if (result.started.pid > 0 && result.started.release_fd < 0) {
                cli->command_started = TRUE;
                while (!start_wait(&result.started, -1))
                        ;
                if (status == 0 ||
                    (cli->command_first && status != EXIT_STATUS_NOT_FOUND &&
                     status != EXIT_STATUS_NOT_EXECUTABLE) ||
                    (status == EXIT_STATUS_PARTIAL && start_exit_status(&result.started) != 0))
                        status = start_exit_status(&result.started);
        }
        if (result.started.pid > 0 && error &&
            g_error_matches(error, COMMON_ERROR, COMMON_ERROR_INTERRUPTED))
                status = start_exit_status(&result.started);
        record_result_clear(&result);
        return status;
}

static gboolean
parse_why_source(const char *text, WhyWay *ret)
{
        static const char *const NAMES[] = {
                [WHY_WAY_AUTO] = "auto", [WHY_WAY_BPF] = "bpf", [WHY_WAY_TRACEFS] = "tracefs"};

        for (guint i = 0; i < G_N_ELEMENTS(NAMES); i++) {
                if (text && strcmp(text, NAMES[i]) != 0)
                        continue;
                *ret = (WhyWay)i;
                return TRUE;
        }
        return FALSE;
}

int
cmd_record(Cli *cli, int argc, char **argv)
{
        g_auto(Options) options = {0};
        g_autoptr(GError) error = NULL;
        const GOptionEntry entries[] = {
                {"name", 0, 0, G_OPTION_ARG_STRING, &options.name,
                 "Name of the profile (default: of the command)", "N"},
                {"system", 0, 0, G_OPTION_ARG_NONE, &options.system,
                 "Record every process, not only the command and its children", NULL},
                {"boot", 0, 0, G_OPTION_ARG_NONE, &options.boot,
                 "Record the boot: every process, until its goal is reached and the disk is quiet",
                 NULL},
                {"wait-goal", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_NONE, &options.wait_goal,
                 "Wait for the goal of the machine with --root, too", NULL},
                {"limited-queue", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_NONE,
                 &options.limited_queue, "The kernel's default queue of opens", NULL},
                {"exact", 0, 0, G_OPTION_ARG_NONE, &options.exact,
                 "Record with the kernel's readahead off: exactly the pages touched; slow once",
                 NULL},
                {"fresh", 0, 0, G_OPTION_ARG_NONE, &options.fresh,
                 "Start anew instead of merging with what was recorded before", NULL},
                {"duration", 0, 0, G_OPTION_ARG_DOUBLE, &options.duration_s,
                 "The start ends after S seconds", "S"},
                {"why", 0, 0, G_OPTION_ARG_NONE, &options.why,
                 "Record why threads leave the CPU too, and access(\"MARK: TEXT\")", NULL},
                {"why-source", 0, 0, G_OPTION_ARG_STRING, &options.why_source,
                 "Where from: auto, bpf or tracefs", "SOURCE"},
                {"until", 0, 0, G_OPTION_ARG_STRING, &options.until,
                 "The start ends at headstart mark TEXT", "TEXT"},
                {"output", 'o', 0, G_OPTION_ARG_FILENAME, &options.output,
                 "Save to FILE instead of the state directory", "FILE"},
                {"buffer-kb", 0, 0, G_OPTION_ARG_INT, &options.buffer_kb,
                 "Trace buffer per CPU (default: up to 8192, by memory)", "KB"},
                {NULL, 0, 0, 0, NULL, NULL, NULL},
        };

        if (!cli_parse(cli, &argc, &argv, entries, "[-- CMD ARG...]", TRUE, &error))
                return cli_fail(cli, error);
        if (cli->root && !(options.root = realpath(cli->root, NULL)))
                return cli_usage(cli, "--root: %s", g_strerror(errno));
        if (options.root && g_str_equal(options.root, "/"))
                g_clear_pointer(&options.root, free);
        if (argc < 2 && !options.system && !options.boot && !cli->root)
                return cli_usage(cli, "which command? headstart record -- CMD ARG...");
        if (argc < 2 && !options.name && !options.boot)
                return cli_usage(cli, "a recording without a command needs --name N");
        if (!isfinite(options.duration_s) || options.duration_s < 0 ||
            options.duration_s > DURATION_S_MAX)
                return cli_usage(cli, "--duration is a number of seconds up to %.0f",
                                 DURATION_S_MAX);
        if (options.buffer_kb < 0 || options.buffer_kb > BUFFER_KB_MAX)
                return cli_usage(cli, "--buffer-kb is a number up to %d", BUFFER_KB_MAX);
        if (options.why_source && !options.why)
                return cli_usage(cli, "--why-source goes with --why");
        if (!parse_why_source(options.why_source, &options.why_way))
                return cli_usage(cli, "--why-source takes auto, bpf or tracefs");
        if (options.until && (!*options.until || strchr(options.until, '\n')))
                return cli_usage(cli, "--until takes one line of text");
        if (!options.name && options.boot)
                options.name = g_strdup("boot");
        if (!options.name)
                options.name = profile_name_from_command(argv[1]);
        if (!profile_name_valid(options.name)) {
                g_autofree gchar *quoted = path_quote(options.name);

                return cli_usage(cli, "%s is no name: letters, digits and ._+@:- only, at most 100",
                                 quoted);
        }
        if (!record_check_privilege(&error))
                return fail(cli, error);
        if (!options.output && !options.boot && !state_prepare(cli->state, &error))
                return fail(cli, error);
        return record(cli, &options, argc > 1 ? argv + 1 : NULL);
}
