// SPDX-License-Identifier: GPL-2.0-or-later
/* measure: what loading a profile, or whole files, costs as they lie now, and what starts would
 * take. */
#include "cli/cli.h"

#include <math.h>
#include <string.h>

#include "cli/measure-output.h"
#include "common/json.h"
#include "common/quote.h"
#include "measure/estimate.h"
#include "measure/file-list.h"

typedef struct {
        gchar *list, *model, *order, *before, *situation, *cached;
        gboolean files;
        gint readahead_kb;
        double warm_ms;
} Options;

static void
options_clear(Options *options)
{
        g_free(options->list);
        g_free(options->model);
        g_free(options->order);
        g_free(options->before);
        g_free(options->situation);
        g_free(options->cached);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Options, options_clear)
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(MeasureFigures, measure_figures_clear)

static gboolean
parse_order(const char *text, gboolean is_name, ReadingOrder *ret, GError **error)
{
        static const struct {
                const char *name;
                ReadingOrder order;
        } orders[] = {{"auto", READING_ORDER_AUTO},
                      {"time", READING_ORDER_TIME},
                      {"block", READING_ORDER_BLOCK},
                      {"random", READING_ORDER_RANDOM}};
        g_autofree gchar *quoted = NULL;

        *ret = is_name ? READING_ORDER_AUTO : READING_ORDER_TIME;
        if (text == NULL)
                return TRUE;
        for (gsize i = 0; i < G_N_ELEMENTS(orders); i++)
                if (strcmp(orders[i].name, text) == 0) {
                        *ret = orders[i].order;
                        return TRUE;
                }
        quoted = path_quote(text);
        g_set_error(error, COMMON_ERROR, COMMON_ERROR_USAGE,
                    "--order %s is none of auto, time, block, random", quoted);
        return FALSE;
}

/* Appends the estimates asked for. */
static gboolean
add_situations(const EstimateInput *input, const char *name, GArray *out, GError **error)
{
        g_autofree gchar *known = NULL, *quoted = NULL;
        Estimate estimate;

        if (name == NULL)
                return TRUE;
        if (strcmp(name, "all") == 0) {
                for (const char *const *each = estimate_situations(); *each != NULL; each++) {
                        estimate_situation(input, *each, &estimate);
                        g_array_append_val(out, estimate);
                }
                return TRUE;
        }
        if (estimate_situation(input, name, &estimate)) {
                g_array_append_val(out, estimate);
                return TRUE;
        }
        quoted = path_quote(name);
        known = g_strjoinv(", ", (gchar **)estimate_situations());
        g_set_error(error, COMMON_ERROR, COMMON_ERROR_USAGE, "--situation %s is none of all, %s",
                    quoted, known);
        return FALSE;
}

static int
status_of(const Layout *layout, const GPtrArray *skipped, gboolean is_name)
{
        if (layout->measured == 0 && layout->not_a_disk)
                return EXIT_STATUS_UNSUPPORTED;
        if (layout->measured == 0 && skipped->len > 0)
                return EXIT_STATUS_USAGE;
        /* A file of a profile that is no longer there is no failure of measuring the rest. */
        return skipped->len > 0 && !is_name ? EXIT_STATUS_PARTIAL : EXIT_STATUS_DONE;
}

static void
print_notes(const Cli *cli, const Layout *layout, const LayoutDisk *disk, const GPtrArray *skipped)
{
        cli_print_skipped(cli, skipped);
        if (layout->measured == 0)
                cli_note(cli, "nothing to measure is left");
        if (disk != NULL && disk->assumed)
                cli_note(cli,
                         "the drive is taken for the class %s by what the kernel says of it; "
                         "--device-model names another",
                         disk->model->name);
        if (layout->meta_note != NULL)
                cli_note(cli, "metadata is not counted in full: %s", layout->meta_note);
        if (layout->logical_addresses)
                cli_note(cli,
                         "the file system tells logical addresses, not places on the drive: low "
                         "confidence");
}

static FileList *
load_list(const Cli *cli, const Options *options, int argc, char **argv, GError **error)
{
        g_autoptr(FileList) list = file_list_new("list", cli->root, error);

        if (list == NULL)
                return NULL;
        if (options->list != NULL && !file_list_read(list, options->list, cli->null, error))
                return NULL;
        for (int i = 1; i < argc; i++)
                file_list_add(list, argv[i]);
        return g_steal_pointer(&list);
}

/* One word without a slash that names a profile is a profile; everything else are paths. */
static gboolean
is_profile(const Cli *cli, const Options *options, int argc, char **argv)
{
        g_autoptr(Profile) profile = NULL;
        g_autoptr(GError) error = NULL;

        if (options->list != NULL || argc != 2 || strchr(argv[1], '/') != NULL)
                return FALSE;
        profile = cli_load_profile(cli, argv[1], &error);
        /* A damaged profile is one too; a name that is unknown may still be a file here. */
        return profile != NULL || !g_error_matches(error, COMMON_ERROR, COMMON_ERROR_USAGE) ||
               !g_file_test(argv[1], G_FILE_TEST_EXISTS);
}

static int
measure(Cli *cli, const Options *options, Profile *profile, FileList *list,
        const MeasureFigures *before)
{
        LayoutOptions layout_options = {
                .root = cli->root, .model = options->model, .cached = options->cached};
        g_autoptr(GError) error = NULL;
        g_autoptr(Layout) layout = NULL;
        g_autoptr(GArray) files = NULL, situations = g_array_new(FALSE, FALSE, sizeof(Estimate));
        g_autoptr(GArray) ranges = ranges_from_profile(profile, NULL);
        EstimateInput input = {.profile = profile,
                               .place_bytes = G_MAXUINT64,
                               .cpu_ms = estimate_cpu_ms(profile),
                               .readahead_bytes = G_MAXUINT64};
        LoadEstimate load;
        MeasureOutput output = {.name = list == NULL ? profile->name : NULL,
                                .profile = profile,
                                .load = &load,
                                .situations = situations,
                                .before = before};

        if (list != NULL) {
                g_ptr_array_add(list->outside, NULL);
                layout_options.outside = (const char *const *)list->outside->pdata;
        }
        layout = layout_load(profile, &layout_options, &error);
        if (layout == NULL || !parse_order(options->order, list == NULL, &input.order, &error))
                return cli_fail(cli, error);
        if (list != NULL)
                g_ptr_array_extend_and_steal(layout->skipped, g_steal_pointer(&list->skipped));
        input.layout = layout;
        if (options->readahead_kb != G_MAXINT)
                input.readahead_bytes = (guint64)options->readahead_kb * 1024;
        if (isfinite(options->warm_ms))
                input.cpu_ms = options->warm_ms;
        estimate_load(&input, &load, options->files ? &files : NULL);
        if (!add_situations(&input, options->situation, situations, &error))
                return cli_fail(cli, error);
        output.layout = layout;
        output.skipped = layout->skipped;
        output.files = files;
        output.outside = layout_options.outside;
        if (layout->measured > 0)
                output.disk = layout->disks->pdata[layout_main_disk(layout, ranges)];
        measure_figures(&output);
        print_notes(cli, layout, output.disk, layout->skipped);
        if (cli->json && !measure_print_json(&output, &error))
                return cli_fail(cli, error);
        if (!cli->json && layout->measured > 0)
                measure_print(&output);
        return status_of(layout, layout->skipped, list == NULL);
}

int
cmd_measure(Cli *cli, int argc, char **argv)
{
        g_auto(Options) options = {.readahead_kb = G_MAXINT, .warm_ms = INFINITY};
        g_auto(MeasureFigures) before = {0};
        g_autoptr(GError) error = NULL;
        g_autoptr(Profile) profile = NULL;
        g_autoptr(FileList) list = NULL;
        g_autoptr(DiskModel) model = NULL;
        const GOptionEntry entries[] = {
                {"list", 0, 0, G_OPTION_ARG_FILENAME, &options.list,
                 "Measure the files of a list, a path a line; - is standard input", "FILE"},
                {"device-model", 0, 0, G_OPTION_ARG_STRING, &options.model,
                 "Class of drive: hdd-2006, hdd-laptop, hdd-10k, hdd, ssd-sata, nvme, sd, ebs-gp3, "
                 "ebs",
                 "M"},
                {"order", 0, 0, G_OPTION_ARG_STRING, &options.order,
                 "Order of reading: auto (default of a profile), time (of paths), block or random",
                 "O"},
                {"before", 0, 0, G_OPTION_ARG_FILENAME, &options.before,
                 "Compare with what measure --json printed earlier", "FILE"},
                {"files", 0, 0, G_OPTION_ARG_NONE, &options.files, "Also each file", NULL},
                {"situation", 0, 0, G_OPTION_ARG_STRING, &options.situation,
                 "Also how long a start takes: cold, cold-1024, cold-8192, whole-files, prefetch, "
                 "relocated, relocated-prefetch, warm or all",
                 "S"},
                {"cached", 0, 0, G_OPTION_ARG_FILENAME, &options.cached,
                 "Take the files of the file system that DIR is on for cached", "DIR"},
                {"readahead-kb", 0, 0, G_OPTION_ARG_INT, &options.readahead_kb,
                 "The kernel's readahead (default: the drive's)", "K"},
                {"warm-ms", 0, 0, G_OPTION_ARG_DOUBLE, &options.warm_ms,
                 "How long a warm start takes (default: CPU time of the recording)", "MS"},
                {NULL, 0, 0, 0, NULL, NULL, NULL},
        };

        if (!cli_parse(cli, &argc, &argv, entries, "NAME | --list FILE | PATH...", FALSE, &error))
                return cli_fail(cli, error);
        if (argc < 2 && options.list == NULL)
                return cli_usage(cli, "what is to be measured? A profile, --list FILE or paths");
        if (options.readahead_kb < 0)
                return cli_usage(cli, "--readahead-kb is a number of KiB, 0 or more");
        if (isnan(options.warm_ms) || options.warm_ms < 0)
                return cli_usage(cli, "--warm-ms is a number of milliseconds, 0 or more");
        if (options.model != NULL && (model = disk_model_new(options.model, &error)) == NULL)
                return cli_fail(cli, error);
        if (options.before != NULL && !measure_figures_load(options.before, &before, &error))
                return cli_fail(cli, error);
        if (is_profile(cli, &options, argc, argv)) {
                profile = cli_load_profile(cli, argv[1], &error);
                if (profile == NULL)
                        return cli_fail(cli, error);
                return measure(cli, &options, profile, NULL,
                               options.before != NULL ? &before : NULL);
        }
        list = load_list(cli, &options, argc, argv, &error);
        if (list == NULL)
                return cli_fail(cli, error);
        return measure(cli, &options, list->profile, list, options.before != NULL ? &before : NULL);
}
