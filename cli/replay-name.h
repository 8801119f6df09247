// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From a profile's name to its pack and its replay: what `prefetch`, `run`, `record` and `relocate`
 * share.
 */
#pragma once

#include "cli/cli.h"
#include "readahead/compile.h"
#include "readahead/engine.h"

/* The pack of the name. It is compiled anew, and saved, when it is missing, damaged, made from
 * another profile or in another order than asked (with AUTO: not the compiler's own choice). A
 * state directory that cannot be written costs a note. Errors: those of cli_load_profile(),
 * COMMON_ERROR_INPUT. */
gboolean replay_name_load(const Cli *cli, const char *name, ReplayOrder order, GBytes **ret_pack,
                          GError **error);

/* Compiles and saves the pack of the name whatever is there: to be called when the layout changed
 * (relocate, undo) or the profile is new (record), while all of it is still in the page cache. Only
 * a profile that cannot be loaded or compiled is an error. */
gboolean replay_name_compile(const Cli *cli, const char *name, GError **error);

/* Replays what replay_name_load() gave. options->root is the caller's to set. */
gboolean replay_name_run(GBytes *pack, const struct replay_options *options,
                         struct replay_result *ret, GError **error);

/* "auto", "time", "block". */
gboolean replay_order_parse(const char *text, ReplayOrder *ret);
/* Bytes, or with K, M, G or T behind. */
gboolean replay_size_parse(const char *text, guint64 *ret);
