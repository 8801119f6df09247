// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which files are opened while a command starts, through fanotify: names for file systems whose
 * inodes have no name by handle, and the source of last resort where the kernel cannot be traced.
 *
 * A thread reads the events in batches some 20 ms apart, so that the opener is hardly slowed.
 */
#pragma once

#include <glib.h>
#include <sys/types.h>

#include "measure/mounts.h"

typedef struct Opens Opens;

typedef struct {
        dev_t dev; /* of the mount, as in mountinfo */
        guint64 inode;
        gint mount_id;    /* 0 = unknown */
        gchar *path;      /* in this namespace */
        guint64 first_ns; /* CLOCK_MONOTONIC, when it was noticed */
} OpenedFile;

/* Watches the file systems of the mounts given (Mount *, must outlive the Opens). With `command` >
 * 0 only opens of that process and its descendants count. Mounts that refuse are added to `refused`
 * (gchar *, "DIR: reason"). Errors: COMMON_ERROR_UNSUPPORTED (no fanotify; every mount refused). */
Opens *opens_new(const GPtrArray *mounts, pid_t command, GPtrArray *refused, GError **error);
void opens_free(Opens *opens);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Opens, opens_free)

/* Reads what is left and ends the thread. FALSE when events were lost. */
gboolean opens_stop(Opens *opens);

/* After opens_stop(): regular files in order of first open (OpenedFile *), and one of them. */
const GPtrArray *opens_files(const Opens *opens);
const OpenedFile *opens_find(const Opens *opens, dev_t dev, guint64 inode);
