// SPDX-License-Identifier: GPL-2.0-or-later
/* Names by made-up file handles: see names.h. Devices and FIFOs are never opened, only looked at.
 */
#include "profiler/names.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "common/fd.h"
#include "common/profile.h"

#define FILEID_INO32_GEN_TYPE 1 /* the handle type of file systems with 32-bit inode numbers */

typedef struct {
        struct file_handle head;
        guint32 inode;
        guint32 generation;
} InodeHandle;

gboolean
name_by_handle_works(const char *fs_type)
{
        static const char *const TYPES[] = {"ext2", "ext3", "ext4", "f2fs", NULL};

        return g_strv_contains(TYPES, fs_type);
}

gchar *
name_of_fd(int fd)
{
        gchar link[64];

        g_snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        for (gsize size = 512; size <= PROFILE_PATH_MAX; size *= 2) {
                g_autofree gchar *path = g_malloc(size);
                ssize_t n = readlink(link, path, size);

                if (n < 0)
                        return NULL;
                if ((gsize)n < size) {
                        path[n] = '\0';
                        return path[0] == '/' ? g_steal_pointer(&path) : NULL;
                }
        }
        return NULL;
}

/* `path_fd` is an O_PATH descriptor. */
/* A file unpacked with an old date was made now: its change time would tell as well, but that also
 * moves when a file is only renamed or its mode changed. */
static gint64
born_ns(int path_fd)
{
        struct statx stx;

        if (statx(path_fd, "", AT_EMPTY_PATH, STATX_BTIME, &stx) < 0 ||
            !(stx.stx_mask & STATX_BTIME))
                return 0;
        return (gint64)stx.stx_btime.tv_sec * 1000000000 + stx.stx_btime.tv_nsec;
}

static NameStatus
describe(const Mount *mount, int path_fd, const struct stat *st, const char *path, NamedFile *ret)
{
        g_autofree gchar *inside = mount_path_inside(mount, path);
        auto_fd int fd = -1;
        gchar link[64];
        int generation = 0;

        if (!inside)
                return NAME_UNKNOWN;
        g_snprintf(link, sizeof link, "/proc/self/fd/%d", path_fd);
        fd = open(link, O_RDONLY | O_NOATIME | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 && errno == EPERM)
                fd = open(link, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0 && ioctl(fd, FS_IOC_GETVERSION, &generation) != 0)
                generation = 0;

        ret->path = g_steal_pointer(&inside);
        ret->size_bytes = (guint64)st->st_size;
        ret->mtime_ns = (gint64)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
        ret->born_ns = born_ns(path_fd);
        ret->links = (guint)st->st_nlink;
        ret->generation = (guint32)generation;
        ret->fd = fd_steal(&fd);
        return NAME_FOUND;
}

NameStatus
name_by_handle(const Mount *mount, int mount_fd, guint64 inode, NamedFile *ret)
{
        InodeHandle handle = {
                .head.handle_bytes = 2 * sizeof(guint32),
                .head.handle_type = FILEID_INO32_GEN_TYPE,
                .inode = (guint32)inode,
        };
        g_autofree gchar *path = NULL;
        auto_fd int fd = -1;
        struct stat st, found;

        if (inode > G_MAXUINT32)
                return NAME_UNKNOWN;
        fd = open_by_handle_at(mount_fd, &handle.head, O_PATH | O_CLOEXEC);
        if (fd < 0)
                return errno == ESTALE || errno == ENOENT ? NAME_GONE : NAME_UNKNOWN;
        if (fstat(fd, &st) != 0)
                return NAME_UNKNOWN;
        if (!S_ISREG(st.st_mode))
                return NAME_NOT_REGULAR;
        if (st.st_nlink == 0)
                return NAME_GONE;
        path = name_of_fd(fd);
        if (!path || lstat(path, &found) != 0 || found.st_ino != st.st_ino ||
            found.st_dev != st.st_dev)
                return NAME_UNKNOWN;
        return describe(mount, fd, &st, path, ret);
}

NameStatus
name_by_path(const Mount *mount, const char *path, guint64 inode, NamedFile *ret)
{
        auto_fd int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        struct stat st;

        if (fd < 0)
                return errno == ENOENT ? NAME_GONE : NAME_UNKNOWN;
        if (fstat(fd, &st) != 0 || st.st_ino != inode)
                return NAME_GONE;
        if (!S_ISREG(st.st_mode))
                return NAME_NOT_REGULAR;
        return describe(mount, fd, &st, path, ret);
}

void
named_file_clear(NamedFile *file)
{
        g_clear_pointer(&file->path, g_free);
        fd_close(&file->fd);
}
