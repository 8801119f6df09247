// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * drive-hdd.h - the mechanics of a simulated disk: one head, a turning platter, a read cache.
 *
 * Pure: functions of the state and of the time they are given (ms since an origin at which angle
 * 0 passes the head), no clock. Times given to one drive never run backwards. Runs are in sectors
 * and lie inside the drive.
 */
#pragma once

#include "hdd-geometry.h"

/* A stretch of the read cache: sectors [start, end), complete at ready_ms. */
typedef struct {
        guint64 start, end;
        double ready_ms;
        guint64 last_use; /* 0: free */
} HddSegment;

typedef struct {
        HddGeometry geometry;
        double interface_sectors_ms;
        guint32 segment_count;
        guint64 segment_sectors; /* 0: no read cache */
        HddSegment *segments;
        guint64 use_counter;

        guint32 cylinder, head; /* where the arm stands */

        /*
         * Read-ahead: while active, the head begins sector ahead_next at ahead_ms and goes on up
         * to ahead_limit, into segment ahead_segment.
         */
        gboolean ahead_active;
        guint64 ahead_next, ahead_limit;
        double ahead_ms;
        guint32 ahead_segment;
} HddDrive;

/* What a request cost; the end is start + seek + rotation + transfer. */
typedef struct {
        double seek_ms, rotation_ms, transfer_ms;
        gboolean seeked;    /* the arm moved to another cylinder */
        gboolean cache_hit; /* some or all came from the read cache */
} HddCost;

void hdd_drive_init(HddDrive *drive, const DriveParams *params, guint64 sectors);
void hdd_drive_clear(HddDrive *drive);

/* The angle under the head at @ms. */
double hdd_drive_angle(const HddDrive *drive, double ms);

/* Lets the drive read ahead up to @now_ms. */
void hdd_drive_advance(HddDrive *drive, double now_ms);

/*
 * The time from @now_ms until data of the run starts to pass the head: seek and rotational wait,
 * 0 when the read-ahead is at or beyond the start of the run. After hdd_drive_advance(@now_ms).
 */
double hdd_drive_positioning_ms(const HddDrive *drive, guint64 start, guint64 sectors,
                                gboolean write, double now_ms);

/* Serves a run by moving the head; the drive's state is then that at the end of the service. */
HddCost hdd_drive_serve(HddDrive *drive, guint64 start, guint64 sectors, gboolean write,
                        double now_ms);

/*
 * When the whole run is in the read cache: TRUE and the time at which its last sector is (or was)
 * there. After hdd_drive_advance().
 */
gboolean hdd_drive_cached(HddDrive *drive, guint64 start, guint64 sectors, double *ret_ready_ms);

/* Drops the run from the read cache, as a write must. */
void hdd_drive_invalidate(HddDrive *drive, guint64 start, guint64 sectors);

/* Empties the read cache and stops reading ahead. */
void hdd_drive_drop_cache(HddDrive *drive);
