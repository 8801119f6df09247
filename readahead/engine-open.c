// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Opening a file of a pack, which names bytes that somebody may have replaced by a FIFO, a device,
 * a symbolic link or a mount since.
 *
 * Every file is looked at through an O_PATH descriptor first, so that nothing that is not the
 * regular file recorded is ever opened (opening some devices acts), and checked again after the
 * open. Links and mounts are refused by openat2(2); on kernels before 5.6 the path is walked part
 * by part.
 */
#include "readahead/engine-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PATH_CHUNK 4000 /* one system call takes PATH_MAX = 4096 with the NUL */
#define HS_FS_IOC_GETVERSION _IOR('v', 1, long)

static bool walks;

bool
open_walks(void)
{
        return walks;
}

/* Opens `path` part by part. Each part is opened with O_PATH, which neither follows (O_NOFOLLOW)
 * nor mounts, and must be on the device where the walk began. */
static int
open_walking(int dir_fd, const char *path, int flags)
{
        struct stat st;
        char part[256];
        dev_t device;
        int fd = -1;

        if (fstat(dir_fd, &st) < 0)
                return -errno;
        device = st.st_dev;
        for (;;) {
                size_t length = strcspn(path, "/");
                bool last = path[length] == '\0';
                int next;

                if (length == 0 || length >= sizeof part) {
                        next = -ENAMETOOLONG;
                } else {
                        memcpy(part, path, length);
                        part[length] = '\0';
                        next = openat(fd < 0 ? dir_fd : fd, part,
                                      (last ? flags : O_PATH) | O_NOFOLLOW | O_CLOEXEC);
                        if (next < 0)
                                next = -errno;
                }
                if (fd >= 0)
                        close(fd);
                if (next < 0)
                        return next;
                fd = next;
                if (fstat(fd, &st) < 0 || st.st_dev != device || S_ISLNK(st.st_mode)) {
                        close(fd);
                        return S_ISLNK(st.st_mode) ? -ELOOP : -EXDEV;
                }
                if (last)
                        return fd;
                path += length + 1;
        }
}

static int
open_checked(int dir_fd, const char *path, int flags)
{
        struct open_how how = {
                .flags = (uint64_t)(unsigned int)flags | O_NOFOLLOW | O_CLOEXEC,
                .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV |
                           RESOLVE_BENEATH,
        };
        int tries = 8;
        long fd;

        if (walks)
                return open_walking(dir_fd, path, flags);
        do
                fd = syscall(SYS_openat2, dir_fd, path, &how, sizeof how);
        /* EAGAIN: something was renamed during the look-up */
        while (fd < 0 && (errno == EINTR || errno == EAGAIN) && --tries > 0);
        if (fd >= 0)
                return (int)fd;
        if (errno == ENOSYS) {
                walks = true;
                return open_walking(dir_fd, path, flags);
        }
        return -errno;
}

/* A path of any length, below dir_fd; no slash in front. */
static int
open_beneath(int dir_fd, const char *path, int flags)
{
        int fd = -1, r;

        while (strnlen(path, PATH_CHUNK + 1) > PATH_CHUNK) {
                char chunk[PATH_CHUNK + 1];
                size_t length = PATH_CHUNK;

                while (length > 0 && path[length] != '/')
                        length--;
                if (length == 0) {
                        r = -ENAMETOOLONG;
                } else {
                        memcpy(chunk, path, length);
                        chunk[length] = '\0';
                        r = open_checked(fd < 0 ? dir_fd : fd, chunk, O_PATH);
                }
                if (fd >= 0)
                        close(fd);
                if (r < 0)
                        return r;
                fd = r;
                path += length + 1;
        }
        r = open_checked(fd < 0 ? dir_fd : fd, path, flags);
        if (fd >= 0)
                close(fd);
        return r;
}

static enum open_outcome
outcome_of_errno(int r)
{
        switch (-r) {
        case ENOENT:
        case ENOTDIR:
        case ELOOP:
        case EXDEV:
        case ENAMETOOLONG:
        case ENXIO: /* a socket */ return OPEN_MISSING;
        case EMFILE:
        case ENFILE: return OPEN_NO_FD;
        default: return OPEN_REFUSED;
        }
}

static enum open_outcome
compare(const struct stat *st, const struct pack_file *expect)
{
        int64_t mtime_ns = (int64_t)((uint64_t)st->st_mtim.tv_sec * 1000000000U +
                                     (uint64_t)st->st_mtim.tv_nsec);

        if (!S_ISREG(st->st_mode))
                return OPEN_MISSING;
        if (st->st_ino != expect->inode || (uint64_t)st->st_size != expect->size)
                return OPEN_STALE;
        return mtime_ns == expect->mtime_ns ? OPEN_SAME : OPEN_TOUCHED;
}

enum open_outcome
place_open_file(const struct place *place, const char *path, const struct pack_file *expect,
                int *ret_fd)
{
        enum open_outcome outcome;
        int fd, r, flags = O_RDONLY | O_NOATIME | O_NONBLOCK | O_NOCTTY;
        unsigned long version[2] = {0};
        uint32_t generation;
        struct stat st;

        fd = open_beneath(place->root_fd, path, O_PATH);
        if (fd < 0)
                return outcome_of_errno(fd);
        r = fstat(fd, &st);
        close(fd);
        if (r < 0)
                return OPEN_REFUSED;
        outcome = compare(&st, expect);
        if (outcome == OPEN_MISSING || outcome == OPEN_STALE)
                return outcome;

        fd = open_beneath(place->root_fd, path, flags);
        if (fd == -EPERM) {
                /* O_NOATIME is for the owner */
                flags &= ~O_NOATIME;
                fd = open_beneath(place->root_fd, path, flags);
        }
        if (fd < 0)
                return outcome_of_errno(fd);
        outcome = fstat(fd, &st) < 0 ? OPEN_REFUSED : compare(&st, expect);
        /* the kernel writes an int or a long, by file system */
        if ((outcome == OPEN_SAME || outcome == OPEN_TOUCHED) && expect->generation != 0 &&
            ioctl(fd, HS_FS_IOC_GETVERSION, version) == 0) {
                memcpy(&generation, version, sizeof generation);
                if (generation != expect->generation)
                        outcome = OPEN_STALE;
        }
        if (outcome != OPEN_SAME && outcome != OPEN_TOUCHED) {
                close(fd);
                return outcome;
        }
        /* Only the open must not block: with O_NONBLOCK some file systems answer every read with
         * EAGAIN. */
        fcntl(fd, F_SETFL, flags & O_NOATIME);
        /* ranges are exact: no readahead of the kernel's own beside them */
        posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
        *ret_fd = fd;
        return outcome;
}
