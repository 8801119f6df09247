// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Looking a name up in an ext4 directory as the kernel does, to learn which blocks that reads.
 *
 * Hashed directories (htree): block 0 holds the root of the index behind "." and ".."; each index
 * entry is (hash, block) and covers the hashes from its own to the next one's; a set lowest bit in
 * the next entry's hash means that a collision goes on there. Layouts: kernel fs/ext4/namei.c,
 * struct dx_root, dx_node, dx_entry. A collision that goes on behind the end of an index block is
 * not followed.
 */
#include <string.h>

#include "measure/metadata-internal.h"

#define DX_ROOT_INFO_OFFSET 24 /* behind the entries of "." and ".." */
#define DX_NODE_OFFSET 8       /* behind one empty entry */
#define DX_LEVELS_MAX 3

void
metadata_lookup_free(gpointer data)
{
        MetadataLookup *lookup = data;

        g_array_unref(lookup->dir_blocks);
        g_free(lookup);
}

/* Searches entries of `size` bytes; 0 when the name is not among them. */
static guint32
search_entries(MetadataReader *reader, const guint8 *entries, gsize size, const char *name,
               gsize length)
{
        gsize at = 0;

        while (at + 8 <= size) {
                struct ext2_dir_entry head;
                unsigned int rec_len = 0;
                guint name_length;

                memcpy(&head, entries + at, 8);
                head.inode = ext2fs_le32_to_cpu(head.inode);
                name_length = ext2fs_le16_to_cpu(head.name_len) & 0xff;
                head.rec_len = ext2fs_le16_to_cpu(head.rec_len);
                if (ext2fs_get_rec_len(reader->fs, &head, &rec_len) || rec_len < 8 ||
                    rec_len % 4 != 0 || rec_len > size - at)
                        return 0;
                if (head.inode && name_length == length && 8 + length <= rec_len &&
                    memcmp(entries + at + 8, name, length) == 0)
                        return head.inode;
                at += rec_len;
        }
        return 0;
}

/* Reads logical block `logical` of the directory into the scratch block and notes it as read. */
static gboolean
read_dir_block(MetadataReader *reader, guint32 dir, struct ext2_inode *inode, guint64 logical,
               MetadataLookup *lookup)
{
        guint64 physical = metadata_bmap(reader, dir, inode, logical);

        if (!physical || !metadata_read_block(reader, physical, reader->block))
                return FALSE;
        g_array_append_val(lookup->dir_blocks, logical);
        return TRUE;
}

static void
lookup_linear(MetadataReader *reader, guint32 dir, struct ext2_inode *inode, const char *name,
              MetadataLookup *lookup)
{
        guint64 blocks = MIN(metadata_blocks_of(reader, inode), METADATA_DIR_BLOCKS_MAX);

        g_array_set_size(lookup->dir_blocks, 0);
        for (guint64 i = 0; i < blocks && !lookup->inode; i++)
                if (read_dir_block(reader, dir, inode, i, lookup))
                        lookup->inode = search_entries(reader, reader->block, reader->fs->blocksize,
                                                       name, strlen(name));
}

/* One index block: the entry that covers the hash. */
typedef struct {
        guint64 block;     /* logical block it points to */
        guint next, count; /* the entry behind it */
        gsize offset;      /* of the entries in the block */
} DxStep;

static gboolean
dx_entry(const guint8 *block, gsize offset, guint i, guint32 *ret_hash, guint32 *ret_block)
{
        struct ext2_dx_entry entry;

        memcpy(&entry, block + offset + i * sizeof entry, sizeof entry);
        *ret_hash = ext2fs_le32_to_cpu(entry.hash);
        *ret_block = ext2fs_le32_to_cpu(entry.block) & EXT4_DX_BLOCK_MASK;
        return TRUE;
}

static gboolean
dx_search(MetadataReader *reader, gsize offset, guint32 hash, DxStep *ret)
{
        struct ext2_dx_countlimit limits;
        guint32 entry_hash, entry_block;
        guint count, low, high;

        memcpy(&limits, reader->block + offset, sizeof limits);
        count = ext2fs_le16_to_cpu(limits.count);
        if (count == 0 || count > ext2fs_le16_to_cpu(limits.limit) ||
            offset + count * sizeof(struct ext2_dx_entry) > reader->fs->blocksize)
                return FALSE;
        /* Entry 0's hash field holds the counts: it covers everything below entry 1. */
        low = 0;
        high = count;
        while (high - low > 1) {
                guint middle = low + (high - low) / 2;

                dx_entry(reader->block, offset, middle, &entry_hash, &entry_block);
                if (entry_hash <= hash)
                        low = middle;
                else
                        high = middle;
        }
        dx_entry(reader->block, offset, low, &entry_hash, &entry_block);
        *ret = (DxStep){.block = entry_block, .next = low + 1, .count = count, .offset = offset};
        return TRUE;
}

/* FALSE when the index cannot be followed: the caller reads the directory linearly, as the kernel
 * does. */
static gboolean
lookup_hashed(MetadataReader *reader, guint32 dir, struct ext2_inode *inode, const char *name,
              MetadataLookup *lookup)
{
        struct ext2_super_block *super = reader->fs->super;
        g_autofree guint8 *index = NULL;
        struct ext2_dx_root_info info;
        ext2_dirhash_t hash, minor_hash;
        guint64 index_block = 0;
        int version;
        DxStep step;

        if (!read_dir_block(reader, dir, inode, 0, lookup))
                return FALSE;
        memcpy(&info, reader->block + DX_ROOT_INFO_OFFSET, sizeof info);
        version = info.hash_version;
        if (version > EXT2_HASH_TEA || info.indirect_levels > DX_LEVELS_MAX ||
            info.info_length < sizeof info)
                return FALSE;
        if (super->s_flags & EXT2_FLAGS_UNSIGNED_HASH)
                version += EXT2_HASH_LEGACY_UNSIGNED;
        if (ext2fs_dirhash2(version, name, (int)strlen(name), reader->fs->encoding,
                            (int)(inode->i_flags & EXT4_CASEFOLD_FL), super->s_hash_seed, &hash,
                            &minor_hash))
                return FALSE;
        if (!dx_search(reader, DX_ROOT_INFO_OFFSET + info.info_length, hash, &step))
                return FALSE;
        for (guint level = 0; level < info.indirect_levels; level++) {
                index_block = step.block;
                if (!read_dir_block(reader, dir, inode, index_block, lookup) ||
                    !dx_search(reader, DX_NODE_OFFSET, hash, &step))
                        return FALSE;
        }
        index = g_memdup2(reader->block, reader->fs->blocksize);
        for (;;) {
                guint32 next_hash, next_block;

                if (!read_dir_block(reader, dir, inode, step.block, lookup))
                        return FALSE;
                lookup->inode = search_entries(reader, reader->block, reader->fs->blocksize, name,
                                               strlen(name));
                if (lookup->inode || step.next >= step.count)
                        return TRUE;
                dx_entry(index, step.offset, step.next, &next_hash, &next_block);
                if (!(next_hash & 1) || (next_hash & ~1U) != (hash & ~1U))
                        return TRUE;
                step.block = next_block;
                step.next++;
        }
}

/* Small directories in the inode itself: four bytes of parent, then entries; more of them in the
 * attribute space. No directory block is read. */
static void
lookup_inline(MetadataReader *reader, guint32 dir, struct ext2_inode *inode, const char *name,
              MetadataLookup *lookup)
{
        g_autofree guint8 *data = NULL;
        const gsize first = sizeof inode->i_block;
        size_t size = 0;

        if (ext2fs_inline_data_size(reader->fs, dir, &size) || size < first || size > 65536)
                return;
        data = g_malloc0(size);
        if (ext2fs_inline_data_get(reader->fs, dir, inode, data, &size))
                return;
        lookup->inode = search_entries(reader, data + 4, first - 4, name, strlen(name));
        if (!lookup->inode && size > first)
                lookup->inode =
                        search_entries(reader, data + first, size - first, name, strlen(name));
}

const MetadataLookup *
metadata_lookup(MetadataReader *reader, guint32 dir, const char *name)
{
        g_autofree gchar *key = g_strdup_printf("%u/%s", dir, name);
        MetadataLookup *lookup = g_hash_table_lookup(reader->lookups, key);
        struct ext2_inode inode;

        if (lookup)
                return lookup;
        lookup = g_new0(MetadataLookup, 1);
        lookup->dir_blocks = g_array_new(FALSE, FALSE, sizeof(guint64));
        if (strlen(name) <= EXT2_NAME_LEN && metadata_read_inode(reader, dir, &inode) &&
            inode.i_links_count > 0 && LINUX_S_ISDIR(inode.i_mode)) {
                if (inode.i_flags & EXT4_INLINE_DATA_FL)
                        lookup_inline(reader, dir, &inode, name, lookup);
                else if (!(inode.i_flags & EXT2_INDEX_FL) ||
                         !ext2fs_has_feature_dir_index(reader->fs->super) ||
                         !lookup_hashed(reader, dir, &inode, name, lookup))
                        lookup_linear(reader, dir, &inode, name, lookup);
        }
        if (lookup->inode > reader->fs->super->s_inodes_count)
                lookup->inode = 0;
        g_hash_table_insert(reader->lookups, g_steal_pointer(&key), lookup);
        return lookup;
}
