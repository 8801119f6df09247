// SPDX-License-Identifier: GPL-2.0-or-later
/* Merging used ranges over small gaps, in order of first use. */
#include "common/ranges.h"

static gint
compare_place(gconstpointer a, gconstpointer b)
{
        const OrderedRange *x = a, *y = b;

        if (x->file != y->file)
                return x->file < y->file ? -1 : 1;
        return (x->offset_bytes > y->offset_bytes) - (x->offset_bytes < y->offset_bytes);
}

static gint
compare_first_use(gconstpointer a, gconstpointer b)
{
        const OrderedRange *x = a, *y = b;

        if (x->first_use_us != y->first_use_us)
                return x->first_use_us < y->first_use_us ? -1 : 1;
        return compare_place(a, b);
}

static guint64
round_up(guint64 value, guint64 unit)
{
        return (value + unit - 1) / unit * unit;
}

static GArray *
whole_files(const Profile *profile)
{
        GArray *out = g_array_new(FALSE, TRUE, sizeof(OrderedRange));
        g_autofree guint64 *used = g_new0(guint64, profile->files->len + 1);

        for (guint i = 0; i < profile->ranges->len; i++) {
                const ProfileRange *r = &g_array_index(profile->ranges, ProfileRange, i);

                used[r->file] += r->length_bytes;
        }
        for (guint i = 0; i < profile->files->len; i++) {
                const ProfileFile *file = &g_array_index(profile->files, ProfileFile, i);
                OrderedRange range = {.file = i,
                                      .length_bytes =
                                              round_up(file->size_bytes, profile->page_bytes),
                                      .first_use_us = file->first_use_us,
                                      .used_bytes = used[i]};

                if (range.length_bytes > 0)
                        g_array_append_val(out, range);
        }
        return out;
}

static gboolean
near_in_time(const OrderedRange *a, const OrderedRange *b, guint64 window_us)
{
        guint64 distance = a->first_use_us > b->first_use_us ? a->first_use_us - b->first_use_us
                                                             : b->first_use_us - a->first_use_us;

        return window_us == 0 || distance <= window_us;
}

GArray *
ranges_from_profile(const Profile *profile, const RangesOptions *options)
{
        static const RangesOptions defaults = {.gap_bytes = RANGES_GAP_BYTES_DEFAULT};
        g_autoptr(GArray) sorted = NULL;
        GArray *out;

        if (!options)
                options = &defaults;
        if (options->whole_files)
                return whole_files(profile);
        sorted = g_array_sized_new(FALSE, TRUE, sizeof(OrderedRange), profile->ranges->len);
        for (guint i = 0; i < profile->ranges->len; i++) {
                const ProfileRange *r = &g_array_index(profile->ranges, ProfileRange, i);
                guint64 end =
                        round_up(g_array_index(profile->files, ProfileFile, r->file).size_bytes,
                                 profile->page_bytes);
                OrderedRange range = {.file = r->file,
                                      .offset_bytes = r->offset_bytes,
                                      .first_use_us = r->first_use_us};

                if (r->offset_bytes >= end)
                        continue;
                range.length_bytes = range.used_bytes = MIN(r->length_bytes, end - r->offset_bytes);
                g_array_append_val(sorted, range);
        }
        g_array_sort(sorted, compare_place);
        out = g_array_sized_new(FALSE, TRUE, sizeof(OrderedRange), sorted->len);
        for (guint i = 0; i < sorted->len; i++) {
                const OrderedRange *next = &g_array_index(sorted, OrderedRange, i);
                OrderedRange *last =
                        out->len ? &g_array_index(out, OrderedRange, out->len - 1) : NULL;

                if (last && last->file == next->file &&
                    next->offset_bytes - (last->offset_bytes + last->length_bytes) <=
                            options->gap_bytes &&
                    near_in_time(last, next, options->window_us)) {
                        last->length_bytes =
                                next->offset_bytes + next->length_bytes - last->offset_bytes;
                        last->used_bytes += next->used_bytes;
                        last->first_use_us = MIN(last->first_use_us, next->first_use_us);
                } else {
                        g_array_append_val(out, *next);
                }
        }
        g_array_sort(out, compare_first_use);
        return out;
}

guint64
ranges_total_bytes(const GArray *ranges)
{
        guint64 sum = 0;

        for (guint i = 0; i < ranges->len; i++)
                sum += g_array_index(ranges, OrderedRange, i).length_bytes;
        return sum;
}
