// SPDX-License-Identifier: GPL-2.0-or-later
/* relocate: lay the data of a profile out contiguously, in order of first use. */
#include "cli/cli.h"
#include "cli/replay-name.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "common/progress.h"
#include "common/quote.h"
#include "measure/estimate.h"
#include "relocator/relocate.h"

static ExitStatus
error_status(const GError *error)
{
        if (error->domain != RELOCATOR_ERROR)
                return cli_exit_status(error);
        switch ((RelocatorError)error->code) {
        case RELOCATOR_ERROR_NOT_EXT4:
        case RELOCATOR_ERROR_REFUSED: return EXIT_STATUS_UNSUPPORTED;
        default: return EXIT_STATUS_FAILED;
        }
}

static int
fail(const Cli *cli, const GError *error)
{
        cli_fail(cli, error);
        return error_status(error);
}

static void
on_progress(guint64 done_bytes, guint64 total_bytes, void *data)
{
        progress_update(data, done_bytes >> 20, total_bytes >> 20, "MiB");
}

/* How long a start takes that is read ahead: as the data lies, or (`relocated`) as it would lie.
 * -1 when there is no telling. */
static double
predict(const Profile *profile, const char *root, gboolean relocated)
{
        const LayoutOptions options = {.root = root};
        Profile local = *profile; /* loading a layout adds to `meta` */
        g_autoptr(GArray) meta = g_array_copy(profile->meta);
        g_autoptr(Layout) layout = NULL;
        Estimate estimate;

        local.meta = meta;
        layout = layout_load(&local, &options, NULL);
        if (!layout || layout->measured == 0)
                return -1;
        {
                const EstimateInput input = {
                        .profile = &local,
                        .layout = layout,
                        .cpu_ms = estimate_cpu_ms(profile),
                        .readahead_bytes = G_MAXUINT64,
                        .place_bytes = G_MAXUINT64,
                };

                if (!estimate_situation(&input, relocated ? "relocated-prefetch" : "prefetch",
                                        &estimate))
                        return -1;
        }
        return estimate.total_ms;
}

typedef struct {
        double before_ms, after_ms; /* -1 = not known */
} Prediction;

static void
add_prediction(JsonBuilder *builder, const char *key, double ms)
{
        if (ms >= 0) {
                json_add_double(builder, key, ms);
                return;
        }
        json_builder_set_member_name(builder, key);
        json_builder_add_null_value(builder);
}

static gboolean
print_json(const RelocateResult *result, const Prediction *prediction, gboolean dry_run,
           GError **error)
{
        g_autoptr(JsonBuilder) builder = json_builder_new();

        json_builder_begin_object(builder);
        json_add_string(builder, "method", result->method);
        json_add_bool(builder, "dry_run", dry_run);
        json_add_int(builder, "planned_bytes", (gint64)result->planned_bytes);
        json_add_int(builder, "moved_bytes", (gint64)result->moved_bytes);
        json_add_int(builder, "files", result->files);
        json_add_skipped(builder, "skipped", result->skipped);
        json_add_int(builder, "runs_before", (gint64)result->runs_before);
        json_add_int(builder, "runs_after", (gint64)result->runs_after);
        add_prediction(builder, "predicted_before_ms", prediction->before_ms);
        add_prediction(builder, "predicted_after_ms", prediction->after_ms);
        json_add_int(builder, "window_start_bytes", result->window_start_bytes);
        if (result->declined)
                json_add_string(builder, "declined", result->declined);
        json_builder_end_object(builder);
        return json_print(builder, error);
}

static void
print_text(const RelocateResult *result, const Prediction *prediction, gboolean dry_run)
{
        if (result->declined && result->moved_bytes == 0) {
                printf("nothing to gain: %s\n", result->declined);
                return;
        }
        printf("%s %u files, %.1f MiB: %" G_GUINT64_FORMAT " runs %s %" G_GUINT64_FORMAT,
               dry_run ? "would move" : "moved", result->files,
               (double)(dry_run ? result->planned_bytes : result->moved_bytes) / (1 << 20),
               result->runs_before, dry_run ? "would become" : "became", result->runs_after);
        if (prediction->before_ms >= 0 && prediction->after_ms >= 0)
                printf("; a cold start with prefetch: %.1f s before, %.1f s after (predicted)",
                       prediction->before_ms / 1000, prediction->after_ms / 1000);
        printf("\n");
}

/* The blocks of the files' extent trees are new: the pack that names them is made anew. */
static void
recompile(const Cli *cli, const char *name)
{
        g_autoptr(GError) error = NULL;

        if (!replay_name_compile(cli, name, &error))
                cli_note(cli, "the pack of %s could not be made anew: %s, ignoring", name,
                         error->message);
}

static gboolean
parse_unit(const char *text, RelocateUnit *ret)
{
        /* "auto" is what a replay reads: a relocated profile is meant to be replayed. */
        if (!text || strcmp(text, "auto") == 0 || strcmp(text, "range") == 0)
                *ret = RELOCATE_UNIT_RANGE;
        else if (strcmp(text, "file") == 0)
                *ret = RELOCATE_UNIT_FILE;
        else
                return FALSE;
        return TRUE;
}

int
cmd_relocate(Cli *cli, int argc, char **argv)
{
        g_autofree gchar *unit = NULL, *method = NULL;
        gboolean dry_run = FALSE, force = FALSE;
        const GOptionEntry entries[] = {
                {"dry-run", 0, 0, G_OPTION_ARG_NONE, &dry_run,
                 "Change nothing, say what would be done", NULL},
                {"unit", 0, 0, G_OPTION_ARG_STRING, &unit, "What is laid out: range, file or auto",
                 "UNIT"},
                {"method", 0, 0, G_OPTION_ARG_STRING, &method, "How data is moved: move or auto",
                 "METHOD"},
                {"force", 0, 0, G_OPTION_ARG_NONE, &force,
                 "Also where little is gained, and on snapshots and thin volumes", NULL},
                {NULL, 0, 0, 0, NULL, NULL, NULL},
        };
        g_autoptr(GError) error = NULL;
        g_autoptr(Profile) profile = NULL;
        g_autoptr(Progress) progress = NULL;
        g_auto(RelocateResult) result = {0};
        Prediction prediction = {-1, -1};
        RelocateOptions options = {0};
        gboolean done;

        if (!cli_parse(cli, &argc, &argv, entries, "NAME", FALSE, &error))
                return fail(cli, error);
        if (argc != 2)
                return cli_usage(cli, "which profile? headstart relocate NAME");
        if (!parse_unit(unit, &options.unit)) {
                g_autofree gchar *quoted = path_quote(unit);

                return cli_usage(cli, "--unit %s is none of range, file, auto", quoted);
        }
        if (method && strcmp(method, "auto") != 0 && strcmp(method, "move") != 0) {
                g_autofree gchar *quoted = path_quote(method);

                return cli_usage(cli, "--method %s is none of auto, move", quoted);
        }
        profile = cli_load_profile(cli, argv[1], &error);
        if (!profile)
                return fail(cli, error);

        progress = progress_new("relocating", !cli->quiet && !cli->json);
        options.dry_run = dry_run;
        options.force = force;
        options.root = cli->root;
        options.stop = &cli_interrupted;
        options.progress = on_progress;
        options.progress_data = progress;
        prediction.before_ms = prediction.after_ms = predict(profile, cli->root, FALSE);
        done = relocate_profile(profile, &options, &result, &error);
        g_clear_pointer(&progress, progress_free);

        if (result.moved_bytes > 0 || (dry_run && !result.declined))
                prediction.after_ms = predict(profile, cli->root, dry_run);
        if (result.moved_bytes > 0)
                recompile(cli, argv[1]);
        cli_print_skipped(cli, result.skipped);
        if (cli->json) {
                g_autoptr(GError) print_error = NULL;

                if (!print_json(&result, &prediction, dry_run, &print_error))
                        return fail(cli, print_error);
        } else if (done) {
                print_text(&result, &prediction, dry_run);
        }
        if (!done)
                return fail(cli, error);
        if (cli->json && result.declined && result.moved_bytes == 0)
                cli_note(cli, "nothing to gain: %s", result.declined);
        if (result.interrupted) {
                cli_note(cli, "interrupted; what was moved until then is whole");
                return EXIT_STATUS_INTERRUPTED;
        }
        if (result.declined && result.moved_bytes == 0)
                return EXIT_STATUS_DONE;
        return result.skipped->len > 0 ? EXIT_STATUS_PARTIAL : EXIT_STATUS_DONE;
}
