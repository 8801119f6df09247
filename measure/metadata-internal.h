// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the files of the metadata reader share: inodes, trees, directory look-ups and the set of
 * objects of one file system in a profile. Everything read is checked against the file system's
 * size; all of it may be damaged or change while it is read.
 */
#pragma once

#include <ext2fs/ext2fs.h>

#include "measure/metadata.h"

#define METADATA_TREE_DEPTH_MAX 5 /* ext4's own limit */
#define METADATA_TREE_NODES_MAX 1000000
/* Of a linear directory, or of one directory listed whole. */
#define METADATA_DIR_BLOCKS_MAX (1U << 20)

struct MetadataReader {
        ext2_filsys fs;
        gchar *node;
        GHashTable *trees;   /* guint64 * inode -> GArray of MetadataNode */
        GHashTable *lookups; /* gchar * "DIR/NAME" -> MetadataLookup * */
        guint8 *block;       /* scratch of one block, for directory blocks */
};

/* A node of an extent tree or an indirect block, in depth-first order. */
typedef struct {
        guint64 block;
        guint64 first, end; /* logical blocks it covers, [first, end) */
} MetadataNode;

typedef struct {
        guint32 inode;      /* what the name leads to, 0 when it is not there */
        GArray *dir_blocks; /* guint64, logical blocks of the directory that the look-up reads */
} MetadataLookup;

/* FALSE when the number is out of range or cannot be read; a free inode has i_links_count 0. */
gboolean metadata_read_inode(MetadataReader *reader, guint32 ino, struct ext2_inode *ret);
gboolean metadata_read_block(MetadataReader *reader, guint64 block, void *buffer);
gboolean metadata_valid_block(MetadataReader *reader, guint64 block);
/* The block of the inode table that holds the inode; the number must be in range. */
guint64 metadata_inode_block(MetadataReader *reader, guint32 ino);
/* Physical block of a logical one, 0 for a hole. */
guint64 metadata_bmap(MetadataReader *reader, guint32 ino, struct ext2_inode *inode,
                      guint64 logical);
/* Cached; owned by the reader; empty when the map fits into the inode. */
const GArray *metadata_tree(MetadataReader *reader, guint32 ino, const struct ext2_inode *inode);
/* Cached; owned by the reader. */
const MetadataLookup *metadata_lookup(MetadataReader *reader, guint32 dir, const char *name);
void metadata_lookup_free(gpointer lookup);
guint64 metadata_blocks_of(MetadataReader *reader, const struct ext2_inode *inode);

/* The objects of one file system that a profile has. Two inodes in one table block are one object.
 */
typedef struct {
        MetadataReader *reader;
        Profile *profile;
        guint32 fs;
        GHashTable *index; /* key -> position in profile->meta, plus 1 */
} MetadataSet;

void metadata_set_init(MetadataSet *set, MetadataReader *reader, Profile *profile, guint32 fs);
void metadata_set_clear(MetadataSet *set);
/* Adds the object or adds the flag to the one there; the earlier first use stays. */
void metadata_set_add(MetadataSet *set, ProfileMetaKind kind, guint64 inode, guint64 index,
                      guint flags, guint64 first_use_us);
