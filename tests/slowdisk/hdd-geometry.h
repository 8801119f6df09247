// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hdd-geometry.h - where a sector lies on the platter and how long the arm takes to get there.
 *
 * Pure: built once from the parameters, then constant. Angles are fractions of a rotation in
 * [0, 1); cylinder 0 is the outermost.
 */
#pragma once

#include "drives.h"

#define HDD_ZONES 32

typedef struct {
        guint64 first_sector; /* first logical sector of the zone */
        guint32 first_cylinder;
        guint32 sectors_per_track;
} HddZone;

/*
 * Seek time over d >= 1 cylinders: a + b * sqrt(d) up to the knee, c + e * d beyond it (Ruemmler
 * and Wilkes, "An introduction to disk drive modeling", 1994).
 */
typedef struct {
        double a, b, c, e;
        double knee; /* cylinders */
} SeekCurve;

typedef struct {
        double rotation_ms;
        double skew_ms; /* head switch = cylinder switch = what the format leaves for them */
        guint32 heads;
        guint32 cylinders;
        guint32 zone_cylinders;
        guint64 sectors;
        HddZone zone[HDD_ZONES];
        SeekCurve seek;
} HddGeometry;

/* A place: the track that holds a sector, and where on it the sector begins. */
typedef struct {
        guint32 cylinder, head;
        guint32 sectors_per_track;
        guint32 sector; /* on the track */
        double angle;   /* where the sector begins */
} HddPlace;

/* Builds the geometry of drive_check()ed parameters with at least @sectors sectors. */
void hdd_geometry_init(HddGeometry *geometry, const DriveParams *params, guint64 sectors);

/* The place of @sector; one beyond the end is taken as the last. */
HddPlace hdd_geometry_place(const HddGeometry *geometry, guint64 sector);

/* The time of a seek over @distance cylinders, 0 for none. */
double seek_curve_ms(const SeekCurve *curve, guint32 distance);

/*
 * Solves the curve for @cylinders cylinders: seek(1) = track, seek(cylinders - 1) = full, and the
 * mean over all ordered pairs of cylinders, equal ones included, = average. @cylinders >= 8.
 */
void seek_curve_solve(SeekCurve *curve, guint32 cylinders, double track_ms, double average_ms,
                      double full_ms);

/* The mean of the curve over all ordered pairs of cylinders. */
double seek_curve_mean_ms(const SeekCurve *curve, guint32 cylinders);

/* The time to read @sectors from @first on, from the beginning of the first to the end of the last.
 */
double hdd_media_ms(const HddGeometry *geometry, guint64 first, guint64 sectors);
