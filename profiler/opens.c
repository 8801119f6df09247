// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Opens through fanotify with plain descriptors, which work on every file system that can be
 * marked.
 *
 * Whose open it was is told by the process's line of parents. A process that is gone when its event
 * is read counts when its number was given out after the command's: numbers are given out in turn,
 * and taking one file too many does no harm.
 */
#include "profiler/opens.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "common/error.h"
#include "common/fd.h"
#include "common/profile.h"
#include "common/quote.h"

#define BATCH_MS 20
#define BUFFER_BYTES 65536
#define PARENTS_MAX 256

typedef enum { PID_OTHER = 1, PID_OURS } PidKind;

struct Opens {
        const GPtrArray *mounts;
        int fd;
        int stop_pipe[2];
        pid_t command;
        pthread_t thread;
        gboolean running;
        gboolean lost;
        GHashTable *pids;  /* pid -> PidKind */
        GHashTable *known; /* OpenedFile -> itself, by device and inode */
        GPtrArray *files;
};

static guint
opened_hash(gconstpointer data)
{
        const OpenedFile *file = data;

        return (guint)(file->inode * 31 + file->dev);
}

static gboolean
opened_equal(gconstpointer a, gconstpointer b)
{
        const OpenedFile *x = a, *y = b;

        return x->inode == y->inode && x->dev == y->dev;
}

static void
opened_free(gpointer data)
{
        OpenedFile *file = data;

        g_free(file->path);
        g_free(file);
}

/* 0 when the process is gone. */
static pid_t
parent_of(pid_t pid)
{
        gchar path[64], text[1024];
        const gchar *after_name;
        int parent = 0;
        ssize_t n;
        auto_fd int fd = -1;

        g_snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || (n = read(fd, text, sizeof text - 1)) <= 0)
                return 0;
        text[n] = '\0';
        after_name = strrchr(text, ')');
        if (!after_name || sscanf(after_name + 1, " %*c %d", &parent) != 1)
                return 0;
        return parent;
}

static gboolean
is_ours(Opens *opens, pid_t pid)
{
        PidKind kind;
        pid_t at = pid;

        if (opens->command <= 0)
                return TRUE;
        kind = (PidKind)GPOINTER_TO_INT(g_hash_table_lookup(opens->pids, GINT_TO_POINTER(pid)));
        if (kind)
                return kind == PID_OURS;
        kind = PID_OTHER;
        for (guint i = 0; i < PARENTS_MAX; i++) {
                PidKind known = (PidKind)GPOINTER_TO_INT(
                        g_hash_table_lookup(opens->pids, GINT_TO_POINTER(at)));
                pid_t parent;

                if (at == opens->command || known == PID_OURS) {
                        kind = PID_OURS;
                        break;
                }
                if (at <= 1 || known == PID_OTHER)
                        break;
                parent = parent_of(at);
                if (parent == 0) {
                        if (at > opens->command)
                                kind = PID_OURS;
                        break;
                }
                at = parent;
        }
        g_hash_table_insert(opens->pids, GINT_TO_POINTER(pid), GINT_TO_POINTER(kind));
        return kind == PID_OURS;
}

static const Mount *
find_mount(const Opens *opens, gint mount_id, dev_t dev)
{
        const Mount *same_device = NULL;

        for (guint i = 0; i < opens->mounts->len; i++) {
                const Mount *mount = opens->mounts->pdata[i];

                if (mount->mount_id == mount_id)
                        return mount;
                if (mount->dev == dev)
                        same_device = mount;
        }
        return same_device;
}

static gchar *
link_target(int fd)
{
        gchar link[64];
        g_autofree gchar *path = g_malloc(PROFILE_PATH_MAX);
        ssize_t n;

        g_snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        n = readlink(link, path, PROFILE_PATH_MAX);
        return n > 0 && n < PROFILE_PATH_MAX && path[0] == '/' ? g_strndup(path, (gsize)n) : NULL;
}

static void
note_open(Opens *opens, int fd, guint64 now_ns)
{
        struct statx stx;
        OpenedFile key = {0};
        OpenedFile *file;
        const Mount *mount;
        gchar *path;

        if (statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_INO | STATX_MNT_ID, &stx) != 0 ||
            !S_ISREG(stx.stx_mode))
                return;
        key.dev = makedev(stx.stx_dev_major, stx.stx_dev_minor);
        key.mount_id = stx.stx_mask & STATX_MNT_ID ? (gint)stx.stx_mnt_id : 0;
        mount = find_mount(opens, key.mount_id, key.dev);
        if (!mount)
                return;
        key.dev = mount->dev;
        key.inode = stx.stx_ino;
        if (g_hash_table_contains(opens->known, &key) || !(path = link_target(fd)))
                return;
        file = g_new(OpenedFile, 1);
        *file = key;
        file->path = path;
        file->first_ns = now_ns;
        g_ptr_array_add(opens->files, file);
        g_hash_table_add(opens->known, file);
}

/* FALSE when there is nothing to read now. */
static gboolean
read_batch(Opens *opens, gpointer buffer)
{
        const struct fanotify_event_metadata *event = buffer;
        ssize_t n = read(opens->fd, buffer, BUFFER_BYTES);
        struct timespec now;
        guint64 now_ns;

        /* EACCES and kin: one event could not be opened for us and is gone; others follow. */
        if (n < 0)
                return errno != EAGAIN && errno != EBADF && errno != EINVAL;
        clock_gettime(CLOCK_MONOTONIC, &now);
        now_ns = (guint64)now.tv_sec * 1000000000U + (guint64)now.tv_nsec;
        for (; FAN_EVENT_OK(event, n); event = FAN_EVENT_NEXT(event, n)) {
                auto_fd int fd = event->fd;

                if (event->mask & FAN_Q_OVERFLOW)
                        opens->lost = TRUE;
                if (fd >= 0 && event->pid != getpid() && is_ours(opens, event->pid))
                        note_open(opens, fd, now_ns);
        }
        return n > 0;
}

static void *
read_events(void *data)
{
        Opens *opens = data;
        g_autofree gpointer buffer = g_malloc(BUFFER_BYTES);
        struct pollfd fds[] = {
                {.fd = opens->fd, .events = POLLIN},
                {.fd = opens->stop_pipe[0], .events = POLLIN},
        };

        for (;;) {
                if (poll(fds, G_N_ELEMENTS(fds), -1) < 0)
                        continue;
                while (read_batch(opens, buffer))
                        ;
                if (fds[1].revents)
                        return NULL;
                /* Lets events gather; the end of the recording does not wait for it. */
                poll(&fds[1], 1, BATCH_MS);
        }
}

static guint
mark_mounts(Opens *opens, GPtrArray *refused)
{
        guint marked = 0;

        for (guint i = 0; i < opens->mounts->len; i++) {
                const Mount *mount = opens->mounts->pdata[i];
                g_autofree gchar *dir = NULL;

                if (fanotify_mark(opens->fd, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_OPEN, AT_FDCWD,
                                  mount->dir) == 0 ||
                    fanotify_mark(opens->fd, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_OPEN, AT_FDCWD,
                                  mount->dir) == 0) {
                        marked++;
                        continue;
                }
                dir = path_quote(mount->dir);
                g_ptr_array_add(refused, g_strdup_printf("%s: %s", dir, g_strerror(errno)));
        }
        return marked;
}

Opens *
opens_new(const GPtrArray *mounts, pid_t command, GPtrArray *refused, GError **error)
{
        g_autoptr(Opens) opens = g_new0(Opens, 1);
        int failed;

        opens->fd = opens->stop_pipe[0] = opens->stop_pipe[1] = -1;
        opens->mounts = mounts;
        opens->command = command;
        opens->pids = g_hash_table_new(NULL, NULL);
        opens->known = g_hash_table_new(opened_hash, opened_equal);
        opens->files = g_ptr_array_new_with_free_func(opened_free);
        /* O_NONBLOCK: an event of a FIFO must not wait for its other end. */
        opens->fd =
                fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK | FAN_UNLIMITED_QUEUE,
                              O_RDONLY | O_LARGEFILE | O_CLOEXEC | O_NOATIME | O_NONBLOCK);
        if (opens->fd < 0) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                            "fanotify does not work here: %s", g_strerror(errno));
                return NULL;
        }
        if (mark_mounts(opens, refused) == 0) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                            "no file system lets its opens be watched");
                return NULL;
        }
        failed = pipe2(opens->stop_pipe, O_CLOEXEC) != 0 ? errno : 0;
        if (!failed)
                failed = pthread_create(&opens->thread, NULL, read_events, opens);
        if (failed) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_FAILED,
                            "cannot start the reader of opens: %s", g_strerror(failed));
                return NULL;
        }
        opens->running = TRUE;
        return g_steal_pointer(&opens);
}

gboolean
opens_stop(Opens *opens)
{
        if (opens->running) {
                ssize_t n = write(opens->stop_pipe[1], "", 1);

                (void)n;
                pthread_join(opens->thread, NULL);
                opens->running = FALSE;
        }
        return !opens->lost;
}

void
opens_free(Opens *opens)
{
        if (!opens)
                return;
        opens_stop(opens);
        fd_close(&opens->fd);
        fd_close(&opens->stop_pipe[0]);
        fd_close(&opens->stop_pipe[1]);
        g_hash_table_unref(opens->pids);
        g_hash_table_unref(opens->known);
        g_ptr_array_unref(opens->files);
        g_free(opens);
}

const GPtrArray *
opens_files(const Opens *opens)
{
        return opens->files;
}

const OpenedFile *
opens_find(const Opens *opens, dev_t dev, guint64 inode)
{
        OpenedFile key = {.dev = dev, .inode = inode};

        return g_hash_table_lookup(opens->known, &key);
}
