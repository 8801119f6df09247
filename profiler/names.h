// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From (file system, inode) to the path, without having seen the open: a file handle made up from
 * the inode number (generation 0 means any to ext2/3/4 and f2fs) opens the file, and the kernel
 * tells its path as long as the dentry is cached. So this is asked right after the start. A path
 * counts only when looking it up leads to the same inode: deleted files and dentries not connected
 * to the tree have none.
 */
#pragma once

#include <glib.h>

#include "measure/mounts.h"

typedef enum {
        NAME_FOUND,
        NAME_GONE,        /* no such inode any more, or deleted */
        NAME_NOT_REGULAR, /* a directory, device, FIFO, ... */
        NAME_UNKNOWN,
} NameStatus;

typedef struct {
        gchar *path; /* inside the file system */
        guint64 size_bytes;
        gint64 mtime_ns;
        gint64 born_ns;     /* when it was made; 0 = the file system does not tell */
        guint links;        /* names it has */
        guint32 generation; /* 0 = unknown */
        int fd;             /* open for reading, -1 when that is not allowed */
} NamedFile;

/* TRUE when handles can be made up for this type of file system. */
gboolean name_by_handle_works(const char *fs_type);

/* `mount_fd` is a descriptor of mount->dir. Fills *ret for NAME_FOUND only. */
NameStatus name_by_handle(const Mount *mount, int mount_fd, guint64 inode, NamedFile *ret);

/* Opens the (outside) path, which must be this inode of the mount's file system. */
NameStatus name_by_path(const Mount *mount, const char *path, guint64 inode, NamedFile *ret);

/* The path of an open file or folder in this namespace, of any length up to PROFILE_PATH_MAX; NULL
 * when it has none. */
gchar *name_of_fd(int fd);

void named_file_clear(NamedFile *file);
