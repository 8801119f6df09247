// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hdd-geometry.c - zones, skew and the seek curve of a simulated disk.
 *
 * Zones. Tracks of constant linear density hold sectors in proportion to their radius; a drive
 * groups cylinders into zones of equal sectors per track. Here 32 zones of equally many cylinders,
 * from the count that gives the outer rate to the one that gives the inner rate. The rates of
 * the parameters are sustained ones, so the raw rate is higher by (T + skew) / T: each track of
 * one rotation T is followed by one skew in which the next head settles, or the arm moves on by a
 * cylinder. Both switches take the time of a track-to-track seek unless --skew-ms says otherwise.
 *
 * Skew. The first sector of each track lies exactly one skew behind the last one of the track
 * before it (real formats round it up to a sector), so a transfer over many tracks runs at the
 * sustained rate with no other loss.
 *
 * Seek curve. An arm accelerates and brakes over short distances (time ~ square root of the
 * distance) and coasts at top speed over long ones (~ distance). The pieces meet at a knee with
 * equal value and slope, which leaves one unknown after seek(1) and seek(full): the knee. The mean
 * over random pairs falls as the knee moves outwards-in, so bisection finds it. Where the data
 * sheet's average is too high even for a square root over the whole stroke (8/15 of the way from
 * track to full stroke), the slope breaks at a knee at a third of the stroke instead. This is
 * deliberately not the curve of measure/: that one is tested against this one.
 */
#include "hdd-geometry.h"

#include <math.h>

double
seek_curve_ms(const SeekCurve *curve, guint32 distance)
{
        if (distance == 0)
                return 0;
        if (distance <= curve->knee)
                return curve->a + curve->b * sqrt(distance);
        return curve->c + curve->e * distance;
}

double
seek_curve_mean_ms(const SeekCurve *curve, guint32 cylinders)
{
        double n = cylinders, sum = 0;

        for (guint32 d = 1; d < cylinders; d++)
                sum += 2 * (n - d) * seek_curve_ms(curve, d);
        return sum / (n * n);
}

static void
curve_with_smooth_knee(SeekCurve *curve, double knee, double full, double track_ms, double full_ms)
{
        double root = sqrt(knee);

        curve->knee = knee;
        curve->b = (full_ms - track_ms) / (root - 1 + (full - knee) / (2 * root));
        curve->a = track_ms - curve->b;
        curve->e = curve->b / (2 * root);
        curve->c = curve->a + curve->b * root - curve->e * knee;
}

static void
curve_with_break(SeekCurve *curve, double knee_ms, double full, double track_ms, double full_ms)
{
        curve->knee = full / 3;
        curve->b = (knee_ms - track_ms) / (sqrt(curve->knee) - 1);
        curve->a = track_ms - curve->b;
        curve->e = (full_ms - knee_ms) / (full - curve->knee);
        curve->c = full_ms - curve->e * full;
}

void
seek_curve_solve(SeekCurve *curve, guint32 cylinders, double track_ms, double average_ms,
                 double full_ms)
{
        double full = cylinders - 1.0, low = 1, high = full;

        curve_with_smooth_knee(curve, full, full, track_ms, full_ms);
        if (seek_curve_mean_ms(curve, cylinders) >= average_ms) {
                for (int i = 0; i < 50; i++) {
                        double knee = (low + high) / 2;

                        curve_with_smooth_knee(curve, knee, full, track_ms, full_ms);
                        if (seek_curve_mean_ms(curve, cylinders) < average_ms)
                                low = knee;
                        else
                                high = knee;
                }
                return;
        }
        low = track_ms;
        high = full_ms;
        for (int i = 0; i < 50; i++) {
                double knee_ms = (low + high) / 2;

                curve_with_break(curve, knee_ms, full, track_ms, full_ms);
                if (seek_curve_mean_ms(curve, cylinders) < average_ms)
                        low = knee_ms;
                else
                        high = knee_ms;
        }
}

static guint32
sectors_per_track(const HddGeometry *geometry, double sustained_mb_s)
{
        double ms = geometry->rotation_ms + geometry->skew_ms;

        return MAX(1, lround(sustained_mb_s * 1e3 * ms / SECTOR_BYTES));
}

void
hdd_geometry_init(HddGeometry *geometry, const DriveParams *params, guint64 sectors)
{
        guint32 outer, inner;
        guint64 column = 0; /* sectors of one cylinder of each zone together */
        guint64 first = 0;

        *geometry = (HddGeometry){
                .rotation_ms = 60e3 / params->rpm,
                .skew_ms = params->skew_ms > 0 ? params->skew_ms : params->seek_track_ms,
                .heads = (guint32)params->heads,
                .sectors = sectors,
        };
        outer = sectors_per_track(geometry, params->outer_mb_s);
        inner = sectors_per_track(geometry, params->inner_mb_s);
        for (guint32 z = 0; z < HDD_ZONES; z++) {
                double part = (double)z / (HDD_ZONES - 1);

                geometry->zone[z].sectors_per_track =
                        (guint32)lround(outer - (double)(outer - inner) * part);
                column += (guint64)geometry->zone[z].sectors_per_track * geometry->heads;
        }
        geometry->zone_cylinders = (guint32)MAX(1, (sectors + column - 1) / column);
        geometry->cylinders = geometry->zone_cylinders * HDD_ZONES;
        for (guint32 z = 0; z < HDD_ZONES; z++) {
                geometry->zone[z].first_sector = first;
                geometry->zone[z].first_cylinder = z * geometry->zone_cylinders;
                first += (guint64)geometry->zone_cylinders * geometry->heads *
                         geometry->zone[z].sectors_per_track;
        }
        seek_curve_solve(&geometry->seek, geometry->cylinders, params->seek_track_ms,
                         params->seek_average_ms, params->seek_full_ms);
}

HddPlace
hdd_geometry_place(const HddGeometry *geometry, guint64 sector)
{
        guint32 low = 0, high = HDD_ZONES;
        const HddZone *zone;
        guint64 rest, track, tracks_before;
        HddPlace place;
        double skew;

        if (sector >= geometry->sectors)
                sector = geometry->sectors - 1;
        while (high - low > 1) {
                guint32 middle = (low + high) / 2;

                if (geometry->zone[middle].first_sector <= sector)
                        low = middle;
                else
                        high = middle;
        }
        zone = &geometry->zone[low];
        rest = sector - zone->first_sector;
        track = rest / zone->sectors_per_track;
        tracks_before = (guint64)zone->first_cylinder * geometry->heads + track;
        skew = (double)tracks_before * (geometry->skew_ms / geometry->rotation_ms);
        place.cylinder = zone->first_cylinder + (guint32)(track / geometry->heads);
        place.head = (guint32)(track % geometry->heads);
        place.sectors_per_track = zone->sectors_per_track;
        place.sector = (guint32)(rest % zone->sectors_per_track);
        place.angle = skew + (double)place.sector / zone->sectors_per_track;
        place.angle -= floor(place.angle);
        return place;
}

double
hdd_media_ms(const HddGeometry *geometry, guint64 first, guint64 sectors)
{
        double ms = 0;

        while (sectors > 0) {
                HddPlace place = hdd_geometry_place(geometry, first);
                guint64 on_track = MIN(sectors, place.sectors_per_track - place.sector);

                ms += (double)on_track / place.sectors_per_track * geometry->rotation_ms;
                sectors -= on_track;
                first += on_track;
                if (sectors > 0)
                        ms += geometry->skew_ms;
        }
        return ms;
}
