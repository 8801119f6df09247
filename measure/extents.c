// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Extent maps of files.
 *
 * FIEMAP is asked page by page from where the last page ended; the loop ends at EXTENT_LAST, when
 * nothing is returned, or when the kernel does not get on. FIBMAP knows only blocks that have a
 * place: 0 means hole, inline data or a block shared on XFS, and an error is no place at all.
 */
#include "measure/extents.h"

#include <errno.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "common/error.h"

#ifndef BTRFS_SUPER_MAGIC
#define BTRFS_SUPER_MAGIC 0x9123683E
#endif

#define PAGE_EXTENTS 512 /* extents asked in one call: 28 KiB */

gboolean
extent_is_readable(const Extent *extent)
{
        return !(extent->flags & (FIEMAP_EXTENT_UNWRITTEN | FIEMAP_EXTENT_DELALLOC |
                                  FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DATA_INLINE));
}

static ExtentMap *
extent_map_new(void)
{
        ExtentMap *map = g_new0(ExtentMap, 1);

        map->extents = g_array_new(FALSE, FALSE, sizeof(Extent));
        return map;
}

void
extent_map_free(ExtentMap *map)
{
        if (!map)
                return;
        g_array_unref(map->extents);
        g_free(map);
}

/* Flags that say something about the file's end or the call, not about the place. */
#define FLAGS_IGNORED (FIEMAP_EXTENT_LAST | FIEMAP_EXTENT_MERGED)

#define FLAGS_NO_PLACE (FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC | FIEMAP_EXTENT_DATA_INLINE)

static void
add_extent(GArray *extents, Extent extent)
{
        Extent *last = extents->len ? &g_array_index(extents, Extent, extents->len - 1) : NULL;

        extent.flags &= ~(guint32)FLAGS_IGNORED;
        if (extent.length_bytes == 0)
                return;
        /* Unwritten extents have a place, those that wait for one or are inline do not. */
        if (last && last->flags == extent.flags &&
            last->logical_bytes + last->length_bytes == extent.logical_bytes &&
            ((extent.flags & FLAGS_NO_PLACE) ||
             last->physical_bytes + last->length_bytes == extent.physical_bytes)) {
                last->length_bytes += extent.length_bytes;
                return;
        }
        g_array_append_val(extents, extent);
}

ExtentMap *
extent_map_load(int fd, GError **error)
{
        g_autoptr(ExtentMap) map = extent_map_new();
        const gsize size = sizeof(struct fiemap) + PAGE_EXTENTS * sizeof(struct fiemap_extent);
        g_autofree struct fiemap *page = g_malloc0(size);
        struct statfs fs;
        guint64 start = 0;
        gboolean last = FALSE;

        while (!last) {
                guint64 next = start;

                memset(page, 0, sizeof *page);
                page->fm_start = start;
                page->fm_length = FIEMAP_MAX_OFFSET - start;
                page->fm_extent_count = PAGE_EXTENTS;
                if (ioctl(fd, FS_IOC_FIEMAP, page) < 0) {
                        if (errno == EINTR)
                                continue;
                        if (errno == EOPNOTSUPP || errno == ENOTTY || errno == EINVAL ||
                            errno == ENOSYS)
                                return extent_map_load_fibmap(fd, error);
                        error_set_errno(error, COMMON_ERROR_FAILED, errno,
                                        "reading the extent map (FIEMAP)", NULL);
                        return NULL;
                }
                for (guint32 i = 0; i < page->fm_mapped_extents && i < PAGE_EXTENTS; i++) {
                        const struct fiemap_extent *from = &page->fm_extents[i];
                        Extent extent = {
                                .logical_bytes = from->fe_logical,
                                .physical_bytes = from->fe_physical,
                                .length_bytes = from->fe_length,
                                .flags = from->fe_flags,
                        };

                        last = (from->fe_flags & FIEMAP_EXTENT_LAST) != 0;
                        /* The first of a page may begin before what was asked. */
                        if (extent.logical_bytes < next) {
                                guint64 over = next - extent.logical_bytes;

                                if (over >= extent.length_bytes)
                                        continue;
                                extent.logical_bytes += over;
                                extent.length_bytes -= over;
                                if (extent.physical_bytes)
                                        extent.physical_bytes += over;
                        }
                        if (extent.length_bytes > G_MAXINT64 - extent.logical_bytes)
                                extent.length_bytes = G_MAXINT64 - extent.logical_bytes;
                        next = extent.logical_bytes + extent.length_bytes;
                        if (from->fe_flags & FIEMAP_EXTENT_ENCODED)
                                map->logical_addresses = TRUE;
                        add_extent(map->extents, extent);
                }
                if (next <= start)
                        break;
                start = next;
        }
        if (fstatfs(fd, &fs) == 0 && (guint64)fs.f_type == BTRFS_SUPER_MAGIC)
                map->logical_addresses = TRUE;
        return g_steal_pointer(&map);
}

ExtentMap *
extent_map_load_fibmap(int fd, GError **error)
{
        g_autoptr(ExtentMap) map = extent_map_new();
        struct stat st;
        int block_bytes = 0;
        guint64 blocks;

        map->fibmap = TRUE;
        if (fstat(fd, &st) < 0) {
                error_set_errno(error, COMMON_ERROR_FAILED, errno, "fstat", NULL);
                return NULL;
        }
        if (ioctl(fd, FIGETBSZ, &block_bytes) < 0 || block_bytes <= 0) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                            "this file system has no block map (neither FIEMAP nor FIBMAP)");
                return NULL;
        }
        blocks = ((guint64)st.st_size + (guint)block_bytes - 1) / (guint)block_bytes;
        /* The call takes an int: blocks further on cannot be asked for. One is asked for even in an
         * empty file, to learn whether the file system answers at all. */
        for (guint64 i = 0; i < CLAMP(blocks, 1, (guint64)G_MAXINT32 + 1); i++) {
                int number = (int)i;
                Extent extent = {
                        .logical_bytes = i * (guint)block_bytes,
                        .length_bytes = (guint)block_bytes,
                };

                if (ioctl(fd, FIBMAP, &number) < 0) {
                        if (errno == EINTR) {
                                i--;
                                continue;
                        }
                        if (errno == EPERM) {
                                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                                            "FIBMAP needs CAP_SYS_RAWIO: run as root");
                                return NULL;
                        }
                        if (errno != ERANGE && errno != EFBIG && errno != EOVERFLOW) {
                                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                                            "this file system has no block map (FIBMAP: %s)",
                                            g_strerror(errno));
                                return NULL;
                        }
                        /* Beyond 2^31 blocks: it lies somewhere, but FIBMAP cannot say where. */
                        extent.flags = FIEMAP_EXTENT_UNKNOWN;
                } else if (number == 0) {
                        continue;
                } else {
                        /* Old kernels return the lower 32 bits: at least the upper half of those
                         * must not turn negative. */
                        extent.physical_bytes = (guint64)(guint32)number * (guint)block_bytes;
                }
                add_extent(map->extents, extent);
        }
        return g_steal_pointer(&map);
}

void
extent_map_clip(const ExtentMap *map, guint64 offset_bytes, guint64 length_bytes, GArray *out)
{
        guint64 end = length_bytes > G_MAXUINT64 - offset_bytes ? G_MAXUINT64
                                                                : offset_bytes + length_bytes;
        guint low = 0, high = map->extents->len;

        /* The first extent that ends after the offset. */
        while (low < high) {
                guint middle = low + (high - low) / 2;
                const Extent *extent = &g_array_index(map->extents, Extent, middle);

                if (extent->logical_bytes + extent->length_bytes <= offset_bytes)
                        low = middle + 1;
                else
                        high = middle;
        }
        for (guint i = low; i < map->extents->len; i++) {
                Extent part = g_array_index(map->extents, Extent, i);

                if (part.logical_bytes >= end)
                        break;
                if (!extent_is_readable(&part))
                        continue;
                if (part.logical_bytes < offset_bytes) {
                        guint64 over = offset_bytes - part.logical_bytes;

                        part.logical_bytes += over;
                        part.physical_bytes += over;
                        part.length_bytes -= over;
                }
                part.length_bytes = MIN(part.length_bytes, end - part.logical_bytes);
                g_array_append_val(out, part);
        }
}
