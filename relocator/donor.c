// SPDX-License-Identifier: GPL-2.0-or-later
/* The donor: allocating blocks that lie together. */
#include "relocator/donor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fsmap.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>

#include "common/error.h"
#include "common/fd.h"
#include "common/quote.h"
#include "relocator/error.h"

#define FSMAP_RECORDS 1024
#define RESERVE_MAX_BYTES (1ULL << 30)
#define RESERVE_PART 20 /* one part in so many of the file system's size */

void
donor_free(Donor *donor)
{
        if (!donor)
                return;
        fd_close(&donor->fd);
        g_clear_pointer(&donor->segments, g_array_unref);
        g_free(donor);
}

/* Bytes that may be allocated now so that others still find the reserve. */
static guint64
usable_bytes(int fd, guint64 *ret_free, GError **error)
{
        struct statvfs fs;
        guint64 total, reserve;

        if (fstatvfs(fd, &fs) < 0) {
                error_set_errno(error, COMMON_ERROR_FAILED, errno, "statvfs", NULL);
                return 0;
        }
        total = (guint64)fs.f_blocks * fs.f_frsize;
        *ret_free = (guint64)fs.f_bavail * fs.f_frsize;
        reserve = MIN(total / RESERVE_PART, RESERVE_MAX_BYTES);
        return *ret_free > reserve ? *ret_free - reserve : 0;
}

GArray *
free_segments(int dir_fd, guint32 block_bytes, GError **error)
{
        const gsize size = fsmap_sizeof(FSMAP_RECORDS);
        g_autofree struct fsmap_head *head = g_malloc0(size);
        g_autoptr(GArray) out = g_array_new(FALSE, FALSE, sizeof(Segment));
        guint64 at = 0;

        head->fmh_count = FSMAP_RECORDS;
        memset(&head->fmh_keys[1], 0xff, sizeof head->fmh_keys[1]);
        memset(head->fmh_keys[1].fmr_reserved, 0, sizeof head->fmh_keys[1].fmr_reserved);
        for (;;) {
                const struct fsmap *last;

                if (ioctl(dir_fd, FS_IOC_GETFSMAP, head) < 0) {
                        if (errno == EINTR)
                                continue;
                        g_set_error(error, RELOCATOR_ERROR, RELOCATOR_ERROR_FAILED,
                                    "the map of free space cannot be read: %s", g_strerror(errno));
                        return NULL;
                }
                for (guint i = 0; i < head->fmh_entries && i < FSMAP_RECORDS; i++) {
                        const struct fsmap *record = &head->fmh_recs[i];
                        Segment segment = {
                                .donor_block = at,
                                .blocks = record->fmr_length / block_bytes,
                                .physical_block = record->fmr_physical / block_bytes,
                        };
                        Segment *before;

                        if (!(record->fmr_flags & FMR_OF_SPECIAL_OWNER) ||
                            record->fmr_owner != FMR_OWN_FREE || segment.blocks == 0)
                                continue;
                        before = out->len ? &g_array_index(out, Segment, out->len - 1) : NULL;
                        if (before &&
                            before->physical_block + before->blocks == segment.physical_block)
                                before->blocks += segment.blocks;
                        else
                                g_array_append_val(out, segment);
                        at += segment.blocks;
                }
                if (head->fmh_entries == 0 || head->fmh_entries > FSMAP_RECORDS)
                        break;
                last = &head->fmh_recs[head->fmh_entries - 1];
                if (last->fmr_flags & FMR_OF_LAST)
                        break;
                fsmap_advance(head);
        }
        return g_steal_pointer(&out);
}

/* The donor's own map as segments, in the order of the donor. */
static GArray *
donor_segments(int fd, guint32 block_bytes, GError **error)
{
        g_autoptr(ExtentMap) map = extent_map_load(fd, error);
        GArray *out;

        if (!map)
                return NULL;
        out = g_array_new(FALSE, FALSE, sizeof(Segment));
        for (guint i = 0; i < map->extents->len; i++) {
                const Extent *extent = &g_array_index(map->extents, Extent, i);
                Segment segment = {
                        .donor_block = extent->logical_bytes / block_bytes,
                        .blocks = extent->length_bytes / block_bytes,
                        .physical_block = extent->physical_bytes / block_bytes,
                };

                if (extent->physical_bytes > 0)
                        g_array_append_val(out, segment);
        }
        return out;
}

static gboolean
grow(int fd, guint64 from_bytes, guint64 to_bytes)
{
        int result;

        do
                result = fallocate(fd, 0, (off_t)from_bytes, (off_t)(to_bytes - from_bytes));
        while (result < 0 && errno == EINTR);
        return result == 0;
}

/* Gives back everything of the donor that no chosen segment covers. */
static gboolean
punch_rest(int fd, const GArray *all, const GArray *chosen, guint32 block_bytes)
{
        for (guint i = 0; i < all->len; i++) {
                const Segment *segment = &g_array_index(all, Segment, i);
                guint64 first = segment->donor_block, end = first + segment->blocks;
                guint64 keep_first = end, keep_end = end;
                guint64 cut[2][2];

                /* At most one chosen part lies in each segment: they were made from these. */
                for (guint k = 0; k < chosen->len; k++) {
                        const Segment *keep = &g_array_index(chosen, Segment, k);

                        if (keep->donor_block >= first && keep->donor_block < end) {
                                keep_first = keep->donor_block;
                                keep_end = keep->donor_block + keep->blocks;
                        }
                }
                cut[0][0] = first;
                cut[0][1] = keep_first;
                cut[1][0] = keep_end;
                cut[1][1] = end;
                for (guint k = 0; k < 2; k++)
                        if (cut[k][1] > cut[k][0] &&
                            fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                      (off_t)(cut[k][0] * block_bytes),
                                      (off_t)((cut[k][1] - cut[k][0]) * block_bytes)) < 0)
                                return FALSE;
        }
        return TRUE;
}

/* In how many runs the free space could hold `blocks`; 1 when nobody can tell, so that all is
 * tried. */
static guint
best_possible(int dir_fd, guint32 block_bytes, guint64 blocks, guint64 align)
{
        g_autoptr(GArray) free_space = free_segments(dir_fd, block_bytes, NULL);
        g_autoptr(GArray) chosen = free_space ? segments_choose(free_space, blocks, align) : NULL;

        return chosen ? chosen->len : 1;
}

Donor *
donor_new(int dir_fd, const char *dir, const Plan *plan, GError **error)
{
        g_autoptr(Donor) donor = g_new0(Donor, 1);
        g_autoptr(GArray) all = NULL;
        const guint32 block_bytes = plan->block_bytes;
        const guint64 align = plan->page_bytes / block_bytes;
        const guint64 blocks = plan_donor_blocks(plan), need_bytes = blocks * block_bytes;
        guint64 have_bytes = 0, free_bytes = 0, usable, want_bytes = need_bytes;
        GError *local = NULL;
        guint best = 0;

        donor->fd = openat(dir_fd, ".", O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
        if (donor->fd < 0) {
                error_set_errno(error, COMMON_ERROR_FAILED, errno, "making an unnamed file in",
                                dir);
                return NULL;
        }
        usable = usable_bytes(donor->fd, &free_bytes, &local);
        if (local) {
                g_propagate_error(error, local);
                return NULL;
        }
        if (usable < need_bytes) {
                g_autofree gchar *quoted = path_quote(dir);

                g_set_error(error, RELOCATOR_ERROR, RELOCATOR_ERROR_NO_SPACE,
                            "not enough free space on %s: %.1f MiB are needed beside a reserve, "
                            "%.1f MiB are free; nothing was changed",
                            quoted, (double)need_bytes / (1 << 20), (double)free_bytes / (1 << 20));
                return NULL;
        }
        for (;;) {
                GArray *chosen;

                if (!grow(donor->fd, have_bytes, want_bytes)) {
                        /* What was there before is still good; the first try must succeed. */
                        if (!donor->segments) {
                                g_autofree gchar *quoted = path_quote(dir);

                                g_set_error(error, RELOCATOR_ERROR,
                                            errno == ENOSPC || errno == EDQUOT
                                                    ? RELOCATOR_ERROR_NO_SPACE
                                                    : RELOCATOR_ERROR_FAILED,
                                            "allocating %.1f MiB on %s: %s; nothing was changed",
                                            (double)need_bytes / (1 << 20), quoted,
                                            g_strerror(errno));
                                return NULL;
                        }
                        g_clear_pointer(&all, g_array_unref);
                        all = donor_segments(donor->fd, block_bytes, error);
                        if (!all)
                                return NULL;
                        break;
                }
                have_bytes = want_bytes;
                g_clear_pointer(&all, g_array_unref);
                all = donor_segments(donor->fd, block_bytes, error);
                if (!all)
                        return NULL;
                chosen = segments_choose(all, blocks, align);
                if (chosen) {
                        g_clear_pointer(&donor->segments, g_array_unref);
                        donor->segments = chosen;
                        if (chosen->len == 1)
                                break;
                }
                if (best == 0)
                        best = best_possible(donor->fd, block_bytes, blocks, align);
                /* The map of free space was read with the donor's first blocks taken. */
                if (chosen && chosen->len <= best)
                        break;
                if (have_bytes >= usable)
                        break;
                want_bytes = MIN(have_bytes * 2, usable / plan->page_bytes * plan->page_bytes);
                if (want_bytes <= have_bytes)
                        break;
        }
        if (!donor->segments || !punch_rest(donor->fd, all, donor->segments, block_bytes)) {
                g_set_error(error, RELOCATOR_ERROR, RELOCATOR_ERROR_FAILED,
                            "the free space is too scattered; nothing was changed");
                return NULL;
        }
        return g_steal_pointer(&donor);
}
