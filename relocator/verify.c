// SPDX-License-Identifier: GPL-2.0-or-later
/* Hashing contents from the disk, and putting old contents back. */
#include "relocator/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.h"
#include "common/fd.h"
#include "relocator/error.h"

#define READ_BYTES (1 << 20)
#define ALIGN_BYTES 4096

typedef struct {
        guint8 *data; /* READ_BYTES, aligned for O_DIRECT */
} Buffer;

static void
buffer_clear(Buffer *buffer)
{
        free(buffer->data);
        buffer->data = NULL;
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Buffer, buffer_clear)

static void
buffer_init(Buffer *buffer)
{
        void *data = NULL;

        if (posix_memalign(&data, ALIGN_BYTES, READ_BYTES) != 0)
                g_error("out of memory");
        buffer->data = data;
}

int
contents_open(int fd, GError **error)
{
        g_autofree gchar *path = g_strdup_printf("/proc/self/fd/%d", fd);
        const int flags = O_RDONLY | O_NOATIME | O_CLOEXEC | O_NONBLOCK;
        int fresh = open(path, flags | O_DIRECT);

        if (fresh < 0 && errno == EINVAL)
                fresh = open(path, flags);
        if (fresh < 0)
                error_set_errno(error, COMMON_ERROR_FAILED, errno, "opening again to read back",
                                NULL);
        return fresh;
}

static gssize
read_some(int fd, void *data, gsize length, guint64 offset)
{
        gssize n;

        do
                n = pread(fd, data, length, (off_t)offset);
        while (n < 0 && errno == EINTR);
        return n;
}

gchar *
contents_hash(int fresh, const GArray *parts, GError **error)
{
        g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
        g_auto(Buffer) buffer = {NULL};

        /* where O_DIRECT was refused */
        posix_fadvise(fresh, 0, 0, POSIX_FADV_DONTNEED);
        buffer_init(&buffer);
        for (guint i = 0; i < parts->len; i++) {
                const Extent *part = &g_array_index(parts, Extent, i);
                guint64 at = part->logical_bytes, end = at + part->length_bytes;
                guint64 place = GUINT64_TO_LE(at);

                g_checksum_update(sum, (const guchar *)&place, sizeof place);
                while (at < end) {
                        /* O_DIRECT takes whole sectors only; what lies behind `end` does not count.
                         */
                        gsize want = MIN(READ_BYTES,
                                         (end - at + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES);
                        gssize n = read_some(fresh, buffer.data, want, at);

                        if (n < 0) {
                                error_set_errno(error, COMMON_ERROR_FAILED, errno, "reading back",
                                                NULL);
                                return NULL;
                        }
                        if (n == 0)
                                break; /* the last block reaches beyond the end */
                        g_checksum_update(sum, buffer.data, (gssize)MIN((guint64)n, end - at));
                        at += (guint64)n;
                        if ((gsize)n < want && n % 512 != 0)
                                break; /* the end of the file */
                }
        }
        return g_strdup(g_checksum_get_string(sum));
}

gboolean
contents_restore(int fd, int fresh, const char *device_node, const GArray *parts,
                 const GArray *hashed_parts, const char *expected, GError **error)
{
        auto_fd int device = open(device_node, O_RDONLY | O_DIRECT | O_CLOEXEC);
        g_autofree gchar *now = NULL;
        g_auto(Buffer) buffer = {NULL};
        struct stat st;

        if (device < 0 || fstat(fd, &st) < 0) {
                error_set_errno(error, COMMON_ERROR_FAILED, errno, "opening", device_node);
                return FALSE;
        }
        buffer_init(&buffer);
        for (guint i = 0; i < parts->len; i++) {
                const Extent *part = &g_array_index(parts, Extent, i);

                for (guint64 done = 0; done < part->length_bytes;) {
                        guint64 at = part->logical_bytes + done;
                        gssize n = read_some(device, buffer.data,
                                             MIN(READ_BYTES, part->length_bytes - done),
                                             part->physical_bytes + done);
                        gssize write = n, written = 0;

                        if (n <= 0) {
                                error_set_errno(error, COMMON_ERROR_FAILED, n < 0 ? errno : EIO,
                                                "reading the old blocks from", device_node);
                                return FALSE;
                        }
                        if (at >= (guint64)st.st_size)
                                break;
                        write = (gssize)MIN((guint64)n, (guint64)st.st_size - at);
                        while (written < write) {
                                gssize w = pwrite(fd, buffer.data + written,
                                                  (gsize)(write - written), (off_t)at + written);

                                if (w < 0 && errno == EINTR)
                                        continue;
                                if (w <= 0) {
                                        error_set_errno(error, COMMON_ERROR_FAILED, errno,
                                                        "writing the old contents back", NULL);
                                        return FALSE;
                                }
                                written += w;
                        }
                        done += (guint64)n;
                }
        }
        /* Writing changed the times. */
        futimens(fd, (const struct timespec[]){st.st_atim, st.st_mtim});
        if (fsync(fd) < 0) {
                error_set_errno(error, COMMON_ERROR_FAILED, errno, "fsync", NULL);
                return FALSE;
        }
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        now = contents_hash(fresh, hashed_parts, error);
        return now && g_str_equal(now, expected);
}
