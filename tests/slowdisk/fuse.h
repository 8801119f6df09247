// SPDX-License-Identifier: GPL-2.0-or-later
/* fuse.h - the file system: a directory with the files "disk" and "stats". */
#pragma once

#include "log.h"
#include "queue.h"

typedef struct {
        Queue *queue;
        WriteLog *log; /* NULL: none */
        int backing_fd;
        guint64 bytes;
        void (*mounted)(void *user_data); /* called when the kernel has said hello */
        void *user_data;
} SlowdiskFs;

/* Answers a request of the queue; user_data is the SlowdiskFs. */
void slowdisk_fs_request_done(Request *request, void *user_data);

/*
 * Mounts on @mountpoint (absolute) and serves until it is unmounted or SIGTERM, SIGINT or SIGHUP
 * comes; then unmounts, lazily when something still uses it. @start runs once the mount stands
 * and before anything is served: it may fork (the caller's process may end there) and must then
 * make fs->queue.
 */
gboolean slowdisk_fs_run(SlowdiskFs *fs, const char *mountpoint,
                         gboolean (*start)(SlowdiskFs *fs, GError **error), GError **error);
