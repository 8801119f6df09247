// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the verbs share: the table of verbs, the common options, messages.
 *
 * A verb is one file, cli/cmd-NAME.c, with `int cmd_NAME(Cli *cli, int argc, char **argv)`; argv[0]
 * is the verb. It parses its options with cli_parse(), calls into the modules, prints the result
 * and returns an exit status. Only this folder prints. Messages go to standard error, results to
 * standard output.
 */
#pragma once

#include <glib.h>

#include "common/error.h"
#include "common/profile.h"

typedef struct {
        gchar *state_option; /* --state */
        gchar *state;        /* resolved state directory */
        gchar *root;         /* --root, NULL = / */
        gboolean json, null, quiet, verbose;
        gboolean command_first; /* run: the command's exit status counts, a failure to keep what was
                                   recorded is only said */
        gboolean command_started; /* set by record */
} Cli;

/* Parses the verb's own entries plus the common options. `positional` is the usage text of the
 * arguments ("NAME" or "-- CMD ARG..."), `summary` the line of the verb table. With `command` TRUE
 * parsing stops at the first argument that is no option (strict POSIX) and a leading "--" is
 * dropped. On return argc/argv hold the arguments left, argv[0] still the verb. FALSE with
 * COMMON_ERROR_USAGE. */
gboolean cli_parse(Cli *cli, int *argc, char ***argv, const GOptionEntry *entries,
                   const char *positional, gboolean command, GError **error);

/* Prints "headstart VERB: message" (already escaped text) to standard error unless -q. */
void cli_note(const Cli *cli, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* The same whatever -q says, and returns the exit status of the error; frees nothing. */
int cli_fail(const Cli *cli, const GError *error);
/* Usage error in one line with a hint at --help; returns EXIT_STATUS_USAGE. */
int cli_usage(const Cli *cli, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* Prints each skipped file and its reason, at most 20 unless -v, then how many more. */
void cli_print_skipped(const Cli *cli, const GPtrArray *skipped);

/* Exit status of an error by domain and code. */
ExitStatus cli_exit_status(const GError *error);

/* The path of a name's profile, whether there is one or not: in the state directory, for a user
 * without one of that name and without --state in root's. */
gchar *cli_profile_path(const Cli *cli, const char *name);

/* Loads the profile of a name: COMMON_ERROR_USAGE for a name that is not valid or not there, with
 * what to do ("no profile named X; record one with ..."). */
Profile *cli_load_profile(const Cli *cli, const char *name, GError **error);

/* SIGINT/SIGTERM set this (installed by main before a verb runs). */
extern volatile int cli_interrupted;

int cmd_record(Cli *cli, int argc, char **argv);
int cmd_run(Cli *cli, int argc, char **argv);
int cmd_relocate(Cli *cli, int argc, char **argv);
int cmd_prefetch(Cli *cli, int argc, char **argv);
int cmd_measure(Cli *cli, int argc, char **argv);
int cmd_show(Cli *cli, int argc, char **argv);
int cmd_list(Cli *cli, int argc, char **argv);
int cmd_forget(Cli *cli, int argc, char **argv);
int cmd_import(Cli *cli, int argc, char **argv);
int cmd_export(Cli *cli, int argc, char **argv);
int cmd_mark(Cli *cli, int argc, char **argv);
