// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The mounts of this mount namespace, and which of them holds a file system.
 */
#pragma once

#include <glib.h>
#include <sys/types.h>

typedef struct {
        gint mount_id, parent_id;
        dev_t dev;   /* major:minor as in mountinfo: what tracefs events carry; differs from
                        st_dev on btrfs */
        gchar *root; /* which folder of the file system is mounted ("/" = all of it) */
        gchar *dir;  /* where, unescaped bytes */
        gchar *type;
        gchar *source;  /* device node or other source, unescaped */
        gchar *uuid;    /* of the file system, lower case, or "" */
        gchar *options; /* of the mount, then of the file system: "rw,relatime,data=journal" */
        gboolean read_only;
        gboolean hidden; /* no path leads there: another mount lies over it */
} Mount;

/* Reads /proc/self/mountinfo, in mount order. UUIDs through libblkid (and /dev/disk/by-uuid) are
 * looked up on first need only: use mount_uuid(). Element type Mount *. */
GPtrArray *mount_table_load(GError **error);

/* The same from text in mountinfo's format (need not end in NUL); lines that are not in that format
 * are left out. Pure. */
GPtrArray *mount_table_parse(const char *text, gsize length);

/* TRUE when the comma-separated options hold exactly this one. */
gboolean mount_has_option(const Mount *mount, const char *option);

/* The UUID, "" when unknown; never NULL. Cached in the Mount. */
const char *mount_uuid(Mount *mount);

/* TRUE when it is mounted at or below this folder (absolute). */
gboolean mount_is_below(const Mount *mount, const char *folder);

/* The last mount (the one on top) of this device/UUID whose root is "/", else the last one at all;
 * NULL when there is none. Mounts hidden below another are passed over. */
Mount *mount_find_dev(GPtrArray *mounts, dev_t dev);
Mount *mount_find_uuid(GPtrArray *mounts, const char *uuid);

/* The mount that holds the (resolved, absolute) path: longest mount point that is a prefix. */
Mount *mount_find_path(GPtrArray *mounts, const char *path);

/* Path in this namespace of a path inside the file system; NULL when the mount's root does not
 * contain it. And back. */
gchar *mount_path_outside(const Mount *mount, const char *path_inside);
gchar *mount_path_inside(const Mount *mount, const char *path_outside);
