// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Keeping the kernel from reading more than is asked for, while a recording lasts: the readahead of
 * every disk below a mounted file system and ext4's inode-table readahead. All through
 * common/settings.h, which puts everything back.
 */
#pragma once

#include <glib.h>

#include "common/profile.h"
#include "measure/mounts.h"

/* TRUE for mounts whose files come from a disk, an image or a network: not tmpfs, proc and kin. */
gboolean mount_holds_files(const Mount *mount);

/* Only one process at a time may turn readahead down: a second one would take the lowered value for
 * the old one, and the first one to end would put it up under the other. Waits up to `wait_s` for
 * the other. Errors: COMMON_ERROR_FAILED. The lock goes with quiet_unlock() or with the process;
 * unlock after settings_restore_all(). */
gboolean quiet_lock(guint wait_s, GError **error);
void quiet_unlock(void);

/* Sets the readahead of the disks of these mounts (Mount *) to `readahead_kb` and, with
 * `inode_tables`, ext4's inode-table readahead to 0. Errors: COMMON_ERROR_UNSUPPORTED (a setting
 * cannot be changed; what was changed before is put back by settings_restore_all()). */
gboolean quiet_readahead(const GPtrArray *mounts, guint readahead_kb, gboolean inode_tables,
                         GError **error);

/* Turns the mapping of neighbouring pages at a fault off (debugfs; many kernels do not let it be
 * changed). FALSE when that does not work; nothing has changed then. */
gboolean quiet_fault_around(void);

/* Asks the kernel to forget the clean cached pages of the profile's files that nobody has mapped,
 * so that an exact recording sees them read in. Best effort. */
void quiet_evict(GPtrArray *mounts, const Profile *profile);

/* ext4's inode-table readahead of the file system on this device in blocks; 0 = off or unknown. */
guint quiet_inode_readahead_blocks(dev_t dev);
