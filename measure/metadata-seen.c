// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From block numbers whose reads were seen to objects.
 *
 * Inode tables and bitmaps are found by arithmetic. Everything else belongs to an inode, and there
 * is no way back from a block to its inode in ext4; so the inodes that can have caused the reads
 * are looked through: those of the profile, the directories on their paths, then those in the
 * inode-table blocks that were read (nothing else could have been used before its inode was read).
 */
#include <stdlib.h>
#include <string.h>

#include "measure/metadata-internal.h"

typedef struct {
        MetadataSet set;
        GHashTable *open;     /* guint64 * block -> guint64 * first use: no object found yet */
        GHashTable *visited;  /* inode numbers looked through */
        GArray *tables;       /* Table, sorted by first block */
        GArray *table_blocks; /* guint64: inode-table blocks seen */
} Search;

typedef struct {
        guint64 first; /* block */
        guint32 group;
} Table;

static gint
compare_tables(gconstpointer a, gconstpointer b)
{
        const Table *x = a, *y = b;

        return x->first < y->first ? -1 : x->first > y->first;
}

static gboolean
take(Search *search, guint64 block, guint64 *ret_first_use_us)
{
        guint64 *first_use = g_hash_table_lookup(search->open, &block);

        if (!first_use)
                return FALSE;
        *ret_first_use_us = *first_use;
        g_hash_table_remove(search->open, &block);
        return TRUE;
}

static void
match(Search *search, guint64 block, ProfileMetaKind kind, guint64 inode, guint64 index)
{
        guint64 first_use_us;

        if (take(search, block, &first_use_us))
                metadata_set_add(&search->set, kind, inode, index, PROFILE_META_SEEN, first_use_us);
}

/* Directory and slow symlink blocks, attribute block and tree nodes of one inode. */
static void
look_through(Search *search, guint32 ino)
{
        MetadataReader *reader = search->set.reader;
        struct ext2_inode inode;
        const GArray *nodes;

        if (g_hash_table_size(search->open) == 0 ||
            !g_hash_table_add(search->visited, GUINT_TO_POINTER(ino)))
                return;
        if (!metadata_read_inode(reader, ino, &inode) || inode.i_links_count == 0)
                return;
        if (ext2fs_file_acl_block(reader->fs, &inode))
                match(search, ext2fs_file_acl_block(reader->fs, &inode), PROFILE_META_XATTR_BLOCK,
                      ino, 0);
        if (LINUX_S_ISDIR(inode.i_mode) && !(inode.i_flags & EXT4_INLINE_DATA_FL)) {
                guint64 blocks = MIN(metadata_blocks_of(reader, &inode), METADATA_DIR_BLOCKS_MAX);

                for (guint64 i = 0; i < blocks; i++)
                        match(search, metadata_bmap(reader, ino, &inode, i), PROFILE_META_DIR_BLOCK,
                              ino, i);
        } else if (LINUX_S_ISLNK(inode.i_mode) && !ext2fs_is_fast_symlink(&inode)) {
                match(search, metadata_bmap(reader, ino, &inode, 0), PROFILE_META_SYMLINK_BLOCK,
                      ino, 0);
        }
        nodes = metadata_tree(reader, ino, &inode);
        for (guint i = 0; i < nodes->len; i++)
                match(search, g_array_index(nodes, MetadataNode, i).block, PROFILE_META_EXTENT_NODE,
                      ino, i);
}

static void
look_through_path(Search *search, const char *path)
{
        g_auto(GStrv) parts = g_strsplit(path, "/", -1);
        guint32 current = EXT2_ROOT_INO;

        look_through(search, current);
        for (guint i = 0; parts[i] && current; i++) {
                if (*parts[i] == '\0')
                        continue;
                current = metadata_lookup(search->set.reader, current, parts[i])->inode;
                if (current)
                        look_through(search, current);
        }
}

/* Takes out the superblocks, group descriptors (also those kept for growth) and the journal. */
static gboolean
is_left_out(MetadataReader *reader, guint64 block)
{
        const struct ext2_super_block *super = reader->fs->super;
        dgrp_t group = ext2fs_group_of_blk2(reader->fs, block);
        blk64_t super_block = 0, old_desc = 0, new_desc = 0;
        guint64 old_blocks = reader->fs->desc_blocks + super->s_reserved_gdt_blocks;

        if (group >= reader->fs->group_desc_count)
                return TRUE;
        /* Block 0 holds the superblock when blocks are larger than 1 KiB, and is no answer then. */
        ext2fs_super_and_bgd_loc2(reader->fs, group, &super_block, &old_desc, &new_desc, NULL);
        return (ext2fs_bg_has_super(reader->fs, group) && block == super_block) ||
               (old_desc && block >= old_desc && block < old_desc + old_blocks) ||
               (new_desc && block == new_desc);
}

static void
leave_out_journal(Search *search)
{
        MetadataReader *reader = search->set.reader;
        guint32 ino = reader->fs->super->s_journal_inum;
        struct ext2_inode inode;
        guint64 blocks, ignored;

        if (!ino || g_hash_table_size(search->open) == 0 ||
            !metadata_read_inode(reader, ino, &inode))
                return;
        blocks = MIN(metadata_blocks_of(reader, &inode), METADATA_DIR_BLOCKS_MAX);
        for (guint64 i = 0; i < blocks; i++)
                take(search, metadata_bmap(reader, ino, &inode, i), &ignored);
}

/* The inode table that begins last at or before the block. */
static const Table *
find_table(const Search *search, guint64 block)
{
        guint low = 0, high = search->tables->len;

        while (high - low > 1) {
                guint middle = low + (high - low) / 2;

                if (g_array_index(search->tables, Table, middle).first <= block)
                        low = middle;
                else
                        high = middle;
        }
        return &g_array_index(search->tables, Table, low);
}

static void
match_arithmetic(Search *search)
{
        MetadataReader *reader = search->set.reader;
        g_autofree gpointer *blocks = NULL;
        guint n;

        for (guint32 group = 0; group < reader->fs->group_desc_count; group++) {
                Table table = {ext2fs_inode_table_loc(reader->fs, group), group};
                guint64 block_bitmap = ext2fs_block_bitmap_loc(reader->fs, group);
                guint64 inode_bitmap = ext2fs_inode_bitmap_loc(reader->fs, group);

                g_array_append_val(search->tables, table);
                match(search, block_bitmap, PROFILE_META_BLOCK_BITMAP, 0, group);
                match(search, inode_bitmap, PROFILE_META_INODE_BITMAP, 0, group);
        }
        g_array_sort(search->tables, compare_tables);
        blocks = g_hash_table_get_keys_as_array(search->open, &n);
        for (guint i = 0; i < n; i++) {
                guint64 block = *(guint64 *)blocks[i], first_use_us;
                const Table *table;
                guint64 ino;

                if (is_left_out(reader, block)) {
                        take(search, block, &first_use_us);
                        continue;
                }
                table = find_table(search, block);
                if (block < table->first ||
                    block - table->first >= reader->fs->inode_blocks_per_group)
                        continue;
                ino = (guint64)table->group * reader->fs->super->s_inodes_per_group +
                      (block - table->first) * EXT2_INODES_PER_BLOCK(reader->fs->super) + 1;
                g_array_append_val(search->table_blocks, block);
                match(search, block, PROFILE_META_INODE, ino, 0);
        }
}

static void
match_profile(Search *search)
{
        const Profile *profile = search->set.profile;

        for (guint i = 0; i < profile->files->len; i++) {
                const ProfileFile *file = &g_array_index(profile->files, ProfileFile, i);

                if (file->fs == search->set.fs && g_hash_table_size(search->open) > 0)
                        look_through_path(search, file->path);
        }
        for (guint i = 0; i < profile->files->len; i++) {
                const ProfileFile *file = &g_array_index(profile->files, ProfileFile, i);

                if (file->fs == search->set.fs && file->inode <= G_MAXUINT32)
                        look_through(search, (guint32)file->inode);
        }
}

static void
match_table_blocks(Search *search)
{
        MetadataReader *reader = search->set.reader;
        guint per_block = EXT2_INODES_PER_BLOCK(reader->fs->super);

        for (guint i = 0; i < search->table_blocks->len; i++) {
                guint64 block = g_array_index(search->table_blocks, guint64, i);
                const Table *table;
                guint64 first;

                if (g_hash_table_size(search->open) == 0)
                        return;
                table = find_table(search, block);
                first = (guint64)table->group * reader->fs->super->s_inodes_per_group +
                        (block - table->first) * per_block + 1;
                for (guint k = 0; k < per_block; k++)
                        if (first + k >= EXT2_FIRST_INODE(reader->fs->super) ||
                            first + k == EXT2_ROOT_INO)
                                look_through(search, (guint32)(first + k));
        }
}

guint
metadata_identify(MetadataReader *reader, Profile *profile, guint32 fs, const GArray *seen)
{
        Search search = {0};
        guint left;

        metadata_set_init(&search.set, reader, profile, fs);
        search.open = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
        search.visited = g_hash_table_new(NULL, NULL);
        search.tables = g_array_new(FALSE, FALSE, sizeof(Table));
        search.table_blocks = g_array_new(FALSE, FALSE, sizeof(guint64));
        for (guint i = 0; i < seen->len; i++) {
                const MetadataSeen *one = &g_array_index(seen, MetadataSeen, i);
                guint64 *there = g_hash_table_lookup(search.open, &one->block);

                if (one->block >= ext2fs_blocks_count(reader->fs->super))
                        continue;
                if (there)
                        *there = MIN(*there, one->first_use_us);
                else
                        g_hash_table_insert(
                                search.open, g_memdup2(&one->block, sizeof one->block),
                                g_memdup2(&one->first_use_us, sizeof one->first_use_us));
        }
        match_arithmetic(&search);
        match_profile(&search);
        match_table_blocks(&search);
        leave_out_journal(&search);
        left = g_hash_table_size(search.open);

        g_array_unref(search.table_blocks);
        g_array_unref(search.tables);
        g_hash_table_unref(search.visited);
        g_hash_table_unref(search.open);
        metadata_set_clear(&search.set);
        return left;
}
