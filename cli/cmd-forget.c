// SPDX-License-Identifier: GPL-2.0-or-later
/* forget: remove profiles, their packs and what was counted for them. */
#include "cli/cli.h"

#include <errno.h>
#include <unistd.h>

#include "common/json.h"
#include "common/quote.h"
#include "common/state.h"

static gboolean
remove_file(const char *path, gboolean *ret_was_there, GError **error)
{
        *ret_was_there = unlink(path) == 0;
        if (*ret_was_there || errno == ENOENT)
                return TRUE;
        error_set_errno(error, COMMON_ERROR_FAILED, errno, "cannot remove", path);
        return FALSE;
}

static gboolean
forget(const Cli *cli, const char *name, GError **error)
{
        g_autofree gchar *quoted = path_quote(name), *profile = NULL, *pack = NULL;
        g_autofree gchar *stats = NULL, *stats_name = NULL;
        gboolean had_profile, had_other, had_stats;

        if (!profile_name_valid(name)) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_USAGE,
                            "%s is no name of a profile; headstart list shows them", quoted);
                return FALSE;
        }
        profile = state_profile_path(cli->state, name);
        pack = state_pack_path(cli->state, name);
        stats_name = g_strconcat(name, ".json", NULL);
        stats = g_build_filename(cli->state, "stats", stats_name, NULL);
        /* The pack first: it must not outlive its profile. */
        if (!remove_file(pack, &had_other, error) || !remove_file(stats, &had_stats, error) ||
            !remove_file(profile, &had_profile, error))
                return FALSE;
        if (had_profile || had_other)
                return TRUE;
        g_set_error(error, COMMON_ERROR, COMMON_ERROR_USAGE,
                    "no profile named %s in %s; headstart list shows them", quoted, cli->state);
        return FALSE;
}

int
cmd_forget(Cli *cli, int argc, char **argv)
{
        g_autoptr(GError) error = NULL;
        g_autoptr(JsonBuilder) json = json_builder_new();
        int status = EXIT_STATUS_DONE, done = 0;

        if (!cli_parse(cli, &argc, &argv, NULL, "NAME...", FALSE, &error))
                return cli_fail(cli, error);
        if (argc < 2)
                return cli_usage(cli, "which profile?");
        json_builder_begin_object(json);
        json_builder_set_member_name(json, "forgotten");
        json_builder_begin_array(json);
        for (int i = 1; i < argc; i++) {
                g_autoptr(GError) local = NULL;

                if (!forget(cli, argv[i], &local)) {
                        int failed = cli_fail(cli, local);

                        status = MAX(status, failed);
                        continue;
                }
                json_builder_add_string_value(json, argv[i]);
                done++;
        }
        json_builder_end_array(json);
        json_builder_end_object(json);
        if (cli->json && !json_print(json, &error))
                return cli_fail(cli, error);
        return status && done ? EXIT_STATUS_PARTIAL : status;
}
