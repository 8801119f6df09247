// SPDX-License-Identifier: GPL-2.0-or-later
/* headstart: the verb table. Each verb is a file of its own, cli/cmd-NAME.c. */
#include "cli/cli.h"

#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/quote.h"
#include "common/settings.h"

volatile int cli_interrupted;

static const struct {
        const char *name;
        int (*run)(Cli *cli, int argc, char **argv);
        const char *arguments, *summary;
} verbs[] = {
#define VERB(name, arguments, summary)                                                             \
        {                                                                                          \
#name, cmd_##name, arguments, summary                                              \
        }
        VERB(record, "[--exact] -- CMD ARG...", "record what a start reads, in order"),
        VERB(run, "-- CMD ARG...", "first time: record; from then on: prefetch and start"),
        VERB(relocate, "NAME", "lay the data of a profile out contiguously, in order of first use"),
        VERB(prefetch, "NAME", "load the data of a profile into the page cache"),
        VERB(measure, "NAME | PATH...", "what loading this costs as it lies now"),
        VERB(show, "NAME", "print a profile"),
        VERB(list, "", "the profiles there are"),
        VERB(forget, "NAME...", "remove profiles and their packs"),
        VERB(import, "--format F FILE", "make a profile from a list, a strace log or a pack"),
        VERB(export, "--format F NAME", "the files of a profile for other tools"),
        VERB(mark, "TEXT", "mark the end of a start for record --until"),
#undef VERB
};

static void
on_signal(int number)
{
        cli_interrupted = number;
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
        struct sigaction action = {.sa_handler = on_signal};
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
                return 0;
        }
        if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
                print_help(stdout);
                return 0;
        }
        for (guint i = 0; i < G_N_ELEMENTS(verbs); i++) {
                int status;

                if (strcmp(argv[1], verbs[i].name) != 0)
                        continue;
                /* no SA_RESTART: a blocking call returns and the verb sees cli_interrupted */
                sigaction(SIGINT, &action, NULL);
                sigaction(SIGTERM, &action, NULL);
                signal(SIGPIPE, SIG_IGN);
                settings_repair();
                status = verbs[i].run(&cli, argc - 1, argv + 1);
                settings_restore_all();
                g_free(cli.state);
                g_free(cli.state_option);
                g_free(cli.root);
                return status;
        }
        quoted = path_quote(argv[1]);
        return cli_usage(&cli, "there is no verb %s", quoted);
}
