// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A start in virtual time: a program that touches the pages of a profile in order, on a page cache
 * that is empty, over drives that take time; beside it, or before it, whatever reads ahead. Pure.
 *
 * Parties: the program (metadata and pages in order of first use; it waits for each page that is
 * not there, and its CPU time is spread evenly over the pages it touches), a reader of whole files
 * in order of first use, and a prefetcher that reads all metadata as one sorted batch and then
 * ranges in batches, as the replay engine does. The program is held until the prefetcher's metadata
 * is there.
 */
#pragma once

#include "measure/layout.h"
#include "measure/request.h"

typedef struct {
        const Profile *profile;
        const Layout *layout;
        guint64 readahead_bytes; /* the kernel's, on every drive */
        gboolean program;        /* FALSE: only what reads ahead */
        double cpu_ms;           /* of the program */
        gboolean whole_files;    /* the reader runs beside the program */
        const GArray *prefetch;  /* OrderedRange in reading order; NULL: no prefetcher */
} LaunchPlan;

typedef struct {
        guint64 requests; /* that begin in this file */
        guint64 bytes;
        double seek_ms, rotation_ms, transfer_ms, overhead_ms;
        guint64 extents, runs; /* only from estimate_load() */
} LaunchFileCost;

typedef struct {
        double total_ms;         /* until the program, or without one the prefetcher, is done */
        double metadata_ms;      /* until the prefetcher's metadata is there */
        guint64 metadata_blocks; /* read */
        RequestCost cost;        /* of all drives */
} LaunchResult;

/* `ret_files`, may be NULL: LaunchFileCost for every file of the profile, the metadata behind them.
 */
void launch_simulate(const LaunchPlan *plan, LaunchResult *ret, GArray **ret_files);
