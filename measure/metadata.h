// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Metadata of ext2/3/4 as objects, through libext2fs opened read-only on the block device (also
 * while mounted: what it says may be a moment old, which costs a wasted read and no harm).
 * Object -> block, block -> object, and the objects that a set of files needs.
 *
 * Block-mapped files (no extents) count too: their indirect blocks are "extent nodes", numbered in
 * the same depth-first order (indirect, double indirect and what is below it, triple indirect). A
 * reader keeps what it has looked up: open a new one after the layout changed.
 */
#pragma once

#include <glib.h>
#include <sys/types.h>

#include "common/profile.h"

typedef struct MetadataReader MetadataReader;

/* `node` is the device node or an image file. Errors: COMMON_ERROR_UNSUPPORTED (not ext2/3/4, no
 * privilege), COMMON_ERROR_FAILED. Reads of the device go through its page cache (no O_DIRECT), so
 * that what is cached for the mounted file system is seen and is not read again. */
MetadataReader *metadata_reader_open(const char *node, GError **error);
void metadata_reader_free(MetadataReader *reader);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MetadataReader, metadata_reader_free)

guint32 metadata_reader_block_bytes(const MetadataReader *reader);

/* Where the object lies now, in bytes on the device (always one block). FALSE without an error set
 * when it no longer exists (the inode was freed, the tree has fewer nodes). An inode-table block
 * always exists: it stands for all inodes in it. */
gboolean metadata_resolve(MetadataReader *reader, const ProfileMeta *object,
                          guint64 *ret_offset_bytes);

/* Adds to profile->meta, marked PROFILE_META_COMPUTED, what looking up and reading the profile's
 * files on file system `fs` needs: inode-table blocks of the files and of every directory on their
 * paths, the directory blocks the look-up of each name reads (htree root, index and leaf; in a
 * linear directory the blocks up to the name), extent-tree nodes that the used ranges need,
 * symbolic links on the path as seen in the tree. Objects already there get the flag added; two
 * inodes in one inode-table block are one object (the first stays). Objects of a file get its first
 * use. */
gboolean metadata_compute(MetadataReader *reader, Profile *profile, guint32 fs, GError **error);

typedef struct {
        guint64 block;
        guint64 first_use_us;
} MetadataSeen;

/* Turns block numbers whose reads were seen into objects, marked PROFILE_META_SEEN: inode-table
 * blocks and bitmaps by arithmetic, directory blocks, extent nodes, xattr and symlink blocks by
 * looking at the inodes the profile knows, the directories on their paths and the inodes of the
 * inode-table blocks seen. Superblock, group descriptors and journal are left out. Returns the
 * number of blocks that no object was found for. `seen` holds MetadataSeen. */
guint metadata_identify(MetadataReader *reader, Profile *profile, guint32 fs, const GArray *seen);
