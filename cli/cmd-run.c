// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * run: the first time record, from then on read ahead and start the command.
 *
 * The command takes this process's place, so that its exit status, its signals and its place in the
 * terminal are its own; the replay goes on in a process of its own that init inherits. Whatever
 * keeps the replay from working, the command is started.
 */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/replay-name.h"
#include "common/fd.h"
#include "common/quote.h"
#include "common/settings.h"
#include "common/state.h"
#include "measure/gain.h"
#include "profiler/start.h"
#include "readahead/engine.h"

/* The command is held until the metadata is read: one sorted batch, a fraction of a second on a
 * disk, after which its opens cost no seek. More than this it never waits. */
#define METADATA_WAIT_MS 2000

static void
metadata_done(void *data)
{
        int *fd = data;

        fd_close(fd);
}

/* In the replaying process. Never returns. */
static _Noreturn void
replay_child(GBytes *pack, int ready_fd, const char *root)
{
        struct replay_options options = {
                .root = root,
                .metadata_done = metadata_done,
                .metadata_done_data = &ready_fd,
        };
        struct replay_result result;
        struct pack opened;
        const char *reason;
        gsize size;
        const void *data = g_bytes_get_data(pack, &size);
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        /* a pipe behind the command must not wait for the replay */
        for (int fd = 0; null >= 0 && fd < 3; fd++)
                dup2(null, fd);
        setsid();
        if (pack_open(data, size, &opened, &reason) == 0 &&
            pack_prove_rest(&opened, size, &reason) == 0)
                replay_run(&opened, size, &options, &result);
        _exit(0);
}

static void
replay_start(const Cli *cli, GBytes *pack)
{
        auto_fd int ready = -1;
        struct pollfd wait = {.events = POLLIN};
        int ends[2];
        pid_t pid;

        if (pipe2(ends, O_CLOEXEC) < 0) {
                cli_note(cli, "cannot make a pipe: %s, starting without reading ahead",
                         g_strerror(errno));
                return;
        }
        ready = ends[0];
        pid = fork();
        if (pid == 0) {
                /* twice, so that the command does not find a child it never made */
                if (fork() == 0)
                        replay_child(pack, ends[1], cli->root);
                _exit(0);
        }
        close(ends[1]);
        if (pid < 0) {
                cli_note(cli, "cannot start a process: %s, starting without reading ahead",
                         g_strerror(errno));
                return;
        }
        if (cli->verbose) {
                const struct pack_header *header = g_bytes_get_data(pack, NULL);

                cli_note(cli,
                         "reading ahead %" G_GUINT64_FORMAT " files, %" G_GUINT64_FORMAT
                         " ranges, %" G_GUINT64_FORMAT " reads of metadata",
                         header->sections[PACK_FILES].count, header->sections[PACK_RANGES].count,
                         header->sections[PACK_META].count);
        }
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
        wait.fd = ready;
        poll(&wait, 1, METADATA_WAIT_MS);
}

static int
run_fail(const Cli *cli, const GError *error)
{
        cli_fail(cli, error);
        return error->domain == START_ERROR ? start_error_exit_status(error)
                                            : EXIT_STATUS_OWN_FAILURE;
}

/* Takes this process's place; returns only when that failed. */
static int
become_command(const Cli *cli, char **argv)
{
        g_autoptr(GError) error = NULL;

        settings_restore_all();
        start_replace(argv, NULL, &error);
        return run_fail(cli, error);
}

/* One line on what a relocation would gain, for the profile just recorded. */
static void
tell_gain(const Cli *cli, const char *name)
{
        g_autoptr(GError) error = NULL;
        g_autoptr(Profile) profile = cli_load_profile(cli, name, &error);
        RelocationGain gain;

        if (!profile || !relocation_gain_estimate(profile, cli->root, &gain, &error)) {
                cli_note(cli, "recorded %s; what relocate would gain is not known: %s", name,
                         error->message);
                return;
        }
        if (!gain.worth_it)
                cli_note(cli,
                         "recorded %s; on this drive (taken for %s) relocate would gain nothing; "
                         "the next "
                         "run reads ahead",
                         name, gain.model);
        else
                cli_note(cli,
                         "recorded %s; a cold start of about %.1f s takes %.1f s with the next "
                         "run, and %.1f s "
                         "after: headstart relocate %s (predicted for a drive like %s)",
                         name, gain.cold_ms / 1000, gain.prefetch_ms / 1000,
                         gain.relocated_ms / 1000, name, gain.model);
}

static int
record_first(Cli *cli, const char *name, char **argv)
{
        g_autoptr(GPtrArray) words = g_ptr_array_new();
        g_autofree gchar *path = state_profile_path(cli->state, name);
        g_autoptr(GError) error = NULL;
        int status;

        /* what cannot be kept need not be recorded: the command is started all the same */
        if (!state_prepare(cli->state, &error) || !state_file_check(path, &error)) {
                cli_note(cli, "%s, starting without recording", error->message);
                return become_command(cli, argv);
        }

        g_ptr_array_add(words, (gpointer) "record");
        g_ptr_array_add(words, (gpointer) "--name");
        g_ptr_array_add(words, (gpointer)name);
        g_ptr_array_add(words, (gpointer) "--");
        for (char **word = argv; *word; word++)
                g_ptr_array_add(words, *word);
        g_ptr_array_add(words, NULL);
        cli->command_first = TRUE;
        status = cmd_record(cli, words->len - 1, (char **)words->pdata);
        if (!cli->command_started && !cli_interrupted && status != EXIT_STATUS_NOT_FOUND &&
            status != EXIT_STATUS_NOT_EXECUTABLE) {
                cli_note(cli, "starting without recording");
                return become_command(cli, argv);
        }
        if (g_file_test(path, G_FILE_TEST_EXISTS))
                tell_gain(cli, name);
        return status;
}

int
cmd_run(Cli *cli, int argc, char **argv)
{
        g_autofree gchar *name = NULL, *path = NULL;
        g_autoptr(GError) error = NULL;
        g_autoptr(GBytes) pack = NULL;
        const GOptionEntry entries[] = {
                {"name", 0, 0, G_OPTION_ARG_STRING, &name, "Name of the profile", "N"},
                {NULL, 0, 0, 0, NULL, NULL, NULL},
        };

        if (!cli_parse(cli, &argc, &argv, entries, "-- CMD ARG...", TRUE, &error))
                return run_fail(cli, error);
        if (argc < 2) {
                cli_usage(cli, "which command? headstart run -- CMD ARG...");
                return EXIT_STATUS_OWN_FAILURE;
        }
        if (!name)
                name = profile_name_from_command(argv[1]);
        if (!profile_name_valid(name)) {
                g_autofree gchar *quoted = path_quote(name);

                cli_usage(cli, "%s is no name: letters, digits and ._+@:- only, at most 100",
                          quoted);
                return EXIT_STATUS_OWN_FAILURE;
        }
        path = cli_profile_path(cli, name);
        if (!g_file_test(path, G_FILE_TEST_EXISTS))
                return record_first(cli, name, argv + 1);

        /* From here on there is nothing to undo: who ends this process means the command. */
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        if (cli_interrupted)
                raise(cli_interrupted);

        if (replay_name_load(cli, name, REPLAY_ORDER_AUTO, &pack, &error))
                replay_start(cli, pack);
        else
                cli_note(cli, "%s, starting without reading ahead", error->message);
        return become_command(cli, argv + 1);
}
