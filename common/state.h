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

/* The directory of root's profiles, which a user may look at. */
#define STATE_DIR_SYSTEM "/var/lib/headstart"

gchar *state_profile_path(const char *state, const char *name);
gchar *state_pack_path(const char *state, const char *name);

/* Makes the directory and its parents (0755; packs 0700) when missing. */
gboolean state_prepare(const char *state, GError **error);

/* FALSE when something that is not a regular file lies at the path of a state file: a device or a
 * link to one would swallow what is saved. A path that is not there yet is fine.
 * COMMON_ERROR_INPUT. */
gboolean state_file_check(const char *path, GError **error);

/* Where a profile waits while the state directory cannot be written (a boot with a read-only root):
 * in /run/headstart/pending, whose folder is made. Only root. */
gchar *state_pending_path(const char *state, const char *name, GError **error);

/* Moves what waits for this state directory there, unless a newer one is there by now. Returns how
 * many; best effort, silent. */
guint state_adopt_pending(const char *state);

/* Names with a profile, sorted; an empty array when there is no directory. */
GPtrArray *state_list(const char *state, GError **error);
