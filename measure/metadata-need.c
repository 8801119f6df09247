// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which metadata a set of files needs: the walk of each path from the root inode, and the nodes of
 * each file's tree that its used ranges go through.
 */
#include <string.h>

#include "measure/metadata-internal.h"

#define SYMLINKS_MAX 40 /* on one path, as the kernel's limit */

static void
add_inode(MetadataSet *set, guint32 ino, const struct ext2_inode *inode, guint64 first_use_us)
{
        metadata_set_add(set, PROFILE_META_INODE, ino, 0, PROFILE_META_COMPUTED, first_use_us);
        /* ACLs and security labels that do not fit into the inode are read with it. */
        if (ext2fs_file_acl_block(set->reader->fs, inode))
                metadata_set_add(set, PROFILE_META_XATTR_BLOCK, ino, 0, PROFILE_META_COMPUTED,
                                 first_use_us);
}

static void
add_nodes(MetadataSet *set, guint32 ino, const struct ext2_inode *inode, guint64 first, guint64 end,
          guint64 first_use_us)
{
        const GArray *nodes = metadata_tree(set->reader, ino, inode);

        for (guint i = 0; i < nodes->len; i++) {
                const MetadataNode *node = &g_array_index(nodes, MetadataNode, i);

                if (node->first < end && node->end > first)
                        metadata_set_add(set, PROFILE_META_EXTENT_NODE, ino, i,
                                         PROFILE_META_COMPUTED, first_use_us);
        }
}

/* The target of a symbolic link; its block, when it has one, is added. */
static gchar *
read_symlink(MetadataSet *set, guint32 ino, struct ext2_inode *inode, guint64 first_use_us)
{
        MetadataReader *reader = set->reader;
        guint64 length = EXT2_I_SIZE(inode);

        if (length == 0 || length >= reader->fs->blocksize || (inode->i_flags & EXT4_ENCRYPT_FL))
                return NULL;
        if (inode->i_flags & EXT4_INLINE_DATA_FL) {
                g_autofree gchar *data = NULL;
                size_t size = 0;

                if (ext2fs_inline_data_size(reader->fs, ino, &size) || size < length)
                        return NULL;
                data = g_malloc0(size + 1);
                if (ext2fs_inline_data_get(reader->fs, ino, inode, data, &size))
                        return NULL;
                return g_strndup(data, length);
        }
        if (ext2fs_is_fast_symlink(inode))
                return length < sizeof inode->i_block
                               ? g_strndup((const char *)inode->i_block, length)
                               : NULL;
        {
                guint64 block = metadata_bmap(reader, ino, inode, 0);

                if (!block || !metadata_read_block(reader, block, reader->block))
                        return NULL;
                metadata_set_add(set, PROFILE_META_SYMLINK_BLOCK, ino, 0, PROFILE_META_COMPUTED,
                                 first_use_us);
                return g_strndup((const char *)reader->block, length);
        }
}

/* Adds what looking up `path` reads and returns the inode, 0 when the path leads nowhere here.
 * Absolute link targets are taken inside this file system. */
static guint32
walk_path(MetadataSet *set, const char *path, guint64 first_use_us)
{
        MetadataReader *reader = set->reader;
        GQueue rest = G_QUEUE_INIT; /* gchar *, components still to go */
        GArray *parents = g_array_new(FALSE, FALSE, sizeof(guint32));
        g_auto(GStrv) parts = g_strsplit(path, "/", -1);
        guint32 current = EXT2_ROOT_INO;
        struct ext2_inode inode;
        guint links = 0;

        for (guint i = 0; parts[i]; i++)
                g_queue_push_tail(&rest, g_strdup(parts[i]));
        if (!metadata_read_inode(reader, current, &inode))
                current = 0;
        else
                add_inode(set, current, &inode, first_use_us);
        while (current && !g_queue_is_empty(&rest)) {
                g_autofree gchar *name = g_queue_pop_head(&rest);
                const MetadataLookup *lookup;
                struct ext2_inode child;

                if (*name == '\0' || strcmp(name, ".") == 0)
                        continue;
                if (strcmp(name, "..") == 0) {
                        if (parents->len > 0) {
                                current = g_array_index(parents, guint32, parents->len - 1);
                                g_array_set_size(parents, parents->len - 1);
                        }
                        if (!metadata_read_inode(reader, current, &inode))
                                current = 0;
                        continue;
                }
                lookup = metadata_lookup(reader, current, name);
                for (guint i = 0; i < lookup->dir_blocks->len; i++) {
                        guint64 logical = g_array_index(lookup->dir_blocks, guint64, i);

                        metadata_set_add(set, PROFILE_META_DIR_BLOCK, current, logical,
                                         PROFILE_META_COMPUTED, first_use_us);
                        add_nodes(set, current, &inode, logical, logical + 1, first_use_us);
                }
                if (!lookup->inode || !metadata_read_inode(reader, lookup->inode, &child)) {
                        current = 0;
                        break;
                }
                add_inode(set, lookup->inode, &child, first_use_us);
                if (LINUX_S_ISLNK(child.i_mode) && !g_queue_is_empty(&rest)) {
                        g_autofree gchar *target =
                                ++links > SYMLINKS_MAX
                                        ? NULL
                                        : read_symlink(set, lookup->inode, &child, first_use_us);
                        g_auto(GStrv) more = target ? g_strsplit(target, "/", -1) : NULL;

                        if (!target) {
                                current = 0;
                                break;
                        }
                        for (guint i = g_strv_length(more); i > 0; i--)
                                g_queue_push_head(&rest, g_strdup(more[i - 1]));
                        if (target[0] == '/') {
                                current = EXT2_ROOT_INO;
                                g_array_set_size(parents, 0);
                                if (!metadata_read_inode(reader, current, &inode))
                                        current = 0;
                        }
                        continue;
                }
                g_array_append_val(parents, current);
                current = lookup->inode;
                inode = child;
        }
        g_queue_clear_full(&rest, g_free);
        g_array_unref(parents);
        return current;
}

gboolean
metadata_compute(MetadataReader *reader, Profile *profile, guint32 fs, GError **error G_GNUC_UNUSED)
{
        g_autofree guint32 *inodes = g_new0(guint32, profile->files->len + 1);
        guint64 block_bytes = reader->fs->blocksize;
        MetadataSet set;

        metadata_set_init(&set, reader, profile, fs);
        for (guint i = 0; i < profile->files->len; i++) {
                const ProfileFile *file = &g_array_index(profile->files, ProfileFile, i);

                if (file->fs == fs)
                        inodes[i] = walk_path(&set, file->path, file->first_use_us);
        }
        for (guint i = 0; i < profile->ranges->len; i++) {
                const ProfileRange *range = &g_array_index(profile->ranges, ProfileRange, i);
                const ProfileFile *file = &g_array_index(profile->files, ProfileFile, range->file);
                guint32 ino = inodes[range->file];
                struct ext2_inode inode;

                if (!ino || !metadata_read_inode(reader, ino, &inode) ||
                    metadata_tree(reader, ino, &inode)->len == 0)
                        continue;
                add_nodes(&set, ino, &inode, range->offset_bytes / block_bytes,
                          (range->offset_bytes + range->length_bytes + block_bytes - 1) /
                                  block_bytes,
                          file->first_use_us);
        }
        metadata_set_clear(&set);
        return TRUE;
}
