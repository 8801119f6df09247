// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Opens through fanotify: with plain descriptors, which work on every file system that can be
 * marked, or with handles (opens-fid.c), which cost less. Each kind has a queue of its own.
 *
 * Whose open it was is told by the process's line of parents. A process that is gone when its event
 * is read counts when its number was given out after the command's: numbers are given out in turn,
 * and taking one file too many does no harm.
 */
#include "profiler/opens-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "common/error.h"
#include "common/fd.h"
#include "common/profile.h"
#include "common/quote.h"
#include "profiler/names.h"
#include "profiler/quiet.h"

#define BATCH_MS 20
#ifndef FAN_REPORT_FD_ERROR
#define FAN_REPORT_FD_ERROR 0x00002000 /* Linux 6.13 */
#endif
#define BUFFER_BYTES 65536
#define PARENTS_MAX 256
#define IGNORED_MAX 8U /* the last ones: events are read soon */
#define RESIDENT_PAGES_MAX                                                                         \
        (1U << 22) /* of larger files what was cached before is not looked at                      \
                    */

typedef enum { PID_OTHER = 1, PID_OURS } PidKind;

struct Opens {
        OpensOptions options;
        int fd;        /* events with descriptors */
        int fid_fd;    /* events with handles, -1 = none */
        int mounts_fd; /* readable when something is mounted, -1 = not watched */
        int stop_pipe[2];
        pthread_t thread;
        gboolean running;
        guint64 lost;
        guint64 last_new_ns; /* atomic */
        dev_t root_dev;
        gsize buffer_bytes; /* bounds the descriptors that one read of events opens */
        GPtrArray *tables;  /* of late mounts: their tables, which own the Mounts */
        GPtrArray *watched; /* Mount *, borrowed */
        GHashTable *devs;   /* seen: file systems marked or refused */
        GPtrArray *late;    /* gchar *: late mounts that refused */
        GHashTable *pids;   /* pid -> PidKind */
        GHashTable *known;  /* OpenedFile -> itself, by device and inode */
        GPtrArray *files;
        FidTable *fids;
        Residency *residency;
        gint ignored[IGNORED_MAX], n_ignored; /* atomic */
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
        g_free(file->resident);
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

        kind = (PidKind)GPOINTER_TO_INT(g_hash_table_lookup(opens->pids, GINT_TO_POINTER(pid)));
        if (kind || opens->options.command <= 0)
                return kind != PID_OTHER;
        kind = PID_OTHER;
        for (guint i = 0; i < PARENTS_MAX; i++) {
                PidKind known = (PidKind)GPOINTER_TO_INT(
                        g_hash_table_lookup(opens->pids, GINT_TO_POINTER(at)));
                pid_t parent;

                if (at == opens->options.command || known == PID_OURS) {
                        kind = PID_OURS;
                        break;
                }
                if (at <= 1 || known == PID_OTHER)
                        break;
                parent = parent_of(at);
                if (parent == 0) {
                        if (at > opens->options.command)
                                kind = PID_OURS;
                        break;
                }
                at = parent;
        }
        g_hash_table_insert(opens->pids, GINT_TO_POINTER(pid), GINT_TO_POINTER(kind));
        return kind == PID_OURS;
}

static gboolean
is_ignored(Opens *opens, pid_t pid)
{
        for (guint i = 0; i < IGNORED_MAX; i++)
                if (g_atomic_int_get(&opens->ignored[i]) == pid)
                        return TRUE;
        return pid == getpid();
}

static const Mount *
find_mount(const Opens *opens, gint mount_id, dev_t dev)
{
        const Mount *same_device = NULL;

        for (guint i = 0; i < opens->watched->len; i++) {
                const Mount *mount = opens->watched->pdata[i];

                if (mount->mount_id == mount_id)
                        return mount;
                if (mount->dev == dev)
                        same_device = mount;
        }
        return same_device;
}

/* What of the file is cached now, a bit a page. */
static void
note_residency(Opens *opens, OpenedFile *file, int fd, guint64 size_bytes)
{
        guint64 page_bytes = (guint64)sysconf(_SC_PAGESIZE);
        guint64 n = (size_bytes + page_bytes - 1) / page_bytes;
        guint8 vec[512];

        if (n > RESIDENT_PAGES_MAX || !residency_open(opens->residency, fd, size_bytes))
                return;
        for (guint64 first = 0; first < n; first += G_N_ELEMENTS(vec)) {
                residency_pages(first, G_N_ELEMENTS(vec), vec, opens->residency);
                for (guint64 i = 0; i < G_N_ELEMENTS(vec) && first + i < n; i++) {
                        if (!vec[i])
                                continue;
                        if (!file->resident) {
                                file->resident_pages = n;
                                file->resident = g_malloc0(n / 8 + 1);
                        }
                        file->resident[(first + i) / 8] |= (guint8)(1U << (first + i) % 8);
                }
        }
        residency_close(opens->residency);
}

static void
note_open(Opens *opens, int fd, guint64 now_ns)
{
        struct statx stx;
        OpenedFile key = {0};
        OpenedFile *file;
        const Mount *mount;
        gchar *path;

        if (statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_INO | STATX_SIZE | STATX_MNT_ID,
                  &stx) != 0 ||
            !S_ISREG(stx.stx_mode))
                return;
        key.dev = makedev(stx.stx_dev_major, stx.stx_dev_minor);
        key.mount_id = stx.stx_mask & STATX_MNT_ID ? (gint)stx.stx_mnt_id : 0;
        mount = find_mount(opens, key.mount_id, key.dev);
        if (!mount)
                return;
        key.dev = mount->dev;
        key.inode = stx.stx_ino;
        if (g_hash_table_contains(opens->known, &key) || !(path = name_of_fd(fd)))
                return;
        file = g_new(OpenedFile, 1);
        *file = key;
        file->path = path;
        file->first_ns = now_ns;
        if (opens->residency)
                note_residency(opens, file, fd, stx.stx_size);
        g_ptr_array_add(opens->files, file);
        g_hash_table_add(opens->known, file);
        __atomic_store_n(&opens->last_new_ns, now_ns, __ATOMIC_RELAXED);
}

/* FALSE when there is nothing to read now. */
static gboolean
read_batch(Opens *opens, int from, gpointer buffer)
{
        const struct fanotify_event_metadata *event = buffer;
        ssize_t n = read(from, buffer, from == opens->fd ? opens->buffer_bytes : BUFFER_BYTES);
        struct timespec now;
        guint64 now_ns;
        FidOpen by_handle;

        /* EACCES and kin: one event could not be opened for us and is gone; others follow. */
        if (n < 0) {
                if (errno != EAGAIN && errno != EINTR)
                        opens->lost++;
                return errno != EAGAIN && errno != EBADF && errno != EINVAL;
        }
        if (n == 0)
                return FALSE;
        clock_gettime(CLOCK_MONOTONIC, &now);
        now_ns = (guint64)now.tv_sec * 1000000000U + (guint64)now.tv_nsec;
        /* FAN_EVENT_NEXT counts n down. */
        for (; FAN_EVENT_OK(event, n); event = FAN_EVENT_NEXT(event, n)) {
                auto_fd int fd = event->fd;

                if (fd < 0 && fd != FAN_NOFD)
                        opens->lost++;
                if (event->mask & FAN_Q_OVERFLOW)
                        opens->lost++;
                if (is_ignored(opens, event->pid) || !is_ours(opens, event->pid))
                        continue;
                if (fd >= 0)
                        note_open(opens, fd, now_ns);
                else if (from == opens->fid_fd && fid_open_parse(event, &by_handle))
                        fid_table_add(opens->fids, &by_handle, now_ns);
        }
        return TRUE;
}

/* Pages of an overlay's files belong to the file systems below it. */
static gboolean
is_wanted(const Opens *opens, const Mount *mount)
{
        if (opens->options.root && mount->dev != opens->root_dev &&
            !mount_is_below(mount, opens->options.root))
                return FALSE;
        return mount_holds_files(mount) &&
               (opens->options.all ||
                (!name_by_handle_works(mount->type) && strcmp(mount->type, "overlay") != 0));
}

static gboolean
mark_mount(Opens *opens, const Mount *mount)
{
        if (opens->fid_fd >= 0 && fid_type_known(mount->type) &&
            fanotify_mark(opens->fid_fd, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_OPEN, AT_FDCWD,
                          mount->dir) == 0 &&
            fid_table_add_mount(opens->fids, mount))
                return TRUE;
        return fanotify_mark(opens->fd, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_OPEN, AT_FDCWD,
                             mount->dir) == 0 ||
               fanotify_mark(opens->fd, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_OPEN, AT_FDCWD,
                             mount->dir) == 0;
}

/* Marks each file system that is not marked yet, through one of its mounts. */
static void
mark_mounts(Opens *opens, const GPtrArray *mounts, GPtrArray *refused)
{
        for (guint i = 0; i < mounts->len; i++) {
                Mount *mount = mounts->pdata[i];
                g_autofree gchar *dir = NULL;
                guint64 *dev;

                if (!is_wanted(opens, mount) || g_hash_table_contains(opens->devs, &mount->dev))
                        continue;
                dev = g_new(guint64, 1);
                *dev = mount->dev;
                g_hash_table_add(opens->devs, dev);
                if (mark_mount(opens, mount)) {
                        g_ptr_array_add(opens->watched, mount);
                        continue;
                }
                dir = path_quote(mount->dir);
                g_ptr_array_add(refused, g_strdup_printf("%s: %s", dir, g_strerror(errno)));
        }
}

static void
mark_late(Opens *opens)
{
        GPtrArray *mounts = mount_table_load(NULL);
        guint before = opens->watched->len;

        if (!mounts)
                return;
        mark_mounts(opens, mounts, opens->late);
        if (opens->watched->len > before)
                g_ptr_array_add(opens->tables, mounts);
        else
                g_ptr_array_unref(mounts);
}

static void *
read_events(void *data)
{
        Opens *opens = data;
        g_autofree gpointer buffer = g_malloc(BUFFER_BYTES);
        struct pollfd fds[] = {
                {.fd = opens->stop_pipe[0], .events = POLLIN},
                {.fd = opens->fd, .events = POLLIN},
                {.fd = opens->fid_fd, .events = POLLIN},
                {.fd = opens->mounts_fd, .events = POLLPRI},
        };

        for (;;) {
                if (poll(fds, G_N_ELEMENTS(fds), -1) < 0)
                        continue;
                if (fds[3].revents)
                        mark_late(opens);
                while (read_batch(opens, opens->fd, buffer))
                        ;
                while (opens->fid_fd >= 0 && read_batch(opens, opens->fid_fd, buffer))
                        ;
                if (fds[0].revents)
                        return NULL;
                /* Lets events gather; the end of the recording does not wait for it. What was
                 * resident before the open has to be asked for at once. */
                if (!opens->residency)
                        poll(&fds[0], 1, BATCH_MS);
        }
}

/* Half of the descriptors that are left may be those of events. */
static gsize
bounded_buffer(void)
{
        struct rlimit limit;
        gsize events = BUFFER_BYTES / FAN_EVENT_METADATA_LEN;

        if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
                events = CLAMP(limit.rlim_cur / 4, 1, events);
        return events * FAN_EVENT_METADATA_LEN;
}

static gboolean
init_queues(Opens *opens, GError **error)
{
        guint flags = FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK |
                      (opens->options.limited_queue ? 0 : FAN_UNLIMITED_QUEUE);

        /* O_NONBLOCK: an event of a FIFO must not wait for its other end. FD_ERROR: without it an
         * event that cannot be opened for us, but is not the first of its batch, is gone silently.
         */
        opens->fd = fanotify_init(flags | FAN_REPORT_FD_ERROR,
                                  O_RDONLY | O_LARGEFILE | O_CLOEXEC | O_NOATIME | O_NONBLOCK);
        if (opens->fd < 0 && errno == EINVAL)
                opens->fd = fanotify_init(flags, O_RDONLY | O_LARGEFILE | O_CLOEXEC | O_NOATIME |
                                                         O_NONBLOCK);
        if (opens->fd < 0) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                            "fanotify does not work here: %s", g_strerror(errno));
                return FALSE;
        }
        /* Linux 5.9 and later; without it descriptors do. */
        if (opens->options.handles)
                opens->fid_fd = fanotify_init(flags | FAN_REPORT_DFID_NAME | FAN_REPORT_FID,
                                              O_RDONLY | O_CLOEXEC);
        return TRUE;
}

Opens *
opens_new(const OpensOptions *options, GPtrArray *refused, GError **error)
{
        g_autoptr(Opens) opens = g_new0(Opens, 1);
        const Mount *holder;
        int failed;

        opens->fd = opens->fid_fd = opens->mounts_fd = -1;
        opens->stop_pipe[0] = opens->stop_pipe[1] = -1;
        opens->options = *options;
        opens->buffer_bytes = bounded_buffer();
        opens->tables = g_ptr_array_new_with_free_func((GDestroyNotify)g_ptr_array_unref);
        opens->watched = g_ptr_array_new();
        opens->devs = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
        opens->late = g_ptr_array_new_with_free_func(g_free);
        opens->pids = g_hash_table_new(NULL, NULL);
        opens->known = g_hash_table_new(opened_hash, opened_equal);
        opens->files = g_ptr_array_new_with_free_func(opened_free);
        opens->fids = fid_table_new();
        if (options->residency)
                opens->residency = residency_new();
        if (options->root &&
            (holder = mount_find_path((GPtrArray *)options->mounts, options->root)))
                opens->root_dev = holder->dev;
        if (!init_queues(opens, error))
                return NULL;
        mark_mounts(opens, options->mounts, refused);
        if (options->late_mounts) {
                opens->mounts_fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
                mark_late(opens);
        }
        if (opens->watched->len == 0 && (refused->len || options->all)) {
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

void
opens_ignore_process(Opens *opens, pid_t pid)
{
        gint at = g_atomic_int_add(&opens->n_ignored, 1);

        g_atomic_int_set(&opens->ignored[(guint)at % IGNORED_MAX], (gint)pid);
}

guint64
opens_last_new_ns(const Opens *opens)
{
        return __atomic_load_n(&opens->last_new_ns, __ATOMIC_RELAXED);
}

guint64
opens_stop(Opens *opens)
{
        if (opens->running) {
                ssize_t n = write(opens->stop_pipe[1], "", 1);

                (void)n;
                pthread_join(opens->thread, NULL);
                opens->running = FALSE;
        }
        return opens->lost;
}

void
opens_free(Opens *opens)
{
        if (!opens)
                return;
        opens_stop(opens);
        fd_close(&opens->fd);
        fd_close(&opens->fid_fd);
        fd_close(&opens->mounts_fd);
        fd_close(&opens->stop_pipe[0]);
        fd_close(&opens->stop_pipe[1]);
        residency_free(opens->residency);
        fid_table_free(opens->fids);
        g_hash_table_unref(opens->pids);
        g_hash_table_unref(opens->known);
        g_hash_table_unref(opens->devs);
        g_ptr_array_unref(opens->files);
        g_ptr_array_unref(opens->late);
        g_ptr_array_unref(opens->watched);
        g_ptr_array_unref(opens->tables);
        g_free(opens);
}

const GPtrArray *
opens_files(const Opens *opens)
{
        return opens->files;
}

const GPtrArray *
opens_refused_late(const Opens *opens)
{
        return opens->late;
}

gchar *
opens_find_path(const Opens *opens, dev_t dev, guint64 inode)
{
        OpenedFile key = {.dev = dev, .inode = inode};
        const OpenedFile *file = g_hash_table_lookup(opens->known, &key);

        return file ? g_strdup(file->path) : fid_table_path(opens->fids, dev, inode);
}
