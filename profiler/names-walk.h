// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names by walking a file system, for inodes that nothing else names (after a remount, say): the
 * folders are listed, breadth first, no file is looked at. A hard disk spends minutes on its
 * folders, so this is done for misses only, at idle I/O priority and for a bounded time.
 */
#pragma once

#include <glib.h>

#include "measure/mounts.h"

typedef struct {
        GHashTable *paths; /* inode (guint64 *) -> path in this namespace (gchar *) */
        guint64 entries;   /* looked through */
        gboolean finished; /* all found, or all looked through */
} NameWalk;

/* TRUE for file systems whose walk reads a disk of this machine. */
gboolean name_walk_works(const Mount *mount);

/* Looks for the inodes (set of guint64 *, emptied of those found) below the mount point, for
 * `limit_ms` at most; does not go into other mounts. Free with name_walk_clear(). */
void name_walk(const Mount *mount, GHashTable *inodes, guint limit_ms, NameWalk *ret);
void name_walk_clear(NameWalk *walk);
