// SPDX-License-Identifier: GPL-2.0-or-later
/* mark: tell the recordings that run now that the point TEXT of the start is reached. */
#include "cli/cli.h"

#include <string.h>

#include "common/json.h"
#include "profiler/trace.h"

int
cmd_mark(Cli *cli, int argc, char **argv)
{
        g_autoptr(GError) error = NULL;
        gint n;

        if (!cli_parse(cli, &argc, &argv, NULL, "TEXT", FALSE, &error))
                return cli_fail(cli, error);
        if (argc != 2 || !*argv[1] || strchr(argv[1], '\n'))
                return cli_usage(cli, "mark takes one line of text");
        n = trace_mark(argv[1], &error);
        if (n < 0)
                return cli_fail(cli, error);
        if (cli->json) {
                g_autoptr(JsonBuilder) json = json_builder_new();

                json_builder_begin_object(json);
                json_add_int(json, "recordings", n);
                json_builder_end_object(json);
                if (!json_print(json, &error))
                        return cli_fail(cli, error);
        }
        if (n == 0)
                cli_note(cli, "no recording is running that this could mark");
        return EXIT_STATUS_DONE;
}
