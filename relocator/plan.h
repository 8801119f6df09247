// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Planning a relocation: which blocks of which file go to which place of the donor. Pure.
 *
 * Invariants of a plan: pieces are in the order in which they will lie on the disk; no block of a
 * file stands in two of them; holes and blocks without a place are in none; pieces do not overlap
 * in the donor; and a piece's offset in the donor equals its offset in the file modulo the blocks
 * of a page (EXT4_IOC_MOVE_EXT asks for that where blocks are smaller than pages).
 */
#pragma once

#include <glib.h>

#include "measure/extents.h"

typedef struct {
        guint32 file;          /* the caller's number */
        guint64 logical_block; /* in the file */
        guint64 blocks;
        guint64 donor_block;  /* in the donor, set by plan_place() */
        guint64 moved_blocks; /* how much of it lies in the new place: the mover's and the journal's
                               */
} Piece;

typedef struct {
        guint32 block_bytes;
        guint32 page_bytes;
        GArray *pieces;    /* Piece */
        GHashTable *taken; /* private: file -> GArray of the blocks it has in the plan */
} Plan;

Plan *plan_new(guint32 block_bytes, guint32 page_bytes);
void plan_free(Plan *plan);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Plan, plan_free)

/* Appends the blocks of [offset, offset + length) that have a place by the file's map; blocks that
 * the plan has already are left out. */
void plan_add_range(Plan *plan, guint32 file, const ExtentMap *map, guint64 offset_bytes,
                    guint64 length_bytes);

/* Takes out every piece of a file. */
void plan_drop_file(Plan *plan, guint32 file);

guint64 plan_blocks(const Plan *plan);

/* Upper bound of the donor blocks that plan_place() needs, in one segment. */
guint64 plan_donor_blocks(const Plan *plan);

/* A part of the donor that lies in one run on the disk. */
typedef struct {
        guint64 donor_block;
        guint64 blocks;
        guint64 physical_block;
} Segment;

/* Gives each piece its place, filling the segments in their order; a piece that does not fit into
 * what is left of a segment is split. FALSE when the segments are too small. */
gboolean plan_place(Plan *plan, const GArray *segments);

/* Runs on the disk once the pieces have been moved, in the plan's order. A gap within a page counts
 * as none: it costs nothing. */
guint64 plan_runs_after(const Plan *plan, const GArray *segments);

/* The layout as it is: runs of a list of Extents in this order, by the same rule. */
guint64 layout_runs(const GArray *extents, guint32 page_bytes);

/* Chooses from the donor's map (segments in donor order) the parts to use for `blocks`: the
 * smallest run that holds them all, else the largest runs, as few as do; in order of place on the
 * disk. NULL when all are not enough. `align` is the blocks of a page: each segment begins at a
 * multiple of it. */
GArray *segments_choose(const GArray *segments, guint64 blocks, guint64 align);
