// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The layout in memory, and the layout as it would be after a relocation. Pure; loading it from the
 * machine is in measure/layout-load.c.
 */
#include "measure/layout.h"

#include "common/json.h"

/* An ext4 inode holds so many extents itself; more need a block of their own. */
#define EXTENTS_IN_INODE 4

static void
disk_free(gpointer data)
{
        LayoutDisk *disk = data;

        disk_model_free(disk->model);
        g_free(disk);
}

static void
file_clear(gpointer data)
{
        LayoutFile *file = data;

        g_clear_pointer(&file->map, extent_map_free);
        g_clear_pointer(&file->executable, g_array_unref);
}

Layout *
layout_new(guint32 page_bytes)
{
        Layout *layout = g_new0(Layout, 1);

        layout->page_bytes = page_bytes;
        layout->disks = g_ptr_array_new_with_free_func(disk_free);
        layout->files = g_array_new(FALSE, TRUE, sizeof(LayoutFile));
        g_array_set_clear_func(layout->files, file_clear);
        layout->meta = g_array_new(FALSE, TRUE, sizeof(LayoutMeta));
        layout->skipped = g_ptr_array_new_with_free_func(skipped_free);
        layout->meta_known = TRUE;
        return layout;
}

void
layout_free(Layout *layout)
{
        if (layout == NULL)
                return;
        g_ptr_array_unref(layout->disks);
        g_array_unref(layout->files);
        g_array_unref(layout->meta);
        g_ptr_array_unref(layout->skipped);
        g_free(layout->meta_note);
        g_free(layout);
}

guint32
layout_add_disk(Layout *layout, DiskModel *model, gboolean elevator, guint64 readahead_bytes)
{
        LayoutDisk *disk = g_new0(LayoutDisk, 1);

        disk->model = model;
        disk->elevator = elevator;
        disk->readahead_bytes = readahead_bytes;
        g_ptr_array_add(layout->disks, disk);
        return layout->disks->len - 1;
}

void
layout_clip(const Layout *layout, guint32 number, guint64 offset_bytes, guint64 length_bytes,
            GArray *out)
{
        const LayoutFile *file = &g_array_index(layout->files, LayoutFile, number);
        guint from = out->len;

        if (file->map == NULL || file->disk == LAYOUT_NO_DISK)
                return;
        extent_map_clip(file->map, offset_bytes, length_bytes, out);
        for (guint i = from; i < out->len; i++)
                g_array_index(out, Extent, i).physical_bytes += file->offset_bytes;
}

guint32
layout_main_disk(const Layout *layout, const GArray *ranges)
{
        g_autofree guint64 *bytes = g_new0(guint64, layout->disks->len + 1);
        guint32 best = 0;

        for (guint i = 0; i < ranges->len; i++) {
                const OrderedRange *range = &g_array_index(ranges, OrderedRange, i);
                guint32 disk = g_array_index(layout->files, LayoutFile, range->file).disk;

                if (disk != LAYOUT_NO_DISK)
                        bytes[disk] += range->length_bytes;
        }
        for (guint32 i = 1; i < layout->disks->len; i++)
                if (bytes[i] > bytes[best])
                        best = i;
        return best;
}

static gint
compare_logical(gconstpointer a, gconstpointer b)
{
        const Extent *left = a, *right = b;

        return left->logical_bytes < right->logical_bytes
                       ? -1
                       : left->logical_bytes > right->logical_bytes;
}

static gint
compare_first_use(gconstpointer a, gconstpointer b)
{
        const LayoutMeta *left = a, *right = b;

        return left->first_use_us < right->first_use_us ? -1
                                                        : left->first_use_us > right->first_use_us;
}

static void
append_joined(GArray *extents, Extent extent)
{
        Extent *last = extents->len > 0 ? &g_array_index(extents, Extent, extents->len - 1) : NULL;

        if (extent.length_bytes == 0)
                return;
        if (last != NULL && last->flags == extent.flags &&
            last->logical_bytes + last->length_bytes == extent.logical_bytes &&
            last->physical_bytes + last->length_bytes == extent.physical_bytes)
                last->length_bytes += extent.length_bytes;
        else
                g_array_append_val(extents, extent);
}

/* The old map with the moved parts (ascending, no two overlap) laid over it. */
static ExtentMap *
overlay(const ExtentMap *old, const GArray *moved)
{
        ExtentMap *map = g_new0(ExtentMap, 1);
        guint next = 0;

        map->fibmap = old->fibmap;
        map->logical_addresses = old->logical_addresses;
        map->extents = g_array_new(FALSE, FALSE, sizeof(Extent));
        for (guint i = 0; i < old->extents->len; i++) {
                Extent rest = g_array_index(old->extents, Extent, i);

                for (; next < moved->len; next++) {
                        const Extent *part = &g_array_index(moved, Extent, next);
                        guint64 before = part->logical_bytes - rest.logical_bytes;
                        Extent head = rest;

                        if (part->logical_bytes >= rest.logical_bytes + rest.length_bytes)
                                break;
                        head.length_bytes = before;
                        append_joined(map->extents, head);
                        append_joined(map->extents, *part);
                        rest.logical_bytes += before + part->length_bytes;
                        rest.physical_bytes += before + part->length_bytes;
                        rest.length_bytes -= before + part->length_bytes;
                }
                append_joined(map->extents, rest);
        }
        return map;
}

/* Middle of the bytes of the ranges on a drive: what lies there is near to the rest of its kind. */
static guint64
middle_of(const Layout *layout, const GArray *ranges, guint32 disk)
{
        g_autoptr(GArray) parts = g_array_new(FALSE, FALSE, sizeof(Extent));
        double sum = 0, weight = 0;

        for (guint i = 0; i < ranges->len; i++) {
                const OrderedRange *range = &g_array_index(ranges, OrderedRange, i);

                if (g_array_index(layout->files, LayoutFile, range->file).disk != disk)
                        continue;
                g_array_set_size(parts, 0);
                layout_clip(layout, range->file, range->offset_bytes, range->length_bytes, parts);
                for (guint k = 0; k < parts->len; k++) {
                        const Extent *part = &g_array_index(parts, Extent, k);

                        sum += (double)part->physical_bytes * (double)part->length_bytes;
                        weight += (double)part->length_bytes;
                }
        }
        return weight > 0 ? (guint64)(sum / weight) / 4096 * 4096 : 0;
}

Layout *
layout_relocate(const Layout *layout, const GArray *ranges, guint64 place_bytes)
{
        Layout *result = layout_new(layout->page_bytes);
        g_autofree guint64 *next = g_new0(guint64, layout->disks->len + 1);
        g_autofree guint64 *first_use_us = g_new0(guint64, layout->files->len + 1);
        g_autoptr(GPtrArray) moved = g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
        guint32 main_disk = layout_main_disk(layout, ranges);

        for (guint i = 0; i < layout->disks->len; i++) {
                const LayoutDisk *disk = layout->disks->pdata[i];
                LayoutDisk *copy = g_memdup2(disk, sizeof(*disk));

                copy->model = disk_model_copy(disk->model);
                g_ptr_array_add(result->disks, copy);
                next[i] = i == main_disk && place_bytes != G_MAXUINT64
                                  ? place_bytes
                                  : middle_of(layout, ranges, i);
        }
        for (guint i = 0; i < layout->files->len; i++)
                g_ptr_array_add(moved, g_array_new(FALSE, FALSE, sizeof(Extent)));
        for (guint i = 0; i < ranges->len; i++) {
                const OrderedRange *range = &g_array_index(ranges, OrderedRange, i);
                const LayoutFile *file = &g_array_index(layout->files, LayoutFile, range->file);
                GArray *parts = moved->pdata[range->file];
                guint from = parts->len;

                if (from == 0)
                        first_use_us[range->file] = range->first_use_us;
                layout_clip(layout, range->file, range->offset_bytes, range->length_bytes, parts);
                for (guint k = from; k < parts->len; k++) {
                        Extent *part = &g_array_index(parts, Extent, k);

                        part->physical_bytes = next[file->disk] - file->offset_bytes;
                        next[file->disk] += part->length_bytes;
                }
        }
        g_array_append_vals(result->meta, layout->meta->data, layout->meta->len);
        for (guint i = 0; i < layout->files->len; i++) {
                LayoutFile file = g_array_index(layout->files, LayoutFile, i);
                GArray *parts = moved->pdata[i];

                if (file.executable != NULL)
                        g_array_ref(file.executable);
                if (file.map != NULL) {
                        guint before = file.map->extents->len;

                        g_array_sort(parts, compare_logical);
                        file.map = overlay(file.map, parts);
                        if (before <= EXTENTS_IN_INODE &&
                            file.map->extents->len > EXTENTS_IN_INODE) {
                                const LayoutFile *old =
                                        &g_array_index(layout->files, LayoutFile, i);
                                LayoutMeta node = {
                                        .disk = file.disk,
                                        .length_bytes = 4096,
                                        .offset_bytes = file.offset_bytes,
                                        .position_bytes =
                                                g_array_index(old->map->extents, Extent, 0)
                                                        .physical_bytes,
                                        .first_use_us = first_use_us[i],
                                        .kind = PROFILE_META_EXTENT_NODE,
                                };

                                /* Near the old data: ext4 looks in the inode's group. */
                                node.position_bytes -= MIN(node.position_bytes, 4096);
                                g_array_append_val(result->meta, node);
                        }
                }
                g_array_append_val(result->files, file);
        }
        g_array_sort(result->meta, compare_first_use);
        result->meta_known = layout->meta_known;
        result->logical_addresses = layout->logical_addresses;
        result->measured = layout->measured;
        return result;
}
