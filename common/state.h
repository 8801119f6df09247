// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where headstart keeps what it knows: DIR/profiles/NAME.profile, DIR/packs/NAME.pack,
 * DIR/stats/NAME.json. DIR is --state, else /var/lib/headstart for root, else
 * $XDG_STATE_HOME/headstart (~/.local/state/headstart).
 */
#pragma once

#include <glib.h>

/* The directory to use; `option` is the value of --state or NULL. */
gchar *state_dir(const char *option);

gchar *state_profile_path(const char *state, const char *name);
gchar *state_pack_path(const char *state, const char *name);

/* Makes the directory and its parents (0755; packs 0700) when missing. */
gboolean state_prepare(const char *state, GError **error);

/* Names with a profile, sorted; an empty array when there is no directory. */
GPtrArray *state_list(const char *state, GError **error);
