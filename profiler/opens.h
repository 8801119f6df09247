// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which files are opened while something starts, through fanotify: names for files that have no
 * name by handle, and the source of last resort where the kernel cannot be traced.
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
        /* With `residency`: which pages were in the page cache when the open was noticed, a bit
         * each; NULL = none. Some of them may have come in between the open and that moment. */
        guint8 *resident;
        guint64 resident_pages; /* bits in it */
} OpenedFile;

typedef struct {
        const GPtrArray *mounts; /* Mount *; must outlive the Opens */
        const char *root; /* only file systems mounted at or below it, and its own; NULL = any */
        gboolean all;     /* all file systems; else those whose inodes have no name by handle */
        pid_t command;    /* > 0: only opens of it and its descendants count */
        gboolean handles; /* names by folder handles where the file system tells them: cheaper, but
                             opens_files() does not list them */
        gboolean residency;     /* fill OpenedFile.resident */
        gboolean late_mounts;   /* watch file systems that are mounted later, too */
        gboolean limited_queue; /* the kernel's default queue, which may overflow: for tests */
} OpensOptions;

/* Mounts that refuse are added to `refused` (gchar *, "DIR: reason"), each file system once.
 * Errors: COMMON_ERROR_UNSUPPORTED (no fanotify; every mount refused). */
Opens *opens_new(const OpensOptions *options, GPtrArray *refused, GError **error);
void opens_free(Opens *opens);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Opens, opens_free)

/* Opens of this process do not count either (a helper that was started to look at something). */
void opens_ignore_process(Opens *opens, pid_t pid);

/* When the last file was noticed that had not been opened before (CLOCK_MONOTONIC); 0 = none. */
guint64 opens_last_new_ns(const Opens *opens);

/* Reads what is left and ends the thread. Returns how many events were lost at least: the kernel
 * tells that its queue overflowed, not by how much. */
guint64 opens_stop(Opens *opens);

/* After opens_stop(): late mounts that refused (gchar *). */
const GPtrArray *opens_refused_late(const Opens *opens);
/* After opens_stop(): regular files in order of first open (OpenedFile *); the path of one of
 * them or of one known by handle, for the caller to free, NULL = not opened. */
const GPtrArray *opens_files(const Opens *opens);
gchar *opens_find_path(const Opens *opens, dev_t dev, guint64 inode);
