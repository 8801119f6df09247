// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What may be moved: refusals of a whole file system and of single files, each with its reason.
 * Nothing is changed here.
 */
#pragma once

#include <glib.h>
#include <sys/stat.h>

#include "common/profile.h"
#include "measure/device.h"
#include "relocator/error.h"

/* A mounted ext4 on which extents can be moved. */
typedef struct {
        gchar *dir; /* the folder that the profile's paths are taken below */
        int dir_fd;
        gchar *strip; /* leading part of the profile's paths that `dir` stands for, "" as a rule */
        gchar *mount_dir; /* where the file system is mounted */
        Device *device;
        dev_t dev;
        guint32 block_bytes;
        gboolean data_journal; /* mounted with data=journal: every file is refused */
        GHashTable *swap;      /* inode numbers of active swap files on it */
} Target;

typedef struct {
        const char *root; /* --root, or NULL: the file system is looked for by its UUID */
        gboolean force;   /* also below a snapshot or thin volume */
        gboolean dry_run; /* a read-only mount will do */
} TargetOptions;

/* Finds and examines file system `fs` of the profile. RELOCATOR_ERROR_NOT_EXT4: not ext4, not
 * mounted, read-only; RELOCATOR_ERROR_REFUSED: no journal, bigalloc, copy-on-write below;
 * COMMON_ERROR_UNSUPPORTED: no privilege. */
Target *target_open(const Profile *profile, guint32 fs, const TargetOptions *options,
                    GError **error);
void target_free(Target *target);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Target, target_free)

typedef enum {
        CHECK_OK,
        CHECK_GONE,        /* missing, other file there, changed since recorded, in use: another day
                              perhaps */
        CHECK_UNSUPPORTED, /* this file cannot be moved */
} CheckVerdict;

/* Opens the file for moving, after checking that it is the one recorded and can be moved. On
 * CHECK_OK *ret_fd is open for reading and writing and *ret_stat says what it is like; otherwise
 * *ret_reason (free it) says why not. Access times are not touched. */
CheckVerdict check_file(const Target *target, const ProfileFile *file, int *ret_fd,
                        struct stat *ret_stat, gchar **ret_reason);
