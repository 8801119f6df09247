// SPDX-License-Identifier: GPL-2.0-or-later
/* headstart: the verb table. Each verb is a file of its own, cli/cmd-NAME.c. */
#include "cli/cli.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/quote.h"
#include "common/settings.h"

volatile int cli_interrupted;

static const struct {
        const char *name;
        int (*run)(Cli *cli, int argc, char **argv);
        const char *arguments, *summary;
        gboolean reads_only; /* nothing to undo: a signal ends it at once */
} verbs[] = {
        {"record", cmd_record, "[--exact] -- CMD ARG...", "record what a start reads, in order",
         FALSE},
        {"run", cmd_run, "-- CMD ARG...", "first time: record; from then on: prefetch and start",
         FALSE},
        {"relocate", cmd_relocate, "NAME",
         "lay the data of a profile out contiguously, in order of first use", FALSE},
        {"prefetch", cmd_prefetch, "NAME", "load the data of a profile into the page cache", FALSE},
        {"measure", cmd_measure, "NAME | PATH...", "what loading this costs as it lies now", TRUE},
        {"show", cmd_show, "NAME", "print a profile", TRUE},
        {"list", cmd_list, "", "the profiles there are", TRUE},
        {"forget", cmd_forget, "NAME...", "remove profiles and their packs", FALSE},
        {"import", cmd_import, "--format F FILE",
         "make a profile from a list, a strace log or a pack", FALSE},
        {"export", cmd_export, "--format F NAME", "the files of a profile for other tools", FALSE},
        {"mark", cmd_mark, "TEXT", "mark the end of a start for record --until", FALSE},
};

static void
on_signal(int number)
{
        cli_interrupted = number;
}

static void
on_signal_exit(int number)
{
        _exit(128 + number);
}

static void
on_pipe(int number)
{
        (void)number;
}

/* What could not be written to standard output is an error, found at the latest here. */
static int
finish_output(const Cli *cli, int status)
{
        g_autoptr(GError) error = NULL;
        gboolean failed = ferror(stdout) != 0;

        if (fflush(stdout) == 0 && !failed)
                return status;
        error_set_errno(&error, COMMON_ERROR_FAILED, errno ? errno : EIO,
                        "cannot write to standard output", NULL);
        return status ? status : cli_fail(cli, error);
}

static void
print_help(FILE *to)
{
        fprintf(to, "Usage: headstart VERB [OPTION...] [ARGUMENT...]\n\n");
        for (guint i = 0; i < G_N_ELEMENTS(verbs); i++) {
                g_autofree gchar *left =
                        g_strdup_printf("%s %s", verbs[i].name, verbs[i].arguments);

                fprintf(to, "  %-40s %s\n", left, verbs[i].summary);
        }
        fprintf(to, "\nheadstart VERB --help tells a verb's options; headstart(1) tells more.\n");
}

int
main(int argc, char **argv)
{
        struct sigaction action = {.sa_handler = on_signal}, old_pipe_action;
        struct sigaction pipe_action = {.sa_handler = SIG_DFL};
        g_autofree gchar *quoted = NULL;
        Cli cli = {0};

        setlocale(LC_ALL, "");
        g_set_prgname("headstart");
        if (argc < 2) {
                print_help(stderr);
                return EXIT_STATUS_USAGE;
        }
        if (!strcmp(argv[1], "--version")) {
                printf("headstart %s\n", HEADSTART_VERSION);
                return finish_output(&cli, 0);
        }
        if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
                print_help(stdout);
                return finish_output(&cli, 0);
        }
        for (guint i = 0; i < G_N_ELEMENTS(verbs); i++) {
                int status;

                if (strcmp(argv[1], verbs[i].name) != 0)
                        continue;
                /* no SA_RESTART: a blocking call returns and the verb sees cli_interrupted */
                if (verbs[i].reads_only)
                        action.sa_handler = on_signal_exit;
                else
                        pipe_action.sa_handler = on_pipe;
                sigaction(SIGINT, &action, NULL);
                sigaction(SIGTERM, &action, NULL);
                /* caught, not ignored: a command that is started finds it as it was before */
                if (sigaction(SIGPIPE, NULL, &old_pipe_action) == 0 &&
                    old_pipe_action.sa_handler != SIG_IGN)
                        sigaction(SIGPIPE, &pipe_action, NULL);
                settings_repair();
                status = verbs[i].run(&cli, argc - 1, argv + 1);
                settings_restore_all();
                status = finish_output(&cli, status);
                g_free(cli.state);
                g_free(cli.state_option);
                g_free(cli.root);
                return status;
        }
        quoted = path_quote(argv[1]);
        return cli_usage(&cli, "there is no verb %s", quoted);
}
