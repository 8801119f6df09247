// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fuse.c - the low-level FUSE side: the names, and reads and writes handed to the queue.
 *
 * What the stack does with a loop device on "disk" (losetup --direct-io=on), seen on Linux 6.18
 * with fio --direct=1 --iodepth=32 and the max_queue counter:
 *  - the loop driver sends asynchronous direct I/O from one worker; FUSE_CAP_ASYNC_DIO and
 *    FOPEN_DIRECT_IO keep that asynchronous (writes too: the inode lock is held only while one is
 *    sent off, so FOPEN_PARALLEL_DIRECT_WRITES, which libfuse 3.14 cannot set, is not missed);
 *  - asynchronous requests are "background" ones, of which FUSE allows 12 unless told otherwise:
 *    max_background is raised to QUEUE_MAX;
 *  - a request is at most 1 MiB here (max_write; fs.fuse.max_pages_limit is 256 pages). The loop
 *    device itself has max_sectors_kb 1280 and 128 segments: what lies in single pages, as the
 *    buffer of an ordinary program does, comes as 512 KiB; large folios of the page cache and huge
 * pages come whole, up to 1 MiB and a rest.
 *
 * Data go to the backing file when a write arrives, under write_lock, so that the write log has
 * the order of the data; the queue then decides when the write is answered.
 */
#define FUSE_USE_VERSION 312

#include "fuse.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse_lowlevel.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define REQUEST_BYTES_MAX (1u << 20)
#define POOL_BUFFERS 64
#define NAMES_VALID_S 86400.0

enum { INO_ROOT = FUSE_ROOT_ID, INO_DISK, INO_STATS, INO_END };

static const char *const names[] = {[INO_DISK] = "disk", [INO_STATS] = "stats"};

static pthread_mutex_t write_lock = PTHREAD_MUTEX_INITIALIZER;

/* What one open of "stats" reads: made anew by each read from the start. */
typedef struct {
        pthread_mutex_t lock;
        char *text;
} StatsHandle;

/* Large buffers are kept: fresh memory would be faulted in and zeroed for each large read. */
static struct {
        pthread_mutex_t lock;
        guint count;
        void *buffers[POOL_BUFFERS];
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static gboolean
is_pooled(guint64 bytes)
{
        return bytes > 64 * 1024 && bytes <= REQUEST_BYTES_MAX;
}

static void *
buffer_new(guint64 bytes)
{
        void *buffer = NULL;

        if (!is_pooled(bytes))
                return g_malloc(bytes);
        pthread_mutex_lock(&pool.lock);
        if (pool.count > 0)
                buffer = pool.buffers[--pool.count];
        pthread_mutex_unlock(&pool.lock);
        return buffer != NULL ? buffer : g_malloc(REQUEST_BYTES_MAX);
}

static void
buffer_free(void *buffer, guint64 bytes)
{
        gboolean kept = FALSE;

        if (is_pooled(bytes)) {
                pthread_mutex_lock(&pool.lock);
                kept = pool.count < POOL_BUFFERS;
                if (kept)
                        pool.buffers[pool.count++] = buffer;
                pthread_mutex_unlock(&pool.lock);
        }
        if (!kept)
                g_free(buffer);
}

static SlowdiskFs *
fs_of(fuse_req_t req)
{
        return fuse_req_userdata(req);
}

static gboolean
fill_stat(const SlowdiskFs *fs, fuse_ino_t ino, struct stat *ret_stat)
{
        if (ino < INO_ROOT || ino >= INO_END)
                return FALSE;
        *ret_stat = (struct stat){
                .st_ino = ino,
                .st_mode = ino == INO_ROOT   ? S_IFDIR | 0755
                           : ino == INO_DISK ? S_IFREG | 0600
                                             : S_IFREG | 0644,
                .st_nlink = ino == INO_ROOT ? 2 : 1,
                .st_uid = getuid(),
                .st_gid = getgid(),
                .st_size = ino == INO_DISK ? (off_t)fs->bytes : 0,
                .st_blocks = ino == INO_DISK ? (blkcnt_t)(fs->bytes / 512) : 0,
                .st_blksize = 4096,
        };
        return TRUE;
}

static void
fs_init(void *userdata, struct fuse_conn_info *conn)
{
        SlowdiskFs *fs = userdata;

        conn->want |= conn->capable & FUSE_CAP_ASYNC_DIO;
        conn->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE);
        conn->max_write = REQUEST_BYTES_MAX;
        conn->max_background = QUEUE_MAX;
        conn->congestion_threshold = QUEUE_MAX;
        if (fs->mounted != NULL)
                fs->mounted(fs->user_data);
}

static void
fs_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
        struct fuse_entry_param entry = {.attr_timeout = NAMES_VALID_S,
                                         .entry_timeout = NAMES_VALID_S};

        for (fuse_ino_t ino = INO_DISK; parent == INO_ROOT && ino < INO_END; ino++) {
                if (strcmp(name, names[ino]) != 0)
                        continue;
                entry.ino = ino;
                fill_stat(fs_of(req), ino, &entry.attr);
                fuse_reply_entry(req, &entry);
                return;
        }
        fuse_reply_err(req, ENOENT);
}

static void
fs_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
        struct stat st;

        (void)fi;
        if (fill_stat(fs_of(req), ino, &st))
                fuse_reply_attr(req, &st, NAMES_VALID_S);
        else
                fuse_reply_err(req, ENOENT);
}

/* Truncating "stats" is what the shell's > does; the disk's size does not change. */
static void
fs_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi)
{
        if (ino == INO_DISK && (to_set & FUSE_SET_ATTR_SIZE) &&
            attr->st_size != (off_t)fs_of(req)->bytes)
                fuse_reply_err(req, EPERM);
        else
                fs_getattr(req, ino, fi);
}

static void
fs_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
        static const char *const entries[] = {".", "..", "disk", "stats"};
        g_autofree char *buffer = g_malloc(size);
        size_t used = 0;

        (void)fi;
        if (ino != INO_ROOT) {
                fuse_reply_err(req, ENOTDIR);
                return;
        }
        for (off_t i = MAX(0, offset); i < (off_t)G_N_ELEMENTS(entries); i++) {
                struct stat st;
                size_t bytes;

                fill_stat(fs_of(req), i < 2 ? INO_ROOT : (fuse_ino_t)i, &st);
                bytes = fuse_add_direntry(req, buffer + used, size - used, entries[i], &st, i + 1);
                if (bytes > size - used)
                        break;
                used += bytes;
        }
        fuse_reply_buf(req, buffer, used);
}

static void
fs_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
        fi->direct_io = 1;
        if (ino == INO_STATS) {
                StatsHandle *handle = g_new0(StatsHandle, 1);

                pthread_mutex_init(&handle->lock, NULL);
                fi->fh = (guint64)(guintptr)handle;
        }
        fuse_reply_open(req, fi);
}

static void
fs_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
        if (ino == INO_STATS) {
                StatsHandle *handle = (StatsHandle *)(guintptr)fi->fh;

                pthread_mutex_destroy(&handle->lock);
                g_free(handle->text);
                g_free(handle);
        }
        fuse_reply_err(req, 0);
}

static void
read_stats(fuse_req_t req, size_t size, off_t offset, StatsHandle *handle)
{
        size_t bytes;

        pthread_mutex_lock(&handle->lock);
        if (offset == 0 || handle->text == NULL) {
                g_free(handle->text);
                handle->text = queue_stats(fs_of(req)->queue);
        }
        bytes = strlen(handle->text);
        if ((size_t)offset >= bytes)
                fuse_reply_buf(req, NULL, 0);
        else
                fuse_reply_buf(req, handle->text + offset, MIN(size, bytes - (size_t)offset));
        pthread_mutex_unlock(&handle->lock);
}

static void
submit(fuse_req_t req, RequestKind kind, guint64 offset, guint64 bytes, gint64 log_number)
{
        Request *request = g_new0(Request, 1);

        request->kind = kind;
        request->offset = offset;
        request->bytes = bytes;
        request->owner = req;
        request->log_number = log_number;
        if (kind == REQUEST_READ)
                request->data = buffer_new(bytes);
        queue_submit(fs_of(req)->queue, request);
}

void
slowdisk_fs_request_done(Request *request, void *user_data)
{
        SlowdiskFs *fs = user_data;
        fuse_req_t req = request->owner;

        if (request->kind == REQUEST_FLUSH && fs->log != NULL) {
                pthread_mutex_lock(&write_lock);
                write_log_append(fs->log, LOG_FLUSH_DONE, (guint64)request->log_number, 0, NULL);
                pthread_mutex_unlock(&write_lock);
        }
        if (request->error != 0)
                fuse_reply_err(req, request->error);
        else if (request->kind == REQUEST_READ)
                fuse_reply_buf(req, request->data, request->bytes);
        else if (request->kind == REQUEST_WRITE)
                fuse_reply_write(req, request->bytes);
        else
                fuse_reply_err(req, 0);
        if (request->data != NULL)
                buffer_free(request->data, request->bytes);
        g_free(request);
}

static void
fs_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
        SlowdiskFs *fs = fs_of(req);

        if (ino == INO_STATS)
                read_stats(req, size, offset, (StatsHandle *)(guintptr)fi->fh);
        else if ((guint64)offset >= fs->bytes || size == 0)
                fuse_reply_buf(req, NULL, 0);
        else
                submit(req, REQUEST_READ, (guint64)offset, MIN(size, fs->bytes - (guint64)offset),
                       0);
}

static void
write_stats(fuse_req_t req, const char *text, size_t size)
{
        g_autofree char *word = g_strstrip(g_strndup(text, size));
        gboolean cold = strcmp(word, "cold") == 0;

        if (!cold && strcmp(word, "reset") != 0) {
                fuse_reply_err(req, EINVAL);
                return;
        }
        queue_reset(fs_of(req)->queue, cold);
        fuse_reply_write(req, size);
}

/* Stores a write and logs it, in one order for both. 0 or an errno. */
static int
store(SlowdiskFs *fs, const char *data, size_t size, off_t offset)
{
        size_t done = 0;
        int error = 0;

        pthread_mutex_lock(&write_lock);
        while (done < size && error == 0) {
                ssize_t n = pwrite(fs->backing_fd, data + done, size - done, offset + (off_t)done);

                if (n >= 0)
                        done += (size_t)n;
                else if (errno != EINTR)
                        error = errno;
        }
        if (error == 0 && fs->log != NULL &&
            write_log_append(fs->log, LOG_WRITE, (guint64)offset, size, data) < 0)
                error = errno;
        pthread_mutex_unlock(&write_lock);
        return error;
}

static void
fs_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset,
         struct fuse_file_info *fi)
{
        SlowdiskFs *fs = fs_of(req);
        int error;

        (void)fi;
        if (ino == INO_STATS) {
                write_stats(req, data, size);
                return;
        }
        if ((guint64)offset >= fs->bytes) {
                fuse_reply_err(req, ENOSPC);
                return;
        }
        size = MIN(size, fs->bytes - (guint64)offset);
        error = store(fs, data, size, offset);
        if (error != 0)
                fuse_reply_err(req, error);
        else
                submit(req, REQUEST_WRITE, (guint64)offset, size, 0);
}

static void
fs_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
        SlowdiskFs *fs = fs_of(req);
        gint64 number = 0;

        (void)datasync;
        (void)fi;
        if (ino != INO_DISK) {
                fuse_reply_err(req, 0);
                return;
        }
        if (fs->log != NULL) {
                pthread_mutex_lock(&write_lock);
                number = write_log_append(fs->log, LOG_FLUSH, 0, 0, NULL);
                pthread_mutex_unlock(&write_lock);
                if (number < 0) {
                        fuse_reply_err(req, errno);
                        return;
                }
        }
        submit(req, REQUEST_FLUSH, 0, 0, number);
}

/* A discard, or the loop driver's "write zeroes": both leave zeros and take no time. */
static void
fs_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
             struct fuse_file_info *fi)
{
        SlowdiskFs *fs = fs_of(req);
        int error = 0;

        (void)fi;
        if (ino != INO_DISK || (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) == 0) {
                fuse_reply_err(req, EOPNOTSUPP);
                return;
        }
        if (offset < 0 || length <= 0 || (guint64)offset >= fs->bytes) {
                fuse_reply_err(req, EINVAL);
                return;
        }
        length = MIN(length, (off_t)fs->bytes - offset);
        pthread_mutex_lock(&write_lock);
        if (fallocate(fs->backing_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length) !=
                    0 ||
            (fs->log != NULL &&
             write_log_append(fs->log, LOG_DISCARD, (guint64)offset, (guint64)length, NULL) < 0))
                error = errno;
        pthread_mutex_unlock(&write_lock);
        if (error == 0)
                queue_discard(fs->queue, (guint64)offset, (guint64)length);
        fuse_reply_err(req, error);
}

static const struct fuse_lowlevel_ops operations = {
        .init = fs_init,
        .lookup = fs_lookup,
        .getattr = fs_getattr,
        .setattr = fs_setattr,
        .readdir = fs_readdir,
        .open = fs_open,
        .release = fs_release,
        .read = fs_read,
        .write = fs_write,
        .fsync = fs_fsync,
        .fallocate = fs_fallocate,
};

static gboolean
serve(SlowdiskFs *fs, struct fuse_session *session,
      gboolean (*start)(SlowdiskFs *fs, GError **error), GError **error)
{
        struct fuse_loop_config *config;

        if (!start(fs, error))
                return FALSE;
        if (fuse_set_signal_handlers(session) != 0) {
                g_set_error_literal(error, G_FILE_ERROR, G_FILE_ERROR_FAILED,
                                    "cannot set signal handlers");
                return FALSE;
        }
        /* A second thread takes what arrives while one stores a write. */
        config = fuse_loop_cfg_create();
        fuse_loop_cfg_set_max_threads(config, 3);
        fuse_loop_cfg_set_idle_threads(config, 3);
        fuse_session_loop_mt(session, config);
        fuse_loop_cfg_destroy(config);
        fuse_remove_signal_handlers(session);
        return TRUE;
}

gboolean
slowdisk_fs_run(SlowdiskFs *fs, const char *mountpoint,
                gboolean (*start)(SlowdiskFs *fs, GError **error), GError **error)
{
        char *argv[] = {(char *)"slowdisk", (char *)"-osubtype=slowdisk,fsname=slowdisk", NULL};
        struct fuse_args args = FUSE_ARGS_INIT(2, argv);
        struct fuse_session *session = fuse_session_new(&args, &operations, sizeof operations, fs);
        gboolean ok;

        if (session == NULL || fuse_session_mount(session, mountpoint) != 0) {
                g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED, "cannot mount on %s",
                            mountpoint);
                if (session != NULL)
                        fuse_session_destroy(session);
                fuse_opt_free_args(&args);
                return FALSE;
        }
        ok = serve(fs, session, start, error);
        /* First out of the name space, then answers to all, then the connection's end: a user that
         * is left gets ENOTCONN, nobody waits for ever. */
        umount2(mountpoint, MNT_DETACH);
        if (fs->queue != NULL)
                queue_free(fs->queue);
        fs->queue = NULL;
        fuse_session_unmount(session);
        fuse_session_destroy(session);
        fuse_opt_free_args(&args);
        return ok;
}
