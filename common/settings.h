// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Settings of the machine that headstart changes for a while (a device's readahead, ext4's inode
 * readahead, allocator hints), in one table on disk with their old values, so that every way out
 * puts them back: settings_restore_all() on normal exit and on signals, settings_repair() at the
 * next start after a kill.
 *
 * The table is /run/headstart/settings-PID (one "path NUL old value NUL" record a setting, fsynced
 * before the setting is written). A table whose process is gone is repaired.
 */
#pragma once

#include <glib.h>

/* Writes `value` to the sysfs or procfs file `path`, remembering what it held; a second change of
 * the same file keeps the first old value. */
gboolean settings_change(const char *path, const char *value, GError **error);

/* Puts everything back that this process changed; async-signal-safe enough to be called from a
 * normal exit path only. Errors are reported once through g_warning(), ignoring. */
void settings_restore_all(void);

/* Repairs what killed processes left behind; also removes tracing instances named headstart-PID of
 * processes that are gone. Returns the number of settings put back. */
guint settings_repair(void);
