// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * drive-hdd.c - positioning, transfer and read-ahead of a simulated disk.
 *
 * The angle of the platter is a function of time alone, so a rotational wait follows from where
 * the arm is and when. After a read the head goes on into a cache segment until the segment is
 * full or another request takes it away; this is worked out lazily, by hdd_drive_advance().
 * A read whose start the read-ahead has reached, or is about to, just lets the head run on.
 *
 * Not simulated: reading a track from wherever the head lands (zero-latency reads), write settle
 * time on top of the seek, defects and spare sectors.
 */
#include "drive-hdd.h"

#include <math.h>

/* Rounding of an angle must not cost a rotation: a wait this close to one is none. */
#define ROTATION_SLACK_MS 0.002

void
hdd_drive_init(HddDrive *drive, const DriveParams *params, guint64 sectors)
{
        *drive = (HddDrive){
                .interface_sectors_ms = params->interface_mb_s * 1e3 / SECTOR_BYTES,
                .segment_count = (guint32)params->cache_segments,
        };
        drive->segment_sectors =
                (guint64)(params->cache_bytes / drive->segment_count / SECTOR_BYTES);
        drive->segments = g_new0(HddSegment, drive->segment_count);
        hdd_geometry_init(&drive->geometry, params, sectors);
}

void
hdd_drive_clear(HddDrive *drive)
{
        g_clear_pointer(&drive->segments, g_free);
}

double
hdd_drive_angle(const HddDrive *drive, double ms)
{
        double turns = ms / drive->geometry.rotation_ms;

        return turns - floor(turns);
}

static void
set_arm(HddDrive *drive, guint64 sector)
{
        HddPlace place = hdd_geometry_place(&drive->geometry, sector);

        drive->cylinder = place.cylinder;
        drive->head = place.head;
}

void
hdd_drive_advance(HddDrive *drive, double now_ms)
{
        guint64 before = drive->ahead_next;
        HddSegment *segment = &drive->segments[drive->ahead_segment];

        if (!drive->ahead_active || now_ms <= drive->ahead_ms)
                return;
        while (drive->ahead_next < drive->ahead_limit) {
                HddPlace place = hdd_geometry_place(&drive->geometry, drive->ahead_next);
                double sector_ms = drive->geometry.rotation_ms / place.sectors_per_track;
                guint64 track_rest = place.sectors_per_track - place.sector;
                guint64 rest = MIN(track_rest, drive->ahead_limit - drive->ahead_next);
                double passed = (now_ms - drive->ahead_ms) / sector_ms;

                if (passed <= 0)
                        break;
                if (passed < (double)rest) {
                        drive->ahead_next += (guint64)passed;
                        drive->ahead_ms += floor(passed) * sector_ms;
                        break;
                }
                drive->ahead_next += rest;
                drive->ahead_ms += (double)rest * sector_ms;
                if (rest == track_rest)
                        drive->ahead_ms += drive->geometry.skew_ms;
        }
        if (drive->ahead_next == before)
                return;
        set_arm(drive, drive->ahead_next - 1);
        segment->end = drive->ahead_next;
        if (segment->end - segment->start > drive->segment_sectors)
                segment->start = segment->end - drive->segment_sectors;
        if (drive->ahead_next >= drive->ahead_limit)
                drive->ahead_active = FALSE;
}

/* TRUE when a read of the run needs only that the read-ahead goes on. */
static gboolean
streams_on(const HddDrive *drive, guint64 start, guint64 sectors)
{
        const HddSegment *segment = &drive->segments[drive->ahead_segment];

        return drive->ahead_active && segment->start <= start && start <= drive->ahead_next &&
               drive->ahead_next < start + sectors;
}

static void
position(const HddDrive *drive, guint64 start, double now_ms, double *ret_seek_ms,
         double *ret_rotation_ms)
{
        const HddGeometry *geometry = &drive->geometry;
        HddPlace place = hdd_geometry_place(geometry, start);
        double seek_ms, turn, wait_ms;

        if (place.cylinder != drive->cylinder)
                seek_ms =
                        seek_curve_ms(&geometry->seek, place.cylinder > drive->cylinder
                                                               ? place.cylinder - drive->cylinder
                                                               : drive->cylinder - place.cylinder);
        else
                seek_ms = place.head != drive->head ? geometry->skew_ms : 0;
        turn = place.angle - hdd_drive_angle(drive, now_ms + seek_ms);
        wait_ms = (turn < 0 ? turn + 1 : turn) * geometry->rotation_ms;
        if (wait_ms > geometry->rotation_ms - ROTATION_SLACK_MS)
                wait_ms = 0;
        *ret_seek_ms = seek_ms;
        *ret_rotation_ms = wait_ms;
}

/* The first sector of a read that the cache cannot give, when it gives the start of it. */
static guint64
skip_cached(const HddDrive *drive, guint64 start, guint64 sectors)
{
        for (guint32 i = 0; i < drive->segment_count; i++) {
                const HddSegment *segment = &drive->segments[i];

                if (segment->last_use != 0 && segment->start <= start && start < segment->end)
                        return MIN(segment->end, start + sectors);
        }
        return start;
}

double
hdd_drive_positioning_ms(const HddDrive *drive, guint64 start, guint64 sectors, gboolean write,
                         double now_ms)
{
        double seek_ms, rotation_ms;

        if (!write) {
                if (streams_on(drive, start, sectors))
                        return 0;
                start = MIN(skip_cached(drive, start, sectors), start + sectors - 1);
        }
        position(drive, start, now_ms, &seek_ms, &rotation_ms);
        return seek_ms + rotation_ms;
}

/* After a read that ended with sector @end - 1 at @end_ms: go on into the cache. */
static void
read_on(HddDrive *drive, guint64 start, guint64 end, double end_ms, gboolean same_segment)
{
        HddSegment *segment;

        if (drive->segment_sectors == 0)
                return;
        if (!same_segment) {
                guint32 oldest = 0;

                for (guint32 i = 1; i < drive->segment_count; i++)
                        if (drive->segments[i].last_use < drive->segments[oldest].last_use)
                                oldest = i;
                drive->ahead_segment = oldest;
                drive->segments[oldest].start = start;
        }
        segment = &drive->segments[drive->ahead_segment];
        segment->end = end;
        if (segment->end - segment->start > drive->segment_sectors)
                segment->start = segment->end - drive->segment_sectors;
        segment->ready_ms = end_ms;
        segment->last_use = ++drive->use_counter;

        drive->ahead_next = end;
        drive->ahead_ms = end_ms;
        drive->ahead_limit = MIN(end + drive->segment_sectors, drive->geometry.sectors);
        drive->ahead_active = end < drive->ahead_limit;
        if (drive->ahead_active && hdd_geometry_place(&drive->geometry, end).sector == 0)
                drive->ahead_ms += drive->geometry.skew_ms;
}

HddCost
hdd_drive_serve(HddDrive *drive, guint64 start, guint64 sectors, gboolean write, double now_ms)
{
        HddCost cost = {0};
        guint64 end = start + sectors, media_start = start;
        gboolean same_segment = FALSE;
        HddPlace place;

        hdd_drive_advance(drive, now_ms);
        if (!write && streams_on(drive, start, sectors)) {
                double end_ms = drive->ahead_ms + hdd_media_ms(&drive->geometry, drive->ahead_next,
                                                               end - drive->ahead_next);

                cost.cache_hit = start < drive->ahead_next;
                cost.transfer_ms =
                        MAX(end_ms - now_ms, (double)sectors / drive->interface_sectors_ms);
                same_segment = TRUE;
                set_arm(drive, end - 1);
                read_on(drive, start, end, end_ms, same_segment);
                return cost;
        }
        drive->ahead_active = FALSE;
        if (!write) {
                media_start = skip_cached(drive, start, sectors);
                cost.cache_hit = media_start > start;
                if (media_start == end)
                        media_start = start; /* the caller asks for the media's time */
        }
        place = hdd_geometry_place(&drive->geometry, media_start);
        cost.seeked = place.cylinder != drive->cylinder;
        position(drive, media_start, now_ms, &cost.seek_ms, &cost.rotation_ms);
        cost.transfer_ms = hdd_media_ms(&drive->geometry, media_start, end - media_start);
        set_arm(drive, end - 1);
        if (write)
                hdd_drive_invalidate(drive, start, sectors);
        else
                read_on(drive, media_start, end,
                        now_ms + cost.seek_ms + cost.rotation_ms + cost.transfer_ms, FALSE);
        return cost;
}

gboolean
hdd_drive_cached(HddDrive *drive, guint64 start, guint64 sectors, double *ret_ready_ms)
{
        for (guint32 i = 0; i < drive->segment_count; i++) {
                HddSegment *segment = &drive->segments[i];

                if (segment->last_use != 0 && segment->start <= start &&
                    start + sectors <= segment->end) {
                        segment->last_use = ++drive->use_counter;
                        /* What was fetched makes room for more. */
                        if (drive->ahead_active && drive->ahead_segment == i)
                                drive->ahead_limit =
                                        MIN(MAX(drive->ahead_limit,
                                                start + sectors + drive->segment_sectors),
                                            drive->geometry.sectors);
                        *ret_ready_ms = segment->ready_ms;
                        return TRUE;
                }
        }
        return FALSE;
}

void
hdd_drive_invalidate(HddDrive *drive, guint64 start, guint64 sectors)
{
        guint64 end = start + sectors;

        for (guint32 i = 0; i < drive->segment_count; i++) {
                HddSegment *segment = &drive->segments[i];

                if (segment->last_use == 0 || segment->end <= start || end <= segment->start)
                        continue;
                if (drive->ahead_active && drive->ahead_segment == i)
                        drive->ahead_active = FALSE;
                /* One stretch a segment: keep the part before the run. */
                segment->end = MAX(start, segment->start);
                if (segment->end == segment->start)
                        *segment = (HddSegment){0};
        }
        /* The head may have begun to read what changes now. */
        if (drive->ahead_active && start < drive->ahead_limit && drive->ahead_next < end)
                drive->ahead_limit = MAX(start, drive->ahead_next);
}

void
hdd_drive_drop_cache(HddDrive *drive)
{
        drive->ahead_active = FALSE;
        for (guint32 i = 0; i < drive->segment_count; i++)
                drive->segments[i] = (HddSegment){0};
}
