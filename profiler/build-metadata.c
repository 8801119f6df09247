// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Metadata of the profile's ext2/3/4 file systems: the blocks seen read become objects, the objects
 * the files need are computed, and what the kernel only read along (inode-table readahead) is
 * dropped.
 */
#include <stdlib.h>
#include <string.h>

#include "common/quote.h"
#include "measure/device.h"
#include "measure/metadata.h"
#include "profiler/build.h"
#include "profiler/names.h"

/* Blocks of the pages read, and among them (set of guint64 *) those that only came along. */
static GArray *
seen_blocks(const GArray *reads, guint window_blocks, guint32 block_bytes, guint32 page_bytes,
            GHashTable *along)
{
        GArray *seen = g_array_new(FALSE, FALSE, sizeof(MetadataSeen));
        guint per_page = MAX(page_bytes / block_bytes, 1);
        g_autofree gboolean *follower = g_new(gboolean, MAX(reads->len, 1));

        collector_mark_readahead(reads, window_blocks / per_page, follower);
        for (guint i = 0; i < reads->len; i++) {
                const CollectedBlockRead *read = &g_array_index(reads, CollectedBlockRead, i);

                for (guint k = 0; k < per_page; k++) {
                        MetadataSeen one = {.block = read->page * page_bytes / block_bytes + k,
                                            .first_use_us = read->time_us};

                        g_array_append_val(seen, one);
                        if (follower[i]) {
                                guint64 *block = g_new(guint64, 1);

                                *block = one.block;
                                g_hash_table_add(along, block);
                        }
                }
        }
        return seen;
}

/* Drops inode-table blocks that were read along and that no file of the profile needs. */
static guint
drop_readahead(MetadataReader *reader, Profile *profile, guint32 fs, guint32 block_bytes,
               GHashTable *along)
{
        guint kept = 0, dropped = 0;

        for (guint i = 0; i < profile->meta->len; i++) {
                ProfileMeta object = g_array_index(profile->meta, ProfileMeta, i);
                guint64 offset, block;

                if (object.fs == fs && object.kind == PROFILE_META_INODE &&
                    object.flags == PROFILE_META_SEEN &&
                    metadata_resolve(reader, &object, &offset)) {
                        block = offset / block_bytes;
                        if (g_hash_table_contains(along, &block)) {
                                dropped++;
                                continue;
                        }
                }
                g_array_index(profile->meta, ProfileMeta, kept++) = object;
        }
        g_array_set_size(profile->meta, kept);
        return dropped;
}

static void
note(BuildResult *result, const Mount *mount, const GError *error)
{
        g_autofree gchar *dir = path_quote(mount->dir);

        g_ptr_array_add(result->notes,
                        g_strdup_printf("no metadata recorded of %s: %s", dir, error->message));
}

static void
build_fs_metadata(const BuildInput *input, Profile *profile, guint32 fs, const Mount *mount,
                  BuildResult *result)
{
        g_autoptr(GError) error = NULL;
        g_autoptr(Device) device = device_load(mount->dev, &error);
        g_autoptr(MetadataReader) reader = NULL;
        g_autoptr(GHashTable) along =
                g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
        const GArray *reads;
        guint32 block_bytes;
        guint64 dev = mount->dev;

        if (device)
                reader = metadata_reader_open(device->node, &error);
        if (!reader) {
                note(result, mount, error);
                return;
        }
        block_bytes = metadata_reader_block_bytes(reader);
        g_array_index(profile->fs, ProfileFs, fs).block_bytes = block_bytes;

        reads = input->collector ? collector_block_reads(input->collector, mount->dev) : NULL;
        if (reads) {
                guint window = input->inode_readahead ? GPOINTER_TO_UINT(g_hash_table_lookup(
                                                                input->inode_readahead, &dev))
                                                      : 0;
                g_autoptr(GArray) seen = seen_blocks(reads, profile->exact ? 0 : window,
                                                     block_bytes, profile->page_bytes, along);

                result->meta_seen_blocks += seen->len;
                result->meta_unknown_blocks += metadata_identify(reader, profile, fs, seen);
        }
        if (!metadata_compute(reader, profile, fs, &error))
                note(result, mount, error);
        if (g_hash_table_size(along))
                result->meta_readahead += drop_readahead(reader, profile, fs, block_bytes, along);
}

static int
compare_meta(const void *a, const void *b)
{
        const ProfileMeta *x = a, *y = b;

        if (x->first_use_us != y->first_use_us)
                return x->first_use_us < y->first_use_us ? -1 : 1;
        if (x->fs != y->fs)
                return x->fs < y->fs ? -1 : 1;
        if (x->inode != y->inode)
                return x->inode < y->inode ? -1 : 1;
        if (x->kind != y->kind)
                return x->kind < y->kind ? -1 : 1;
        return x->index < y->index ? -1 : x->index > y->index;
}

void
build_metadata(const BuildInput *input, Profile *profile, BuildResult *result)
{
        for (guint32 fs = 0; fs < profile->fs->len; fs++) {
                const ProfileFs *entry = &g_array_index(profile->fs, ProfileFs, fs);
                const Mount *mount;

                if (!name_by_handle_works(entry->type) || g_str_equal(entry->type, "f2fs"))
                        continue;
                mount = mount_find_dev(input->mounts, g_array_index(result->fs_devs, dev_t, fs));
                if (mount)
                        build_fs_metadata(input, profile, fs, mount, result);
        }
        if (profile->meta->len)
                qsort(profile->meta->data, profile->meta->len, sizeof(ProfileMeta), compare_meta);
}
