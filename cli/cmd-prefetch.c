// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prefetch: load a profile's metadata and ranges into the page cache.
 *
 * Without --wait it returns when the metadata is there (what a start beside it needs first), and a
 * process of its own reads on in the background. --wait, and --json, whose figures want the end,
 * wait for all and say what is resident.
 */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/replay-name.h"
#include "common/fd.h"
#include "common/json.h"

static void
tell(const Cli *cli, const struct replay_result *result)
{
        if (result->unmounted > 0)
                cli_note(cli, "%" G_GUINT64_FORMAT " of its file systems are not mounted",
                         result->unmounted);
        if (result->metadata_error == EACCES || result->metadata_error == EPERM)
                cli_note(cli, "metadata is left out: reading the block device needs root");
        else if (result->metadata_error)
                cli_note(cli, "metadata is left out: cannot open the block device: %s",
                         g_strerror(result->metadata_error));
        if (result->walked)
                cli_note(cli, "no openat2 on this kernel: paths are walked part by part");
        if (result->unverified_bytes > 0)
                cli_note(cli,
                         "%" G_GUINT64_FORMAT " bytes are not counted as resident: the kernel "
                         "tells only the owner of a file",
                         result->unverified_bytes);
}

static gboolean
print_json(const char *name, const struct pack *pack, const struct replay_result *result,
           GError **error)
{
        g_autoptr(JsonBuilder) builder = json_builder_new();

        json_builder_begin_object(builder);
        json_add_string(builder, "name", name);
        json_add_int(builder, "files", result->files);
        json_add_int(builder, "ranges", result->ranges);
        json_add_int(builder, "bytes", result->bytes);
        json_add_int(builder, "metadata_blocks", result->metadata_blocks);
        json_add_int(builder, "stale", result->stale);
        json_add_int(builder, "missing", result->missing);
        json_add_int(builder, "skipped", result->skipped);
        json_add_int(builder, "failed", result->failed);
        json_add_int(builder, "resident_bytes", result->resident_bytes);
        json_add_double(builder, "elapsed_ms", result->elapsed_ms);
        json_add_double(builder, "metadata_ms", result->metadata_ms);
        json_add_string(builder, "method", result->method);
        json_add_string(builder, "order",
                        pack->header->flags & PACK_BLOCK_ORDER ? "block" : "time");
        json_add_bool(builder, "relocated", (pack->header->flags & PACK_RELOCATED) != 0);
        json_builder_end_object(builder);
        return json_print(builder, error);
}

static void
print_line(const char *name, const struct replay_result *result)
{
        g_autofree gchar *bytes = g_format_size_full(result->bytes, G_FORMAT_SIZE_IEC_UNITS);
        g_autofree gchar *resident =
                g_format_size_full(result->resident_bytes, G_FORMAT_SIZE_IEC_UNITS);

        printf("%s: %" G_GUINT64_FORMAT " files, %" G_GUINT64_FORMAT
               " ranges, %s read in %.0f ms by %s "
               "(metadata: %" G_GUINT64_FORMAT " blocks, %.0f ms); %s resident",
               name, result->files, result->ranges, bytes, result->elapsed_ms, result->method,
               result->metadata_blocks, result->metadata_ms, resident);
        if (result->stale > 0 || result->missing > 0)
                printf("; %" G_GUINT64_FORMAT " stale, %" G_GUINT64_FORMAT " missing",
                       result->stale, result->missing);
        if (result->skipped > 0 || result->failed > 0)
                printf("; %" G_GUINT64_FORMAT " ranges skipped, %" G_GUINT64_FORMAT " failed",
                       result->skipped, result->failed);
        printf("\n");
}

static int
prefetch_waiting(const Cli *cli, const char *name, GBytes *bytes, struct replay_options *options)
{
        struct replay_result result = {0};
        g_autoptr(GError) error = NULL;
        struct pack pack;

        options->verify = true;
        options->stop = &cli_interrupted;
        if (!replay_name_run(bytes, options, &result, &error))
                return cli_fail(cli, error);
        tell(cli, &result);
        if (cli->json) {
                pack_open(g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes), &pack, NULL);
                if (!print_json(name, &pack, &result, &error))
                        return cli_fail(cli, error);
        } else if (!cli->quiet) {
                print_line(name, &result);
        }
        return cli_interrupted ? EXIT_STATUS_INTERRUPTED : EXIT_STATUS_DONE;
}

static void
on_metadata_done(void *data)
{
        fd_close(data);
}

/* In the child. Never returns. */
static _Noreturn void
read_in_background(GBytes *bytes, struct replay_options *options, int ready)
{
        struct replay_result result;
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        /* who reads our output must not wait for the background */
        for (int fd = 0; null >= 0 && fd < 3; fd++)
                dup2(null, fd);
        setsid();
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        options->metadata_done = on_metadata_done;
        options->metadata_done_data = &ready;
        replay_name_run(bytes, options, &result, NULL);
        _exit(0);
}

static int
prefetch_in_background(const Cli *cli, GBytes *bytes, struct replay_options *options)
{
        auto_fd int ready = -1;
        struct pollfd wait = {.events = POLLIN};
        int ends[2];
        pid_t child;

        if (pipe2(ends, O_CLOEXEC) < 0) {
                cli_note(cli, "cannot make a pipe: %s", g_strerror(errno));
                return EXIT_STATUS_FAILED;
        }
        ready = ends[0];
        child = fork();
        if (child == 0) {
                close(ready);
                read_in_background(bytes, options, ends[1]);
        }
        close(ends[1]);
        if (child < 0) {
                cli_note(cli, "cannot start a process: %s", g_strerror(errno));
                return EXIT_STATUS_FAILED;
        }
        wait.fd = ready;
        while (!cli_interrupted && poll(&wait, 1, -1) < 0 && errno == EINTR)
                ;
        if (cli_interrupted) {
                kill(child, SIGTERM);
                return EXIT_STATUS_INTERRUPTED;
        }
        return EXIT_STATUS_DONE;
}

int
cmd_prefetch(Cli *cli, int argc, char **argv)
{
        g_autofree gchar *order_text = NULL, *budget_text = NULL, *deadline_text = NULL;
        gboolean wait = FALSE, no_uring = FALSE;
        g_autoptr(GError) error = NULL;
        g_autoptr(GBytes) bytes = NULL;
        struct replay_options options = {0};
        ReplayOrder order = REPLAY_ORDER_AUTO;
        const GOptionEntry entries[] = {
                {"order", 0, 0, G_OPTION_ARG_STRING, &order_text, "auto, time or block", "O"},
                {"budget", 0, 0, G_OPTION_ARG_STRING, &budget_text,
                 "Read no more than SIZE (bytes, or with K, M, G)", "SIZE"},
                {"deadline", 0, 0, G_OPTION_ARG_STRING, &deadline_text,
                 "Start no read after S seconds", "S"},
                {"wait", 0, 0, G_OPTION_ARG_NONE, &wait,
                 "Wait until all is read and say what is resident", NULL},
                {"no-uring", 0, 0, G_OPTION_ARG_NONE, &no_uring, "Read by threads", NULL},
                {NULL, 0, 0, 0, NULL, NULL, NULL},
        };

        if (!cli_parse(cli, &argc, &argv, entries, "NAME", FALSE, &error))
                return cli_fail(cli, error);
        if (argc != 2)
                return cli_usage(cli, "which profile? headstart prefetch NAME");
        if (order_text && !replay_order_parse(order_text, &order))
                return cli_usage(cli, "--order takes auto, time or block");
        if (budget_text &&
            (!replay_size_parse(budget_text, &options.budget_bytes) || options.budget_bytes == 0))
                return cli_usage(cli, "--budget takes bytes, or with K, M or G: 64M");
        if (deadline_text) {
                char *end;

                options.deadline_s = g_ascii_strtod(deadline_text, &end);
                if (*end || end == deadline_text || !(options.deadline_s > 0))
                        return cli_usage(cli, "--deadline takes seconds: 2.5");
        }
        options.no_uring = no_uring;
        options.root = cli->root;
        if (!replay_name_load(cli, argv[1], order, &bytes, &error))
                return cli_fail(cli, error);
        if (wait || cli->json)
                return prefetch_waiting(cli, argv[1], bytes, &options);
        return prefetch_in_background(cli, bytes, &options);
}
