// SPDX-License-Identifier: GPL-2.0-or-later
/* The simulated drives without a clock: geometry, seek curve, rotation, read-ahead, write cache. */
#include "slowdisk/drive-flash.h"
#include "slowdisk/drive-hdd.h"
#include "slowdisk/log.h"
#include "slowdisk/write-cache.h"

#include <glib/gstdio.h>
#include <math.h>
#include <unistd.h>

static void
assert_near(double value, double wanted, double part)
{
        if (!(fabs(value - wanted) <= fabs(wanted) * part))
                g_error("%g is not within %g %% of %g", value, part * 100, wanted);
}

static guint64
capacity_sectors(const DriveParams *params)
{
        return (guint64)(params->capacity_bytes / SECTOR_BYTES);
}

static void
test_seek_curve(void)
{
        static const struct {
                guint32 cylinders;
                double track, average, full;
        } cases[] = {
                {87616, 0.8, 8.5, 16},   {110144, 1, 11, 20},    {60000, 0.53, 4.84, 9.57},
                {85472, 0.4, 4.6, 8.68}, {50000, 0.23, 7.4, 14}, {1962, 3.64, 12.83, 23.69},
                {30000, 0.8, 9.5, 14.5}, /* above what a smooth curve reaches: a break */
        };

        for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
                guint32 n = cases[i].cylinders;
                SeekCurve curve;

                seek_curve_solve(&curve, n, cases[i].track, cases[i].average, cases[i].full);
                assert_near(seek_curve_ms(&curve, 1), cases[i].track, 1e-6);
                assert_near(seek_curve_ms(&curve, n - 1), cases[i].full, 1e-6);
                assert_near(seek_curve_mean_ms(&curve, n), cases[i].average, 1e-4);
                g_assert_cmpfloat(seek_curve_ms(&curve, 0), ==, 0);
                for (guint32 d = 1; d + 1 < n; d++)
                        g_assert_cmpfloat(seek_curve_ms(&curve, d), <=,
                                          seek_curve_ms(&curve, d + 1) + 1e-9);
        }
}

/* Given the HP 97560's track, average and full stroke, its published curve comes back. */
static void
test_seek_curve_hp97560(void)
{
        SeekCurve curve;
        double sum = 0, n = 1962;

        for (guint32 d = 1; d < n; d++)
                sum += 2 * (n - d) * (d <= 383 ? 3.24 + 0.4 * sqrt(d) : 8.00 + 0.008 * d);
        assert_near(sum / (n * n), 12.83, 0.001);
        seek_curve_solve(&curve, 1962, 3.64, sum / (n * n), 8.00 + 0.008 * 1961);
        for (guint32 d = 20; d < n; d += 20)
                assert_near(seek_curve_ms(&curve, d),
                            d <= 383 ? 3.24 + 0.4 * sqrt(d) : 8.00 + 0.008 * d, 0.03);
}

/* Places of all sectors follow each other; a whole track later the next track is one skew on. */
static void
test_geometry(void)
{
        DriveParams params = *drive_find("hdd-2006");
        HddGeometry geometry;
        guint64 sector = 0;
        HddPlace last;

        hdd_geometry_init(&geometry, &params, capacity_sectors(&params));
        g_assert_cmpuint(geometry.heads, ==, 2);
        for (int i = 0; i < 1000; i++) {
                HddPlace place = hdd_geometry_place(&geometry, sector), next, before;
                double turn;

                g_assert_cmpuint(place.sector, ==, 0);
                before = hdd_geometry_place(&geometry, sector + place.sectors_per_track - 1);
                next = hdd_geometry_place(&geometry, sector + place.sectors_per_track);
                g_assert_cmpuint(before.cylinder, ==, place.cylinder);
                g_assert_cmpuint(before.head, ==, place.head);
                g_assert_true(next.head != place.head || next.cylinder == place.cylinder + 1);
                turn = next.angle - place.angle;
                assert_near((turn < 0 ? turn + 1 : turn) * geometry.rotation_ms, geometry.skew_ms,
                            1e-4);
                sector += place.sectors_per_track;
        }
        last = hdd_geometry_place(&geometry, geometry.sectors - 1);
        g_assert_cmpuint(last.cylinder, <, geometry.cylinders);
        g_assert_cmpuint(last.cylinder, >=, geometry.cylinders - geometry.zone_cylinders);
}

static void
test_zone_rates(void)
{
        static const char *const drives[] = {"hdd-2006", "hdd-laptop", "hdd-10k"};

        for (guint i = 0; i < G_N_ELEMENTS(drives); i++) {
                DriveParams params = *drive_find(drives[i]);
                guint64 sectors = capacity_sectors(&params), run = 100000000 / SECTOR_BYTES;
                HddDrive drive;

                hdd_drive_init(&drive, &params, sectors);
                for (int end = 0; end < 2; end++) {
                        guint64 at = end ? sectors - run : 0, first = at;
                        double ms = 0, begin = 0;

                        /* 1 MiB requests, each 0.3 ms after the one before: nothing is lost. */
                        for (; at + 2048 <= first + run; at += 2048) {
                                HddCost cost = hdd_drive_serve(&drive, at, 2048, FALSE, ms + 0.3);

                                ms += 0.3 + cost.seek_ms + cost.rotation_ms + cost.transfer_ms;
                                if (at == first)
                                        begin = ms;
                                else
                                        g_assert_cmpfloat(cost.rotation_ms, ==, 0);
                        }
                        assert_near((double)(at - first - 2048) * SECTOR_BYTES / 1e3 / (ms - begin),
                                    end ? params.inner_mb_s : params.outer_mb_s, 0.01);
                        /* so that times do not run backwards */
                        hdd_drive_clear(&drive);
                        hdd_drive_init(&drive, &params, sectors);
                }
                hdd_drive_clear(&drive);
        }
}

/* Positioning is exact: the sector begins under the head when the wait is over. */
static void
test_positioning(void)
{
        DriveParams params = *drive_find("hdd-2006");
        g_autoptr(GRand) random = g_rand_new_with_seed(1);
        double ms = 0, seek = 0, rotation = 0;
        HddDrive drive;
        int count = 20000;

        hdd_drive_init(&drive, &params, capacity_sectors(&params));
        for (int i = 0; i < count; i++) {
                guint64 at =
                        (guint64)(g_rand_double(random) * (double)(drive.geometry.sectors - 8));
                HddPlace place = hdd_geometry_place(&drive.geometry, at);
                double predicted, angle;
                HddCost cost;

                hdd_drive_advance(&drive, ms);
                predicted = hdd_drive_positioning_ms(&drive, at, 8, FALSE, ms);
                cost = hdd_drive_serve(&drive, at, 8, FALSE, ms);
                g_assert_cmpfloat(fabs(predicted - cost.seek_ms - cost.rotation_ms), <, 1e-6);
                if (cost.cache_hit)
                        continue;
                angle = hdd_drive_angle(&drive, ms + cost.seek_ms + cost.rotation_ms) - place.angle;
                g_assert_cmpfloat(fabs(angle - round(angle)), <, 1e-3);
                g_assert_cmpfloat(cost.rotation_ms, <, drive.geometry.rotation_ms);
                seek += cost.seek_ms;
                rotation += cost.rotation_ms;
                ms += cost.seek_ms + cost.rotation_ms + cost.transfer_ms;
        }
        assert_near(rotation / count, drive.geometry.rotation_ms / 2, 0.02);
        /* Sectors are denser outside, so random sectors lie a little nearer than cylinders. */
        assert_near(seek / count, params.seek_average_ms, 0.03);
        hdd_drive_clear(&drive);
}

static void
test_read_ahead(void)
{
        DriveParams params = *drive_find("hdd-2006");
        HddDrive drive;
        HddCost cost;
        double ready, ms;

        hdd_drive_init(&drive, &params, capacity_sectors(&params));
        cost = hdd_drive_serve(&drive, 1000000, 8, FALSE, 0);
        ms = cost.seek_ms + cost.rotation_ms + cost.transfer_ms;
        g_assert_false(hdd_drive_cached(&drive, 1000008, 8, &ready));
        /* 5 ms at 65 MB/s are about 630 sectors. */
        hdd_drive_advance(&drive, ms + 5);
        g_assert_true(hdd_drive_cached(&drive, 1000008, 400, &ready));
        g_assert_true(hdd_drive_cached(&drive, 1000000, 8, &ready));
        g_assert_false(hdd_drive_cached(&drive, 1000008, 1000, &ready));
        /* A request that reaches beyond runs on with the head. */
        cost = hdd_drive_serve(&drive, 1000400, 800, FALSE, ms + 5);
        g_assert_true(cost.cache_hit);
        g_assert_cmpfloat(cost.seek_ms + cost.rotation_ms, ==, 0);
        g_assert_cmpfloat(cost.transfer_ms, <, 6);
        /* The segment's size is a limit: 1 MiB behind what was read, not more. */
        hdd_drive_advance(&drive, ms + 1000);
        g_assert_false(drive.ahead_active);
        g_assert_true(hdd_drive_cached(&drive, 1001200, 2048, &ready));
        g_assert_false(hdd_drive_cached(&drive, 1001200, 2049, &ready));
        /* A write takes away what it overlaps. */
        hdd_drive_invalidate(&drive, 1001500, 8);
        g_assert_true(hdd_drive_cached(&drive, 1001200, 300, &ready));
        g_assert_false(hdd_drive_cached(&drive, 1001500, 8, &ready));
        hdd_drive_drop_cache(&drive);
        g_assert_false(hdd_drive_cached(&drive, 1001200, 8, &ready));
        hdd_drive_clear(&drive);
}

/* IOPS at depth 1, 4, 8 and 32, shortest positioning first, against independent simulations. */
static void
test_random_iops(void)
{
        static const struct {
                const char *drive;
                double rpm, track, average, full;
                double iops[4];
        } cases[] = {
                {"hdd-2006", 7200, 0.8, 8.5, 16, {78, 109, 127, 176}},
                {"hdd-laptop", 5400, 1, 11, 20, {60, 83, 97, 133}},
                {"hdd-10k", 10000, 0.4, 4.6, 4.6 / 0.53, {129, 181, 214, 301}},
        };
        static const guint depths[] = {1, 4, 8, 32};

        for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
                DriveParams params = *drive_find(cases[i].drive);

                params.rpm = cases[i].rpm;
                params.seek_track_ms = cases[i].track;
                params.seek_average_ms = cases[i].average;
                params.seek_full_ms = cases[i].full;
                for (guint d = 0; d < G_N_ELEMENTS(depths); d++) {
                        g_autoptr(GRand) random = g_rand_new_with_seed(7);
                        guint64 queue[32];
                        double ms = 0;
                        int count = 10000;
                        HddDrive drive;

                        hdd_drive_init(&drive, &params, capacity_sectors(&params));
                        for (int n = -(int)depths[d]; n < count; n++) {
                                guint best = 0;
                                double best_ms = INFINITY;
                                HddCost cost;

                                if (n < 0) {
                                        best = (guint)-n - 1;
                                } else {
                                        ms += params.overhead_us / 1e3;
                                        hdd_drive_advance(&drive, ms);
                                        for (guint q = 0; q < depths[d]; q++) {
                                                double wait = hdd_drive_positioning_ms(
                                                        &drive, queue[q], 8, FALSE, ms);

                                                if (wait < best_ms) {
                                                        best_ms = wait;
                                                        best = q;
                                                }
                                        }
                                        cost = hdd_drive_serve(&drive, queue[best], 8, FALSE, ms);
                                        ms += cost.seek_ms + cost.rotation_ms + cost.transfer_ms;
                                }
                                queue[best] = (guint64)(g_rand_double(random) *
                                                        (double)(drive.geometry.sectors - 8));
                        }
                        g_test_message("%s depth %u: %.1f IOPS, wanted %g", cases[i].drive,
                                       depths[d], count * 1e3 / ms, cases[i].iops[d]);
                        assert_near(count * 1e3 / ms, cases[i].iops[d], 0.10);
                        hdd_drive_clear(&drive);
                }
        }
}

/* One request costs latency + transfer; the caps hold for many. */
static void
test_flash(void)
{
        DriveParams params = *drive_find("ebs");
        FlashDrive drive;
        FlashCost cost;
        double end = 0;

        flash_drive_init(&drive, &params);
        cost = flash_drive_serve(&drive, 125000, 0, 10);
        assert_near(cost.start_ms + cost.latency_ms + cost.transfer_ms, 10 + 1 + 1, 1e-9);
        flash_drive_clear(&drive);

        flash_drive_init(&drive, &params);
        for (int i = 0; i < 3000; i++) {
                cost = flash_drive_serve(&drive, 4096, 0, 0);
                end = cost.start_ms + cost.latency_ms + cost.transfer_ms;
        }
        assert_near(end, 1000, 0.01);
        flash_drive_clear(&drive);

        flash_drive_init(&drive, &params);
        for (int i = 0; i < 125; i++) {
                cost = flash_drive_serve(&drive, 1000000, 0, 0);
                end = cost.start_ms + cost.latency_ms + cost.transfer_ms;
        }
        assert_near(end, 1000, 0.01);
        flash_drive_clear(&drive);

        params = *drive_find("sd");
        flash_drive_init(&drive, &params);
        for (int i = 0; i < 1000; i++) {
                cost = flash_drive_serve(&drive, 4096, 0, 0);
                end = cost.start_ms + cost.latency_ms + cost.transfer_ms;
        }
        assert_near(end, 1000 * (0.6 + 0.2048), 0.01);
        flash_drive_clear(&drive);
}

/* The run set against a plain array of flags. */
static void
test_write_cache(void)
{
        g_autoptr(GRand) random = g_rand_new_with_seed(3);
        gboolean flags[256] = {FALSE};
        WriteCache cache;

        write_cache_init(&cache);
        for (int i = 0; i < 20000; i++) {
                guint start = (guint)g_rand_int_range(random, 0, 250);
                guint end = start + (guint)g_rand_int_range(random, 1, 7);
                gboolean add = g_rand_boolean(random);
                guint64 sum = 0, clear = 0;

                for (guint s = start; s < end; s++)
                        clear += !flags[s];
                g_assert_cmpuint(write_cache_new_sectors(&cache, start, end), ==, clear);
                g_assert_cmpint(write_cache_holds(&cache, start, end), ==, clear == 0);
                if (add)
                        write_cache_add(&cache, start, end);
                else
                        write_cache_remove(&cache, start, end);
                for (guint s = start; s < end; s++)
                        flags[s] = add;
                for (guint s = 0; s < 256; s++)
                        sum += flags[s];
                g_assert_cmpuint(cache.sectors, ==, sum);
                for (guint r = 0; r < cache.runs->len; r++) {
                        SectorRun run = g_array_index(cache.runs, SectorRun, r);

                        g_assert_cmpuint(run.start, <, run.end);
                        if (r > 0)
                                g_assert_cmpuint(g_array_index(cache.runs, SectorRun, r - 1).end, <,
                                                 run.start);
                        for (guint64 s = run.start; s < run.end; s++)
                                g_assert_true(flags[s]);
                }
        }
        write_cache_clear(&cache);
}

static void
test_options(void)
{
        DriveParams params = *drive_find("hdd-2006");
        g_autoptr(GError) error = NULL;

        g_assert_null(drive_find("floppy"));
        g_assert_true(drive_set_option(&params, "rpm", "5400", &error));
        g_assert_no_error(error);
        g_assert_cmpfloat(params.rpm, ==, 5400);
        g_assert_false(drive_set_option(&params, "rpm", "fast", NULL));
        g_assert_false(drive_set_option(&params, "rpm", "nan", NULL));
        g_assert_false(drive_set_option(&params, "rpm", "-1", NULL));
        g_assert_false(drive_set_option(&params, "latency-us", "1", NULL));
        g_assert_false(drive_set_option(&params, "colour", "1", NULL));
        g_assert_true(drive_check(&params, NULL));
        params.seek_average_ms = 15.9;
        g_assert_false(drive_check(&params, NULL));
}

/* A log comes back as written; one cut off in a record ends before it. */
static void
test_log(void)
{
        g_autofree char *path = NULL;
        g_autoptr(GByteArray) data = g_byte_array_new();
        g_autoptr(GError) error = NULL;
        int fd = g_file_open_tmp("slowdisk-log-XXXXXX", &path, &error);
        WriteLog *log;
        LogHeader header;
        LogRecord record;

        g_assert_no_error(error);
        close(fd);
        log = write_log_open(path, 1 << 20, &error);
        g_assert_no_error(error);
        g_assert_cmpint(write_log_append(log, LOG_WRITE, 512, 5, "hello"), ==, 0);
        g_assert_cmpint(write_log_append(log, LOG_FLUSH, 0, 0, NULL), ==, 1);
        g_assert_cmpint(write_log_append(log, LOG_DISCARD, 4096, 8192, NULL), ==, 2);
        g_assert_cmpint(write_log_append(log, LOG_WRITE, 0, 6, "cut of"), ==, 3);
        write_log_close(log);
        g_assert_cmpint(truncate(path, 32 + 4 * 40 + 5 + 3), ==, 0);

        fd = write_log_open_read(path, &header, &error);
        g_assert_no_error(error);
        g_assert_cmpuint(header.device_bytes, ==, 1 << 20);
        g_assert_true(write_log_next(fd, &record, data, &error));
        g_assert_cmpuint(record.offset, ==, 512);
        g_assert_cmpmem(data->data, data->len, "hello", 5);
        g_assert_true(write_log_next(fd, &record, data, &error));
        g_assert_cmpuint(record.kind, ==, LOG_FLUSH);
        g_assert_true(write_log_next(fd, &record, data, &error));
        g_assert_cmpuint(record.kind, ==, LOG_DISCARD);
        g_assert_cmpuint(record.bytes, ==, 8192);
        g_assert_false(write_log_next(fd, &record, data, &error));
        g_assert_no_error(error);
        close(fd);
        g_unlink(path);
}

int
main(int argc, char **argv)
{
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/slowdisk/seek-curve", test_seek_curve);
        g_test_add_func("/slowdisk/seek-curve-hp97560", test_seek_curve_hp97560);
        g_test_add_func("/slowdisk/geometry", test_geometry);
        g_test_add_func("/slowdisk/zone-rates", test_zone_rates);
        g_test_add_func("/slowdisk/positioning", test_positioning);
        g_test_add_func("/slowdisk/read-ahead", test_read_ahead);
        g_test_add_func("/slowdisk/random-iops", test_random_iops);
        g_test_add_func("/slowdisk/flash", test_flash);
        g_test_add_func("/slowdisk/write-cache", test_write_cache);
        g_test_add_func("/slowdisk/options", test_options);
        g_test_add_func("/slowdisk/log", test_log);
        return g_test_run();
}
