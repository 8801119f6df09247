// SPDX-License-Identifier: GPL-2.0-or-later
/* Whole small files. */
#include "common/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.h"
#include "common/fd.h"

GBytes *
file_read(const char *path, guint64 limit_bytes, GError **error)
{
        auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        g_autoptr(GByteArray) data = g_byte_array_new();
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0) {
                error_set_errno(error, COMMON_ERROR_INPUT, errno, "cannot read", path);
                return NULL;
        }
        if (!S_ISREG(st.st_mode)) {
                error_set_errno(error, COMMON_ERROR_INPUT, S_ISDIR(st.st_mode) ? EISDIR : ENODEV,
                                "cannot read", path);
                return NULL;
        }
        if ((guint64)st.st_size > limit_bytes) {
                error_set_errno(error, COMMON_ERROR_INPUT, EFBIG, "cannot read", path);
                return NULL;
        }
        g_byte_array_set_size(data, st.st_size);
        for (gsize done = 0; done < data->len;) {
                ssize_t n = read(fd, data->data + done, data->len - done);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0) {
                        error_set_errno(error, COMMON_ERROR_INPUT, errno, "cannot read", path);
                        return NULL;
                }
                if (n == 0) {
                        g_byte_array_set_size(data, done);
                        break;
                }
                done += n;
        }
        return g_byte_array_free_to_bytes(g_steal_pointer(&data));
}

int
file_write_all(int fd, const void *data, gsize length)
{
        const guint8 *p = data;

        while (length > 0) {
                ssize_t n = write(fd, p, length);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                p += n;
                length -= n;
        }
        return 0;
}

/* -1: not there, or a regular file. Else what writing to that which is there (a device, a pipe)
 * gave: 0 or an errno. A rename would put a file in the place of /dev/null. */
static int
write_special(const char *path, const void *data, gsize length)
{
        auto_fd int fd = -1;
        struct stat st;

        if (stat(path, &st) < 0 || S_ISREG(st.st_mode))
                return -1;
        if (S_ISDIR(st.st_mode))
                return EISDIR;
        /* nobody means to overwrite a disk with a small file */
        if (S_ISBLK(st.st_mode))
                return EBUSY;
        fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        return fd < 0 ? errno : -file_write_all(fd, data, length);
}

static gboolean
replace_file(const char *path, const void *data, gsize length, mode_t mode, GError **error)
{
        g_autofree gchar *folder = g_path_get_dirname(path);
        g_autofree gchar *temporary = g_strdup_printf("%s.XXXXXX", path);
        auto_fd int fd = g_mkstemp_full(temporary, O_WRONLY | O_CLOEXEC, 0600);
        auto_fd int folder_fd = -1;
        const mode_t mask = umask(0);
        int failed;

        umask(mask);
        if (fd < 0) {
                error_set_errno(error, COMMON_ERROR_FAILED, errno, "cannot write", path);
                return FALSE;
        }
        failed = -file_write_all(fd, data, length);
        if (!failed &&
            (fchmod(fd, mode & ~mask) < 0 || fsync(fd) < 0 || rename(temporary, path) < 0))
                failed = errno;
        if (failed) {
                unlink(temporary);
                error_set_errno(error, COMMON_ERROR_FAILED, failed, "cannot write", path);
                return FALSE;
        }
        folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder_fd >= 0)
                fsync(folder_fd);
        return TRUE;
}

gboolean
file_replace(const char *path, const void *data, gsize length, mode_t mode, GError **error)
{
        /* through a symbolic link the file is replaced, not the link */
        g_autofree char *target = realpath(path, NULL);
        int special = write_special(path, data, length);

        if (special < 0)
                return replace_file(target ? target : path, data, length, mode, error);
        if (special > 0) {
                error_set_errno(error, COMMON_ERROR_FAILED, special, "cannot write", path);
                return FALSE;
        }
        return TRUE;
}
