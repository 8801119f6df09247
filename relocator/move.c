// SPDX-License-Identifier: GPL-2.0-or-later
/* Moving extents. */
#include "relocator/move.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "relocator/error.h"

/* EXT4_IOC_MOVE_EXT, fs/ext4/ext4.h: it is in no header that user space is given. All counts are
 * blocks. */
struct move_extent {
        guint32 reserved;
        guint32 donor_fd;
        guint64 orig_start;
        guint64 donor_start;
        guint64 len;
        guint64 moved_len;
};
#define HEADSTART_IOC_MOVE_EXT _IOWR('f', 15, struct move_extent)

#define TRIES_MAX 8 /* calls in a row without progress that may be repeated */
#define READ_BYTES (1 << 20)

/* Exchanges `blocks`; adds to *ret_moved what was exchanged, also on failure. */
static gboolean
exchange(int fd, int donor_fd, guint64 logical, guint64 donor, guint64 blocks, guint64 *ret_moved,
         GError **error)
{
        guint64 done = 0;
        guint tries = 0;

        while (done < blocks) {
                struct move_extent call = {
                        .donor_fd = (guint32)donor_fd,
                        .orig_start = logical + done,
                        .donor_start = donor + done,
                        .len = blocks - done,
                };
                int result = ioctl(fd, HEADSTART_IOC_MOVE_EXT, &call), errnum = errno;
                guint64 moved = MIN(call.moved_len, blocks - done);

                done += moved;
                *ret_moved += moved;
                if (done >= blocks)
                        break;
                /* Progress with an error beside is a sparse tail or a busy page: go on from there.
                 */
                if (moved > 0) {
                        tries = 0;
                        continue;
                }
                if (result < 0 && (errnum == EINTR || errnum == EAGAIN || errnum == EBUSY) &&
                    ++tries < TRIES_MAX)
                        continue;
                g_set_error(error, RELOCATOR_ERROR, RELOCATOR_ERROR_MOVE,
                            "the kernel moved nothing at block %" G_GUINT64_FORMAT ": %s",
                            logical + done,
                            result < 0 ? g_strerror(errnum) : "there is a hole now");
                return FALSE;
        }
        return TRUE;
}

gboolean
move_pieces(int fd, int donor_fd, const GPtrArray *pieces, GError **error)
{
        for (guint i = 0; i < pieces->len; i++) {
                Piece *piece = pieces->pdata[i];

                if (!exchange(fd, donor_fd, piece->logical_block + piece->moved_blocks,
                              piece->donor_block + piece->moved_blocks,
                              piece->blocks - piece->moved_blocks, &piece->moved_blocks, error))
                        return FALSE;
        }
        return TRUE;
}

gboolean
move_back(int fd, int donor_fd, const GPtrArray *pieces, GError **error)
{
        gboolean ok = TRUE;

        for (guint i = pieces->len; i > 0; i--) {
                Piece *piece = pieces->pdata[i - 1];
                guint64 back = 0;

                /* One that fails must not keep the others from going back. */
                if (!exchange(fd, donor_fd, piece->logical_block, piece->donor_block,
                              piece->moved_blocks, &back, ok ? error : NULL))
                        ok = FALSE;
                else
                        piece->moved_blocks = 0;
        }
        return ok;
}

void
move_read_in(int fd, const GPtrArray *pieces, guint32 block_bytes)
{
        g_autofree guint8 *buffer = g_malloc(READ_BYTES);

        /* With "random" the kernel reads just what is asked for, in pages of the smallest size;
         * readahead would make large folios. */
        posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
        for (guint i = 0; i < pieces->len; i++) {
                const Piece *piece = pieces->pdata[i];
                guint64 at = piece->logical_block * block_bytes;
                guint64 end = at + piece->blocks * block_bytes;

                while (at < end) {
                        gssize n = pread(fd, buffer, MIN(READ_BYTES, end - at), (off_t)at);

                        /* Whatever goes wrong here, the mover will meet and report. */
                        if (n <= 0)
                                break;
                        at += (guint64)n;
                }
        }
}
