// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where a file lies: extent maps by FIEMAP, by FIBMAP where that is missing. Bytes, on the file
 * system's device.
 */
#pragma once

#include <glib.h>

typedef struct {
        guint64 logical_bytes;
        guint64 physical_bytes; /* on the file system's device */
        guint64 length_bytes;
        guint32 flags; /* FIEMAP_EXTENT_* */
} Extent;

typedef struct {
        GArray *extents; /* Extent, ascending logical, holes left out; pieces that touch both
                            logically and physically with equal flags are joined */
        gboolean fibmap; /* read with FIBMAP */
        gboolean logical_addresses; /* btrfs and compressed extents: places are not the drive's */
} ExtentMap;

/* TRUE when this extent has a place on the device and reading it costs a read: not unwritten, not
 * delayed allocation, not inline, not unknown. */
gboolean extent_is_readable(const Extent *extent);

/* Loads the whole map of an open regular file; loops to FIEMAP_EXTENT_LAST; no FLAG_SYNC (delayed
 * allocation shows as not readable). Errors: COMMON_ERROR_UNSUPPORTED (neither call works),
 * COMMON_ERROR_FAILED. */
ExtentMap *extent_map_load(int fd, GError **error);
ExtentMap *extent_map_load_fibmap(int fd, GError **error); /* needs CAP_SYS_RAWIO */
void extent_map_free(ExtentMap *map);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExtentMap, extent_map_free)

/* Appends to `out` (GArray of Extent) the parts of the map inside [offset, offset + length), in
 * logical order, clipped; holes and extents that are not readable are left out. */
void extent_map_clip(const ExtentMap *map, guint64 offset_bytes, guint64 length_bytes, GArray *out);
