// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The metadata reader: opening, inodes, trees, and from an object to its place.
 *
 * Nothing is ever written and no bitmap is read. Checksums are not enforced: on a mounted file
 * system a block may be caught between two changes, and the worst that follows is one wasted read.
 */
#include "measure/metadata.h"

#include <errno.h>
#include <string.h>

#include "common/error.h"
#include "common/quote.h"
#include "measure/metadata-internal.h"

static const char *
ext2_message(errcode_t code)
{
        /* error_message() knows errno values too, once the table is loaded. */
        return error_message(code);
}

MetadataReader *
metadata_reader_open(const char *node, GError **error)
{
        g_autofree gchar *quoted = path_quote(node);
        MetadataReader *reader;
        ext2_filsys fs = NULL;
        errcode_t code;

        initialize_ext2_error_table();
        code = ext2fs_open(node,
                           EXT2_FLAG_64BITS | EXT2_FLAG_SOFTSUPP_FEATURES | EXT2_FLAG_SKIP_MMP |
                                   EXT2_FLAG_IGNORE_CSUM_ERRORS | EXT2_FLAG_IGNORE_SB_ERRORS,
                           0, 0, unix_io_manager, &fs);
        if (code) {
                CommonError kind = COMMON_ERROR_FAILED;
                const char *hint = "";

                if (code == EXT2_ET_BAD_MAGIC || code == EXT2_ET_SHORT_READ)
                        code = EXT2_ET_BAD_MAGIC, kind = COMMON_ERROR_UNSUPPORTED;
                if (code == EXT2_ET_UNSUPP_FEATURE || code == EXT2_ET_RO_UNSUPP_FEATURE)
                        kind = COMMON_ERROR_UNSUPPORTED;
                if (code == EACCES || code == EPERM) {
                        kind = COMMON_ERROR_UNSUPPORTED;
                        hint = geteuid() == 0 ? "; not even root may read it here (a container's "
                                                "or sandbox's "
                                                "device policy)"
                                              : "; reading a device needs root";
                }
                g_set_error(error, COMMON_ERROR, kind, "%s %s as ext2/3/4: %s%s", "reading", quoted,
                            code == EXT2_ET_BAD_MAGIC ? "it holds no such file system"
                                                      : ext2_message(code),
                            hint);
                return NULL;
        }
        reader = g_new0(MetadataReader, 1);
        reader->fs = fs;
        reader->node = g_strdup(node);
        reader->block = g_malloc(fs->blocksize);
        reader->trees = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free,
                                              (GDestroyNotify)g_array_unref);
        reader->lookups =
                g_hash_table_new_full(g_str_hash, g_str_equal, g_free, metadata_lookup_free);
        return reader;
}

void
metadata_reader_free(MetadataReader *reader)
{
        if (!reader)
                return;
        g_hash_table_unref(reader->trees);
        g_hash_table_unref(reader->lookups);
        ext2fs_free(reader->fs); /* not ext2fs_close(): that would flush */
        g_free(reader->block);
        g_free(reader->node);
        g_free(reader);
}

guint32
metadata_reader_block_bytes(const MetadataReader *reader)
{
        return reader->fs->blocksize;
}

gboolean
metadata_valid_block(MetadataReader *reader, guint64 block)
{
        return block >= reader->fs->super->s_first_data_block && block > 0 &&
               block < ext2fs_blocks_count(reader->fs->super);
}

gboolean
metadata_read_block(MetadataReader *reader, guint64 block, void *buffer)
{
        return metadata_valid_block(reader, block) &&
               io_channel_read_blk64(reader->fs->io, block, 1, buffer) == 0;
}

gboolean
metadata_read_inode(MetadataReader *reader, guint32 ino, struct ext2_inode *ret)
{
        if (ino == 0 || ino > reader->fs->super->s_inodes_count)
                return FALSE;
        return ext2fs_read_inode(reader->fs, ino, ret) == 0;
}

guint64
metadata_inode_block(MetadataReader *reader, guint32 ino)
{
        const struct ext2_super_block *super = reader->fs->super;
        guint32 group = (ino - 1) / super->s_inodes_per_group;
        guint64 offset = (guint64)((ino - 1) % super->s_inodes_per_group) * EXT2_INODE_SIZE(super);

        return ext2fs_inode_table_loc(reader->fs, group) + offset / reader->fs->blocksize;
}

guint64
metadata_bmap(MetadataReader *reader, guint32 ino, struct ext2_inode *inode, guint64 logical)
{
        blk64_t physical = 0;

        if ((inode->i_flags & EXT4_INLINE_DATA_FL) || ext2fs_is_fast_symlink(inode))
                return 0;
        if (ext2fs_bmap2(reader->fs, ino, inode, NULL, 0, logical, NULL, &physical))
                return 0;
        return metadata_valid_block(reader, physical) ? physical : 0;
}

guint64
metadata_blocks_of(MetadataReader *reader, const struct ext2_inode *inode)
{
        return (EXT2_I_SIZE(inode) + reader->fs->blocksize - 1) / reader->fs->blocksize;
}

/* Adds the children of an index node (`raw`, `size` bytes: a block or the inode's own 60) and what
 * lies below them. Leaves are listed, not read. */
static void
add_extent_nodes(MetadataReader *reader, GArray *nodes, const guint8 *raw, gsize size, guint64 end,
                 guint depth_max)
{
        struct ext3_extent_header header;
        struct ext3_extent_idx index;
        guint entries, depth;

        memcpy(&header, raw, sizeof header);
        entries = ext2fs_le16_to_cpu(header.eh_entries);
        depth = ext2fs_le16_to_cpu(header.eh_depth);
        if (ext2fs_le16_to_cpu(header.eh_magic) != EXT3_EXT_MAGIC || depth == 0 ||
            depth > depth_max)
                return;
        entries = MIN(entries, (size - sizeof header) / sizeof index);
        for (guint i = 0; i < entries && nodes->len < METADATA_TREE_NODES_MAX; i++) {
                MetadataNode node = {.end = end};

                memcpy(&index, raw + sizeof header + i * sizeof index, sizeof index);
                node.block = ((guint64)ext2fs_le16_to_cpu(index.ei_leaf_hi) << 32) |
                             ext2fs_le32_to_cpu(index.ei_leaf);
                node.first = ext2fs_le32_to_cpu(index.ei_block);
                if (i + 1 < entries) {
                        memcpy(&index, raw + sizeof header + (i + 1) * sizeof index, sizeof index);
                        node.end = ext2fs_le32_to_cpu(index.ei_block);
                }
                if (!metadata_valid_block(reader, node.block))
                        continue;
                g_array_append_val(nodes, node);
                if (depth > 1) {
                        g_autofree guint8 *below = g_malloc(reader->fs->blocksize);

                        if (metadata_read_block(reader, node.block, below))
                                add_extent_nodes(reader, nodes, below, reader->fs->blocksize,
                                                 node.end, depth - 1);
                }
        }
}

/* The same for block-mapped files: an indirect block of `level` 1 (its entries are data) to 3. */
static void
add_indirect_nodes(MetadataReader *reader, GArray *nodes, guint64 block, guint level, guint64 first,
                   guint64 blocks)
{
        const guint64 per_block = reader->fs->blocksize / 4;
        MetadataNode node = {.block = block, .first = first};
        g_autofree guint32 *entries = NULL;
        guint64 covers = per_block;

        for (guint i = 1; i < level; i++)
                covers *= per_block;
        node.end = first + covers;
        if (first >= blocks || !metadata_valid_block(reader, block) ||
            nodes->len >= METADATA_TREE_NODES_MAX)
                return;
        g_array_append_val(nodes, node);
        if (level == 1)
                return;
        entries = g_malloc(reader->fs->blocksize);
        if (!metadata_read_block(reader, block, entries))
                return;
        for (guint64 i = 0; i < per_block; i++)
                add_indirect_nodes(reader, nodes, ext2fs_le32_to_cpu(entries[i]), level - 1,
                                   first + i * (covers / per_block), blocks);
}

const GArray *
metadata_tree(MetadataReader *reader, guint32 ino, const struct ext2_inode *inode)
{
        const guint64 per_block = reader->fs->blocksize / 4;
        guint64 key = ino;
        GArray *nodes = g_hash_table_lookup(reader->trees, &key);
        guint64 blocks;

        if (nodes)
                return nodes;
        nodes = g_array_new(FALSE, FALSE, sizeof(MetadataNode));
        g_hash_table_insert(reader->trees, g_memdup2(&key, sizeof key), nodes);
        if (inode->i_links_count == 0 || (inode->i_flags & EXT4_INLINE_DATA_FL) ||
            !(LINUX_S_ISREG(inode->i_mode) || LINUX_S_ISDIR(inode->i_mode)))
                return nodes;
        blocks = metadata_blocks_of(reader, inode);
        if (inode->i_flags & EXT4_EXTENTS_FL) {
                add_extent_nodes(reader, nodes, (const guint8 *)inode->i_block,
                                 sizeof inode->i_block, G_MAXUINT32, METADATA_TREE_DEPTH_MAX);
                return nodes;
        }
        add_indirect_nodes(reader, nodes, inode->i_block[EXT2_IND_BLOCK], 1, EXT2_NDIR_BLOCKS,
                           blocks);
        add_indirect_nodes(reader, nodes, inode->i_block[EXT2_DIND_BLOCK], 2,
                           EXT2_NDIR_BLOCKS + per_block, blocks);
        add_indirect_nodes(reader, nodes, inode->i_block[EXT2_TIND_BLOCK], 3,
                           EXT2_NDIR_BLOCKS + per_block + per_block * per_block, blocks);
        return nodes;
}

static guint64
resolve_block(MetadataReader *reader, const ProfileMeta *object)
{
        const struct ext2_super_block *super = reader->fs->super;
        guint32 ino = (guint32)object->inode;
        struct ext2_inode inode;
        const GArray *nodes;

        if (object->kind == PROFILE_META_BLOCK_BITMAP ||
            object->kind == PROFILE_META_INODE_BITMAP) {
                if (object->index >= reader->fs->group_desc_count)
                        return 0;
                return object->kind == PROFILE_META_BLOCK_BITMAP
                               ? ext2fs_block_bitmap_loc(reader->fs, (dgrp_t)object->index)
                               : ext2fs_inode_bitmap_loc(reader->fs, (dgrp_t)object->index);
        }
        if (object->inode == 0 || object->inode > super->s_inodes_count)
                return 0;
        if (object->kind == PROFILE_META_INODE)
                return metadata_inode_block(reader, ino);
        if (!metadata_read_inode(reader, ino, &inode) || inode.i_links_count == 0)
                return 0;
        switch ((ProfileMetaKind)object->kind) {
        case PROFILE_META_DIR_BLOCK:
                return LINUX_S_ISDIR(inode.i_mode)
                               ? metadata_bmap(reader, ino, &inode, object->index)
                               : 0;
        case PROFILE_META_SYMLINK_BLOCK:
                return LINUX_S_ISLNK(inode.i_mode)
                               ? metadata_bmap(reader, ino, &inode, object->index)
                               : 0;
        case PROFILE_META_XATTR_BLOCK: return ext2fs_file_acl_block(reader->fs, &inode);
        case PROFILE_META_EXTENT_NODE:
                nodes = metadata_tree(reader, ino, &inode);
                return object->index < nodes->len
                               ? g_array_index(nodes, MetadataNode, object->index).block
                               : 0;
        default: return 0;
        }
}

gboolean
metadata_resolve(MetadataReader *reader, const ProfileMeta *object, guint64 *ret_offset_bytes)
{
        guint64 block = resolve_block(reader, object);

        if (!metadata_valid_block(reader, block))
                return FALSE;
        *ret_offset_bytes = block * reader->fs->blocksize;
        return TRUE;
}

typedef struct {
        guint64 kind, inode, index;
} SetKey;

static guint
set_key_hash(gconstpointer data)
{
        const SetKey *key = data;
        guint64 mix = key->inode * 0x9e3779b97f4a7c15ULL + key->index * 31 + key->kind;

        return (guint)(mix ^ (mix >> 32));
}

static gboolean
set_key_equal(gconstpointer a, gconstpointer b)
{
        return memcmp(a, b, sizeof(SetKey)) == 0;
}

static SetKey
set_key(MetadataReader *reader, ProfileMetaKind kind, guint64 inode, guint64 index)
{
        SetKey key = {.kind = kind, .inode = inode, .index = index};

        if (kind == PROFILE_META_INODE && inode > 0 && inode <= reader->fs->super->s_inodes_count)
                key.inode = metadata_inode_block(reader, (guint32)inode);
        return key;
}

void
metadata_set_init(MetadataSet *set, MetadataReader *reader, Profile *profile, guint32 fs)
{
        *set = (MetadataSet){.reader = reader, .profile = profile, .fs = fs};
        set->index = g_hash_table_new_full(set_key_hash, set_key_equal, g_free, NULL);
        for (guint i = 0; i < profile->meta->len; i++) {
                const ProfileMeta *meta = &g_array_index(profile->meta, ProfileMeta, i);
                SetKey key;

                if (meta->fs != fs)
                        continue;
                key = set_key(reader, meta->kind, meta->inode, meta->index);
                if (!g_hash_table_contains(set->index, &key))
                        g_hash_table_insert(set->index, g_memdup2(&key, sizeof key),
                                            GUINT_TO_POINTER(i + 1));
        }
}

void
metadata_set_clear(MetadataSet *set)
{
        g_clear_pointer(&set->index, g_hash_table_unref);
}

void
metadata_set_add(MetadataSet *set, ProfileMetaKind kind, guint64 inode, guint64 index, guint flags,
                 guint64 first_use_us)
{
        SetKey key = set_key(set->reader, kind, inode, index);
        guint at = GPOINTER_TO_UINT(g_hash_table_lookup(set->index, &key));
        ProfileMeta meta = {
                .fs = set->fs,
                .kind = (guint16)kind,
                .flags = (guint16)flags,
                .inode = inode,
                .index = index,
                .first_use_us = first_use_us,
        };

        if (at > 0) {
                ProfileMeta *there = &g_array_index(set->profile->meta, ProfileMeta, at - 1);

                there->flags |= (guint16)flags;
                there->first_use_us = MIN(there->first_use_us, first_use_us);
                return;
        }
        g_array_append_val(set->profile->meta, meta);
        g_hash_table_insert(set->index, g_memdup2(&key, sizeof key),
                            GUINT_TO_POINTER(set->profile->meta->len));
}
