// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A list of paths as a profile: every file whole, in the order given. What is no regular file is
 * never opened; what cannot be taken is counted with its reason, and the rest goes on.
 */
#pragma once

#include <glib.h>

#include "common/profile.h"

typedef struct {
        Profile *profile;
        GPtrArray *outside; /* gchar *: the resolved path in this namespace of every file */
        GPtrArray *skipped; /* Skipped (common/json.h) */
        /* private */
        GPtrArray *mounts, *fs_mounts;
        GHashTable *seen;
        gchar *root;
} FileList;

/* `root` as --root: paths, and symbolic links in them, are taken inside of it; NULL = "/". */
FileList *file_list_new(const char *name, const char *root, GError **error);
void file_list_free(FileList *list);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(FileList, file_list_free)

/* Adds a file, or all regular files below a directory by name, on its file system. Symbolic links
 * that are named are followed, those below a directory are not. A file named twice counts once. */
void file_list_add(FileList *list, const char *path);

/* Adds every path of a file of paths, one a line (or ended by NUL); "-" is standard input. Errors:
 * COMMON_ERROR_INPUT. */
gboolean file_list_read(FileList *list, const char *path, gboolean null, GError **error);
