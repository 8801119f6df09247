// SPDX-License-Identifier: GPL-2.0-or-later
/* What the verbs share: common options, messages, loading a profile by name. */
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "common/quote.h"
#include "common/state.h"

static const char *verb = "";

gboolean
cli_parse(Cli *cli, int *argc, char ***argv, const GOptionEntry *entries, const char *positional,
          gboolean command, GError **error)
{
        g_autofree gchar *usage = g_strdup_printf("%s", positional);
        GOptionContext *context = g_option_context_new(usage);
        const GOptionEntry common[] = {
                {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "Print one JSON document", NULL},
                {"null", 0, 0, G_OPTION_ARG_NONE, &cli->null, "Lists in and out end in NUL", NULL},
                {"root", 0, 0, G_OPTION_ARG_FILENAME, &cli->root, "Work on the tree at DIR", "DIR"},
                {"state", 0, 0, G_OPTION_ARG_FILENAME, &cli->state_option,
                 "State directory (default /var/lib/headstart)", "DIR"},
                {"quiet", 'q', 0, G_OPTION_ARG_NONE, &cli->quiet, "No messages but errors", NULL},
                {"verbose", 'v', 0, G_OPTION_ARG_NONE, &cli->verbose, "More messages", NULL},
                {NULL, 0, 0, 0, NULL, NULL, NULL},
        };
        g_autofree gchar *program = g_strdup_printf("headstart %s", (*argv)[0]);
        char *name = (*argv)[0];
        gboolean parsed;

        /* what run has recorded the first time is still run's to tell */
        if (!cli->command_first)
                verb = name;
        g_set_prgname(program);
        g_option_context_add_main_entries(context, common, NULL);
        if (entries)
                g_option_context_add_main_entries(context, entries, NULL);
        g_option_context_set_strict_posix(context, command);
        parsed = g_option_context_parse(context, argc, argv, error);
        g_option_context_free(context);
        if (!parsed)
                return FALSE;
        (*argv)[0] = name;
        /* GOption leaves the "--" in place when what follows could be taken for an option */
        if (*argc > 1 && strcmp((*argv)[1], "--") == 0) {
                memmove(*argv + 1, *argv + 2, (*argc - 1) * sizeof **argv);
                (*argc)--;
        }
        g_free(cli->state);
        cli->state = state_dir(cli->state_option);
        state_adopt_pending(cli->state);
        if (cli->root && !g_file_test(cli->root, G_FILE_TEST_IS_DIR)) {
                g_autofree gchar *quoted = path_quote(cli->root);

                g_set_error(error, COMMON_ERROR, COMMON_ERROR_USAGE, "--root %s is not a directory",
                            quoted);
                return FALSE;
        }
        return TRUE;
}

/* One line, whatever a name or a library put into the text. */
static void
message(const char *text)
{
        g_autofree gchar *line = text_quote(text);

        fprintf(stderr, "headstart%s%s: %s\n", *verb ? " " : "", verb, line);
}

void
cli_note(const Cli *cli, const char *format, ...)
{
        g_autofree gchar *text = NULL;
        va_list args;

        if (cli->quiet)
                return;
        va_start(args, format);
        text = g_strdup_vprintf(format, args);
        va_end(args);
        message(text);
}

int
cli_fail(const Cli *cli, const GError *error)
{
        (void)cli;
        message(error->message);
        return cli_exit_status(error);
}

int
cli_usage(const Cli *cli, const char *format, ...)
{
        g_autofree gchar *text = NULL, *line = NULL;
        va_list args;

        (void)cli;
        va_start(args, format);
        text = g_strdup_vprintf(format, args);
        va_end(args);
        line = g_strdup_printf("%s; see headstart %s%s--help", text, verb, *verb ? " " : "");
        message(line);
        return EXIT_STATUS_USAGE;
}

void
cli_print_skipped(const Cli *cli, const GPtrArray *skipped)
{
        g_autoptr(GHashTable) counts = g_hash_table_new(g_str_hash, g_str_equal);
        guint lines = 0;

        for (guint i = 0; i < skipped->len; i++) {
                const Skipped *entry = skipped->pdata[i];
                guint count = GPOINTER_TO_UINT(g_hash_table_lookup(counts, entry->reason));

                g_hash_table_insert(counts, entry->reason, GUINT_TO_POINTER(count + 1));
        }
        for (guint i = 0; i < skipped->len; i++) {
                const Skipped *entry = skipped->pdata[i];
                g_autofree gchar *quoted = path_quote(entry->path);
                guint count = GPOINTER_TO_UINT(g_hash_table_lookup(counts, entry->reason));

                /* a reason shared by many is said once, with the first of them; 0: it was said */
                if (count == 0)
                        continue;
                if (!cli->verbose && lines++ == 20) {
                        cli_note(cli, "and more skipped, %u in all (-v names all)", skipped->len);
                        return;
                }
                if (!cli->verbose && count > 3) {
                        cli_note(cli, "skipped %u files, the first %s: %s", count, quoted,
                                 entry->reason);
                        g_hash_table_insert(counts, entry->reason, NULL);
                } else {
                        cli_note(cli, "skipped %s: %s", quoted, entry->reason);
                }
        }
}

gchar *
cli_profile_path(const Cli *cli, const char *name)
{
        g_autofree gchar *path = state_profile_path(cli->state, name);

        /* what was recorded through sudo may be looked at, and replayed, without */
        if (access(path, F_OK) < 0 && errno == ENOENT && !cli->state_option && geteuid() != 0)
                return state_profile_path(STATE_DIR_SYSTEM, name);
        return g_steal_pointer(&path);
}

Profile *
cli_load_profile(const Cli *cli, const char *name, GError **error)
{
        g_autofree gchar *path = NULL, *quoted = path_quote(name);

        if (!profile_name_valid(name)) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_USAGE,
                            "%s is no name: letters, digits and ._+@:- only, at most 100", quoted);
                return NULL;
        }
        path = cli_profile_path(cli, name);
        if (access(path, F_OK) < 0 && errno == ENOENT) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_USAGE,
                            "no profile named %s in %s; make one with: headstart record --name %s "
                            "-- COMMAND",
                            quoted, cli->state, quoted);
                return NULL;
        }
        return profile_load(path, error);
}
