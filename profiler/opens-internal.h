// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Inside of the watching of opens: opens.c owns the thread, the marks and the events with
 * descriptors; opens-fid.c those with file handles.
 */
#pragma once

#include <pthread.h>
#include <sys/fanotify.h>

#include "profiler/opens.h"
#include "profiler/residency.h"

/* One open, by handles: all pointers lead into the event. Pure. */
typedef struct {
        guint64 fsid;
        const struct file_handle *dir;
        const char *name;
        guint64 inode;
} FidOpen;

/* FALSE when the event holds no name or a handle that tells no inode. */
gboolean fid_open_parse(const struct fanotify_event_metadata *event, FidOpen *ret);

/* Handles of these file systems hold the inode number in a known way. */
gboolean fid_type_known(const char *fs_type);

/* What has been opened by handle, each file once. */
typedef struct FidTable FidTable;

FidTable *fid_table_new(void);
void fid_table_free(FidTable *table);
/* The file system with this mount will send events. FALSE when it has no id. */
gboolean fid_table_add_mount(FidTable *table, const Mount *mount);
void fid_table_add(FidTable *table, const FidOpen *open, guint64 now_ns);
/* The path in this namespace, looked up now from the folder's handle and the name; NULL = not
 * opened, or not there any more. */
gchar *fid_table_path(FidTable *table, dev_t dev, guint64 inode);
guint fid_table_size(const FidTable *table);
