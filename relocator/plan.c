// SPDX-License-Identifier: GPL-2.0-or-later
/* Planning a relocation. */
#include "relocator/plan.h"

#include <string.h>

#include "relocator/error.h"

G_DEFINE_QUARK(headstart - relocator - error, relocator_error)

Plan *
plan_new(guint32 block_bytes, guint32 page_bytes)
{
        Plan *plan = g_new0(Plan, 1);

        plan->block_bytes = block_bytes;
        plan->page_bytes = MAX(page_bytes, block_bytes);
        plan->pieces = g_array_new(FALSE, FALSE, sizeof(Piece));
        plan->taken = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)g_array_unref);
        return plan;
}

void
plan_free(Plan *plan)
{
        if (!plan)
                return;
        g_array_unref(plan->pieces);
        g_hash_table_unref(plan->taken);
        g_free(plan);
}

typedef struct {
        guint64 first, end; /* logical blocks */
} Taken;

/* Appends [first, end) less what the plan has of this file. Ranges of a profile do not overlap, so
 * that nothing is left out as a rule; a damaged or made-up profile must still not move a block
 * twice. */
static void
add_blocks(Plan *plan, guint32 file, guint64 first, guint64 end)
{
        GArray *all = g_hash_table_lookup(plan->taken, GUINT_TO_POINTER(file));
        Piece piece = {.file = file};
        Taken taken;

        if (!all) {
                all = g_array_new(FALSE, FALSE, sizeof(Taken));
                g_hash_table_insert(plan->taken, GUINT_TO_POINTER(file), all);
        }
        for (guint i = 0; i < all->len && first < end; i++) {
                taken = g_array_index(all, Taken, i);
                if (taken.first >= end || taken.end <= first)
                        continue;
                if (taken.first > first)
                        add_blocks(plan, file, first, taken.first);
                first = taken.end;
        }
        if (first >= end)
                return;
        piece.logical_block = first;
        piece.blocks = end - first;
        g_array_append_val(plan->pieces, piece);
        taken = (Taken){first, end};
        g_array_append_val(all, taken);
}

void
plan_add_range(Plan *plan, guint32 file, const ExtentMap *map, guint64 offset_bytes,
               guint64 length_bytes)
{
        g_autoptr(GArray) parts = g_array_new(FALSE, FALSE, sizeof(Extent));
        guint64 first = 0, end = 0;

        extent_map_clip(map, offset_bytes, length_bytes, parts);
        for (guint i = 0; i < parts->len; i++) {
                const Extent *part = &g_array_index(parts, Extent, i);
                guint64 part_first = part->logical_bytes / plan->block_bytes;
                guint64 part_end =
                        (part->logical_bytes + part->length_bytes + plan->block_bytes - 1) /
                        plan->block_bytes;

                /* Neighbours in the file are one piece, wherever they lie now. */
                if (end > first && part_first <= end) {
                        end = MAX(end, part_end);
                        continue;
                }
                add_blocks(plan, file, first, end);
                first = part_first;
                end = part_end;
        }
        add_blocks(plan, file, first, end);
}

void
plan_drop_file(Plan *plan, guint32 file)
{
        guint kept = 0;

        g_hash_table_remove(plan->taken, GUINT_TO_POINTER(file));
        for (guint i = 0; i < plan->pieces->len; i++) {
                Piece piece = g_array_index(plan->pieces, Piece, i);

                if (piece.file != file)
                        g_array_index(plan->pieces, Piece, kept++) = piece;
        }
        g_array_set_size(plan->pieces, kept);
}

guint64
plan_blocks(const Plan *plan)
{
        guint64 sum = 0;

        for (guint i = 0; i < plan->pieces->len; i++)
                sum += g_array_index(plan->pieces, Piece, i).blocks;
        return sum;
}

/* The first place at or behind `at` that a piece beginning at `logical` may have. */
static guint64
align_like(guint64 at, guint64 logical, guint64 align)
{
        return at + (logical % align + align - at % align) % align;
}

guint64
plan_donor_blocks(const Plan *plan)
{
        guint64 align = plan->page_bytes / plan->block_bytes, at = 0;

        for (guint i = 0; i < plan->pieces->len; i++) {
                const Piece *piece = &g_array_index(plan->pieces, Piece, i);

                at = align_like(at, piece->logical_block, align) + piece->blocks;
        }
        return (at + align - 1) / align * align;
}

gboolean
plan_place(Plan *plan, const GArray *segments)
{
        g_autoptr(GArray) placed = g_array_new(FALSE, FALSE, sizeof(Piece));
        guint64 align = plan->page_bytes / plan->block_bytes, at = 0;
        guint segment = 0;

        if (segments->len > 0)
                at = g_array_index(segments, Segment, 0).donor_block;
        for (guint i = 0; i < plan->pieces->len; i++) {
                Piece rest = g_array_index(plan->pieces, Piece, i);

                while (rest.blocks > 0) {
                        const Segment *in;
                        Piece part = rest;
                        guint64 end, begin;

                        if (segment >= segments->len)
                                return FALSE;
                        in = &g_array_index(segments, Segment, segment);
                        end = in->donor_block + in->blocks;
                        begin = align_like(at, rest.logical_block, align);
                        if (begin >= end) {
                                if (++segment < segments->len)
                                        at = g_array_index(segments, Segment, segment).donor_block;
                                continue;
                        }
                        part.donor_block = begin;
                        part.blocks = MIN(rest.blocks, end - begin);
                        g_array_append_val(placed, part);
                        rest.logical_block += part.blocks;
                        rest.blocks -= part.blocks;
                        at = begin + part.blocks;
                }
        }
        g_array_unref(plan->pieces);
        plan->pieces = g_steal_pointer(&placed);
        return TRUE;
}

static guint64
count_run(guint64 *at, guint64 begin, guint64 length, guint64 slack)
{
        gboolean goes_on = *at != G_MAXUINT64 && begin >= *at && begin - *at < slack;

        *at = begin + length;
        return goes_on ? 0 : 1;
}

guint64
plan_runs_after(const Plan *plan, const GArray *segments)
{
        guint64 align = plan->page_bytes / plan->block_bytes, at = G_MAXUINT64, runs = 0;

        for (guint i = 0; i < plan->pieces->len; i++) {
                const Piece *piece = &g_array_index(plan->pieces, Piece, i);

                for (guint k = 0; k < segments->len; k++) {
                        const Segment *in = &g_array_index(segments, Segment, k);

                        if (piece->donor_block < in->donor_block ||
                            piece->donor_block >= in->donor_block + in->blocks)
                                continue;
                        runs += count_run(&at,
                                          in->physical_block + piece->donor_block - in->donor_block,
                                          piece->blocks, MAX(align, 1));
                        break;
                }
        }
        return runs;
}

guint64
layout_runs(const GArray *extents, guint32 page_bytes)
{
        guint64 at = G_MAXUINT64, runs = 0;

        for (guint i = 0; i < extents->len; i++) {
                const Extent *extent = &g_array_index(extents, Extent, i);

                runs += count_run(&at, extent->physical_bytes, extent->length_bytes, page_bytes);
        }
        return runs;
}

static gint
compare_larger(gconstpointer a, gconstpointer b)
{
        const Segment *x = a, *y = b;

        return x->blocks > y->blocks ? -1 : x->blocks < y->blocks;
}

static gint
compare_physical(gconstpointer a, gconstpointer b)
{
        const Segment *x = a, *y = b;

        return x->physical_block < y->physical_block ? -1 : x->physical_block > y->physical_block;
}

GArray *
segments_choose(const GArray *segments, guint64 blocks, guint64 align)
{
        g_autoptr(GArray) usable = g_array_new(FALSE, FALSE, sizeof(Segment));
        const Segment *best = NULL;
        guint64 sum = 0;
        guint n;

        for (guint i = 0; i < segments->len; i++) {
                Segment segment = g_array_index(segments, Segment, i);
                guint64 over = (align - segment.donor_block % align) % align;

                if (segment.blocks <= over)
                        continue;
                segment.donor_block += over;
                segment.physical_block += over;
                segment.blocks -= over;
                g_array_append_val(usable, segment);
        }
        for (guint i = 0; i < usable->len; i++) {
                const Segment *segment = &g_array_index(usable, Segment, i);

                if (segment->blocks >= blocks && (!best || segment->blocks < best->blocks))
                        best = segment;
        }
        if (best) {
                Segment only = *best;
                GArray *chosen = g_array_new(FALSE, FALSE, sizeof(Segment));

                only.blocks = blocks;
                g_array_append_val(chosen, only);
                return chosen;
        }
        g_array_sort(usable, compare_larger);
        /* Each further segment may cost up to a page for the alignment of its first piece. */
        for (n = 0; n < usable->len && sum < blocks + n * align; n++)
                sum += g_array_index(usable, Segment, n).blocks;
        if (sum < blocks + (n > 0 ? n - 1 : 0) * align)
                return NULL;
        g_array_set_size(usable, n);
        g_array_sort(usable, compare_physical);
        return g_steal_pointer(&usable);
}
