// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From a profile and a layout to times: what loading the profile costs as it lies, and how long a
 * start takes in each situation.
 *
 * A start lasts at least max(CPU, I/O), at most CPU + I/O. The expected time between them is that
 * of a simulation (measure/launch-sim.h): without prefetch the program waits for each miss, so that
 * hardly anything overlaps but the kernel's asynchronous readahead; with prefetch the drive works
 * on while the program computes, after the metadata, for which it waits.
 */
#pragma once

#include "measure/launch-sim.h"

typedef enum {
        READING_ORDER_AUTO, /* as packs are compiled: first use when that costs hardly more runs
                               than block order, else block order inside bins of 8 MiB of first use
                             */
        READING_ORDER_TIME,
        READING_ORDER_BLOCK,
        READING_ORDER_RANDOM, /* always the same */
} ReadingOrder;

/* What a warm start of this profile takes of the CPU, from its recording: an exact one reads every
 * page by itself, which costs CPU time that no other start spends. 0 = unknown. */
double estimate_cpu_ms(const Profile *profile);

typedef struct {
        const Profile *profile;
        const Layout *layout;
        double cpu_ms;           /* of the start */
        guint64 readahead_bytes; /* for "cold" and what runs beside prefetchers; G_MAXUINT64 = the
                                    drive's own */
        ReadingOrder order;      /* of prefetching */
        guint64 place_bytes; /* for "relocated", on the drive; G_MAXUINT64 = in the middle of it all
                              */
} EstimateInput;

typedef struct {
        const char *name;
        double total_ms, low_ms, high_ms;
        RequestCost cost; /* of the start, all drives */
} Estimate;

/* "cold", "cold-1024", "cold-8192" (KiB of readahead), "whole-files", "prefetch", "relocated",
 * "relocated-prefetch", "warm"; ends with NULL. */
const char *const *estimate_situations(void);
/* FALSE for a name that is none of them ("whole" is taken for "whole-files"). */
gboolean estimate_situation(const EstimateInput *input, const char *name, Estimate *ret);

typedef struct {
        LaunchResult result;  /* total_ms: until all is in memory */
        guint64 bytes;        /* of data, without metadata */
        guint64 extents;      /* pieces of extents that are read */
        guint64 runs;         /* of bytes that follow one another on the drive, in reading order */
        double sequential_ms; /* used bytes at the drive's rate, in one run */
} LoadEstimate;

/* Loading the set now, as a replay would, with nothing else going on. `ret_files` as
 * launch_simulate(). */
void estimate_load(const EstimateInput *input, LoadEstimate *ret, GArray **ret_files);

/* The ranges (OrderedRange) in the order they are read; cut where a new run begins on the drive,
 * when they are sorted by place. */
GArray *estimate_reading_order(const Profile *profile, const Layout *layout, ReadingOrder order);
