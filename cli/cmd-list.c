// SPDX-License-Identifier: GPL-2.0-or-later
/* list: the profiles there are, one a line. A damaged one is named and does not hide the others. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "common/quote.h"
#include "common/state.h"

static void
add_json(JsonBuilder *json, const Profile *profile, const char *name)
{
        json_builder_begin_object(json);
        json_add_string(json, "name", name);
        json_add_int(json, "created_us", profile->created_us);
        json_add_string(json, "source", profile_source_name(profile->source));
        json_add_bool(json, "exact", profile->exact);
        json_add_bool(json, "complete", profile->complete);
        json_add_int(json, "files", profile->files->len);
        json_add_int(json, "ranges", profile->ranges->len);
        json_add_int(json, "used_bytes", (gint64)profile_used_bytes(profile));
        json_add_int(json, "file_bytes", (gint64)profile_file_bytes(profile));
        json_builder_end_object(json);
}

static void
print_line(const Profile *profile, const char *name)
{
        g_autoptr(GDateTime) date =
                g_date_time_new_from_unix_local(profile->created_us / G_USEC_PER_SEC);
        g_autofree gchar *when = date ? g_date_time_format(date, "%Y-%m-%d %H:%M") : NULL;
        g_autofree gchar *used =
                g_format_size_full(profile_used_bytes(profile), G_FORMAT_SIZE_IEC_UNITS);

        printf("%-24s %-16s %7u %12s\n", name, when ? when : "-", profile->files->len, used);
}

static gint
compare_names(gconstpointer a, gconstpointer b)
{
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A user's own, and of root's those that no own one hides. */
static GPtrArray *
list_names(const Cli *cli, GError **error)
{
        g_autoptr(GPtrArray) names = state_list(cli->state, error);
        g_autoptr(GPtrArray) system = NULL;

        if (!names || cli->state_option || geteuid() == 0)
                return g_steal_pointer(&names);
        system = state_list(STATE_DIR_SYSTEM, NULL);
        for (guint i = 0; system && i < system->len; i++)
                if (!g_ptr_array_find_with_equal_func(names, system->pdata[i], g_str_equal, NULL))
                        g_ptr_array_add(names, g_strdup(system->pdata[i]));
        g_ptr_array_sort(names, compare_names);
        return g_steal_pointer(&names);
}

int
cmd_list(Cli *cli, int argc, char **argv)
{
        g_autoptr(GError) error = NULL;
        g_autoptr(GPtrArray) names = NULL;
        g_autoptr(JsonBuilder) json = json_builder_new();
        int status = EXIT_STATUS_DONE;

        if (!cli_parse(cli, &argc, &argv, NULL, "", FALSE, &error))
                return cli_fail(cli, error);
        if (argc > 1)
                return cli_usage(cli, "list takes no arguments");
        names = list_names(cli, &error);
        if (!names)
                return cli_fail(cli, error);

        json_builder_begin_array(json);
        if (!cli->json && !cli->null && names->len)
                printf("%-24s %-16s %7s %12s\n", "NAME", "RECORDED", "FILES", "USED");
        for (guint i = 0; i < names->len; i++) {
                const char *name = names->pdata[i];
                g_autoptr(GError) local = NULL;
                g_autofree gchar *path = cli_profile_path(cli, name);
                g_autoptr(Profile) profile = profile_load(path, &local);

                if (!profile) {
                        int failed = cli_fail(cli, local);

                        status = MAX(status, failed);
                } else if (cli->json) {
                        add_json(json, profile, name);
                } else if (cli->null) {
                        fwrite(name, 1, strlen(name) + 1, stdout);
                } else {
                        print_line(profile, name);
                }
        }
        json_builder_end_array(json);
        if (cli->json && !json_print(json, &error))
                return cli_fail(cli, error);
        if (names->len == 0 && !cli->json)
                cli_note(cli, "no profiles in %s", cli->state);
        return status;
}
