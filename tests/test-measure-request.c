// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The queue and the mechanics against measured and published rates, and the directions that the
 * whole project rests on: time order >= sorted >= contiguous.
 */
#include <math.h>
#include <stdlib.h>

#include "measure/request.h"

#define KIB 1024
#define MIB (1024 * 1024)

#define assert_within(value, wanted, part)                                                         \
        g_assert_cmpfloat_with_epsilon((value), (wanted), fabs((double)(wanted)) * (part))

static DiskModel *
rotational(double rpm, double t1, double avg, double full)
{
        DiskModel *model = disk_model_new("hdd-2006", NULL);

        model->rotation_ms = 60e3 / rpm;
        model->seek_t1_ms = t1;
        model->seek_avg_ms = avg;
        model->seek_full_ms = full;
        return model;
}

static Request *
random_requests(const DiskModel *model, gsize n, guint64 bytes, guint32 seed)
{
        g_autoptr(GRand) random = g_rand_new_with_seed(seed);
        Request *requests = g_new(Request, n);

        for (gsize i = 0; i < n; i++) {
                guint64 place = (guint64)(g_rand_double(random) * (double)model->capacity_bytes);

                requests[i].position_bytes = place / 4096 * 4096;
                requests[i].length_bytes = bytes;
        }
        return requests;
}

static double
iops(const DiskModel *model, guint depth, guint64 bytes)
{
        const gsize n = 3000;
        g_autofree Request *requests = random_requests(model, n, bytes, 7);
        RequestCost cost;

        request_stream_cost(model, requests, n, depth, FALSE, &cost);
        g_assert_cmpuint(cost.requests, ==, n);
        if (model->kind == DISK_ROTATIONAL)
                assert_within(cost.seek_ms + cost.rotation_ms + cost.transfer_ms + cost.overhead_ms,
                              cost.total_ms, 1e-6);
        return (double)n * 1000 / cost.total_ms;
}

/* Random 4 KiB reads at depths 1, 4, 8 and 32. */
static void
test_random_iops(void)
{
        static const struct {
                double rpm, t1, avg, full;
                double wanted[4];
        } drives[] = {
                {7200, 0.8, 8.5, 16, {78, 109, 127, 176}},
                {5400, 1, 11, 20, {60, 83, 97, 133}},
                {10000, 0.4, 4.6, 4.6 / 0.53, {129, 181, 214, 301}},
        };
        static const guint depths[] = {1, 4, 8, 32};

        for (gsize i = 0; i < G_N_ELEMENTS(drives); i++) {
                g_autoptr(DiskModel) model =
                        rotational(drives[i].rpm, drives[i].t1, drives[i].avg, drives[i].full);

                for (gsize k = 0; k < G_N_ELEMENTS(depths); k++) {
                        double rate = iops(model, depths[k], 4 * KIB);

                        g_test_message("%.0f rpm depth %u: %.1f IOPS, published %.0f",
                                       drives[i].rpm, depths[k], rate, drives[i].wanted[k]);
                        assert_within(rate, drives[i].wanted[k], 0.10);
                }
        }
}

/* Quantum Atlas 10K, 8 KiB random reads: 105/s measured. Its measured seek curve averages 5.6 ms.
 */
static void
test_atlas(void)
{
        g_autoptr(DiskModel) model = rotational(10025, 1.2, 5.6, 10.83);

        model->capacity_bytes = 9100000000;
        model->outer_bytes_per_ms = 21e3;
        model->rho = 0.66;
        assert_within(iops(model, 1, 8 * KIB), 105, 0.10);
}

/* gp3, 1,024 outstanding: 338.5 ms a request, 3,024 IOPS. */
static void
test_gp3(void)
{
        g_autoptr(DiskModel) model = disk_model_new("ebs-gp3", NULL);
        double rate = iops(model, 1024, 4 * KIB);

        assert_within(rate, 3024, 0.02);
        assert_within(1024 * 1000 / rate, 338.5, 0.02);
}

/* Formula 8: the largest of three bounds; at depth 1 of a device that does one thing at a time the
 * latency and the transfer of a request add up. */
static void
test_flash(void)
{
        g_autoptr(DiskModel) ssd = disk_model_new("ssd-sata", NULL);
        g_autoptr(DiskModel) card = disk_model_new("sd", NULL);
        g_autoptr(DiskModel) lazy = disk_model_new("ebs", NULL);
        g_autofree Request *requests = random_requests(ssd, 2000, 128 * KIB, 3);
        RequestCost cost;

        assert_within(iops(ssd, 1, 4 * KIB), 1000 / (0.1 + 4096 / 550e3), 0.02);
        assert_within(iops(ssd, 64, 4 * KIB), 98000, 0.05);
        request_stream_cost(ssd, requests, 2000, 32, FALSE, &cost);
        assert_within(cost.total_ms, 2000 * 128 * KIB / 550e3, 0.02);
        request_stream_cost(card, requests, 100, 1, FALSE, &cost);
        assert_within(cost.total_ms, 100 * (0.6 + 128 * KIB / 20e3), 0.02);
        for (gsize i = 0; i < 100; i++)
                requests[i] = (Request){i * 512 * KIB, 4 * KIB};
        request_stream_cost(lazy, requests, 100, 1, FALSE, &cost);
        assert_within(cost.total_ms, 100 * (1 + 5 + 4096 / 125e3), 0.02);
}

/* The whole of a run costs one positioning and the transfer, however it is cut. */
static void
test_sequential(void)
{
        g_autoptr(DiskModel) model = disk_model_new("hdd-2006", NULL);
        Request requests[640];
        RequestCost cost;

        for (gsize i = 0; i < G_N_ELEMENTS(requests); i++)
                requests[i] = (Request){1000 * (guint64)MIB + i * 64 * KIB, 64 * KIB};
        request_stream_cost(model, requests, G_N_ELEMENTS(requests), 1, FALSE, &cost);
        assert_within(cost.total_ms, 40 * MIB / disk_model_rate_bytes_per_ms(model, 0.013) + 8,
                      0.02);
        g_assert_cmpuint(cost.seeks, <=, 1);
}

/* A short gap forward costs the time it takes to pass by; a wide one no more than positioning. */
static void
test_forward_gap(void)
{
        g_autoptr(DiskModel) model = disk_model_new("hdd-2006", NULL);
        const guint64 base = 2000 * (guint64)MIB;
        double rate = disk_model_rate_bytes_per_ms(model, (double)base / 80e9);
        double last = 0;

        for (guint64 gap = 0; gap <= 16 * MIB; gap += 64 * KIB) {
                Request requests[2] = {{base, 64 * KIB}, {base + 64 * KIB + gap, 64 * KIB}};
                RequestCost one, two;
                double second;

                request_stream_cost(model, requests, 1, 1, FALSE, &one);
                request_stream_cost(model, requests, 2, 1, FALSE, &two);
                second = two.total_ms - one.total_ms;
                if (gap <= 256 * KIB)
                        assert_within(second, (double)(gap + 64 * KIB) / rate, 0.05);
                g_assert_cmpfloat(second, <=, (double)(gap + 64 * KIB) / rate * 1.05 + 0.5);
                g_assert_cmpfloat(second, <=,
                                  model->overhead_ms + 2 + model->rotation_ms + 64 * KIB / rate);
                last = second;
        }
        g_assert_cmpfloat(last, >, 5);
}

/* What lies a little behind the last read is in the drive's cache when the program comes late. */
static void
test_track_readahead(void)
{
        g_autoptr(DiskModel) model = disk_model_new("hdd-2006", NULL);
        g_autoptr(DriveSim) sim = drive_sim_new(model, FALSE);
        double end;
        guint32 piece;

        drive_sim_add(sim, 1000 * (guint64)MIB, 64 * KIB, 0);
        end = drive_sim_drain(sim, 0);
        piece = drive_sim_add(sim, 1000 * (guint64)MIB + 128 * KIB, 64 * KIB, 0);
        drive_sim_drain(sim, end + 20);
        g_assert_cmpfloat(drive_sim_done_ms(sim, piece) - end - 20, <, 1);
        /* The head has not gone further than the segment: this one costs a rotation. */
        piece = drive_sim_add(sim, 1002 * (guint64)MIB, 64 * KIB, 0);
        end = drive_sim_drain(sim, end + 40);
        g_assert_cmpfloat(drive_sim_cost(sim)->rotation_ms, >, 4);
}

static void
test_merge_and_split(void)
{
        g_autoptr(DiskModel) model = disk_model_new("hdd-2006", NULL);
        g_autoptr(DriveSim) sim = NULL;
        guint32 piece;

        model->max_request_bytes = 128 * KIB;
        sim = drive_sim_new(model, FALSE);
        for (guint64 i = 0; i < 8; i++)
                drive_sim_add(sim, i * 32 * KIB, 32 * KIB, (guint32)i); /* two requests */
        piece = drive_sim_add(sim, 10 * MIB, 300 * KIB, 9);             /* three */
        g_assert_cmpuint(drive_sim_pieces(sim)->len, ==, 11);
        g_assert_cmpuint(g_array_index(drive_sim_pieces(sim), DrivePiece, piece + 2).length_bytes,
                         ==, 44 * KIB);
        drive_sim_drain(sim, 0);
        g_assert_cmpuint(drive_sim_cost(sim)->requests, ==, 5);
        g_assert_cmpuint(drive_sim_cost(sim)->bytes, ==, 556 * KIB);
        for (guint i = 0; i < drive_sim_pieces(sim)->len; i++)
                g_assert_true(isfinite(drive_sim_done_ms(sim, i)));
}

/* Only an elevator finds neighbours that were not submitted side by side. */
static void
test_elevator_merges(void)
{
        g_autoptr(DiskModel) model = disk_model_new("hdd-2006", NULL);
        guint64 requests[2];

        for (int elevator = 0; elevator < 2; elevator++) {
                g_autoptr(DriveSim) sim = drive_sim_new(model, elevator);

                for (guint64 i = 0; i < 8; i++)
                        drive_sim_add(sim, (i * 3 % 8) * 32 * KIB, 32 * KIB, 0);
                drive_sim_drain(sim, 0);
                requests[elevator] = drive_sim_cost(sim)->requests;
        }
        g_assert_cmpuint(requests[0], >, 4);
        g_assert_cmpuint(requests[1], ==, 1);
}

static int
compare_requests(const void *a, const void *b)
{
        const Request *left = a, *right = b;

        return left->position_bytes < right->position_bytes
                       ? -1
                       : left->position_bytes > right->position_bytes;
}

static void
test_direction(void)
{
        g_autoptr(DiskModel) model = disk_model_new("hdd-2006", NULL);
        const gsize n = 500;
        g_autofree Request *requests = random_requests(model, n, 64 * KIB, 11);
        RequestCost time, sorted, relocated, again;

        request_stream_cost(model, requests, n, 1, FALSE, &time);
        qsort(requests, n, sizeof(*requests), compare_requests);
        request_stream_cost(model, requests, n, 1, FALSE, &sorted);
        /* Already in block order: an elevator has next to nothing to gain. */
        request_stream_cost(model, requests, n, 64, TRUE, &again);
        for (gsize i = 0; i < n; i++)
                requests[i].position_bytes = 100 * (guint64)MIB + i * 64 * KIB;
        request_stream_cost(model, requests, n, 1, FALSE, &relocated);
        g_assert_cmpfloat(time.total_ms, >, sorted.total_ms * 1.3);
        g_assert_cmpfloat(sorted.total_ms, >, relocated.total_ms * 3);
        g_assert_cmpfloat(again.total_ms, <=, sorted.total_ms);
        g_assert_cmpfloat(again.total_ms, >=, sorted.total_ms * 0.6);
}

/* Places beyond 2^31 blocks of 4 KiB, on a drive that large. */
static void
test_far_places(void)
{
        g_autoptr(DiskModel) model = disk_model_new("hdd", NULL);
        const guint64 far = G_GUINT64_CONSTANT(20) << 40;
        Request near_pair[2] = {{far, 4096}, {far + 4096, 4096}};
        Request far_pair[2] = {{far, 4096}, {far - (G_GUINT64_CONSTANT(1) << 43), 4096}};
        RequestCost near_cost, far_cost;

        model->capacity_bytes = G_GUINT64_CONSTANT(24) << 40;
        request_stream_cost(model, near_pair, 2, 1, FALSE, &near_cost);
        request_stream_cost(model, far_pair, 2, 1, FALSE, &far_cost);
        g_assert_cmpuint(far_cost.seeks, ==, near_cost.seeks + 1);
        g_assert_cmpfloat(far_cost.total_ms, >, near_cost.total_ms + 5);
}

int
main(int argc, char **argv)
{
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/measure/request/random-iops", test_random_iops);
        g_test_add_func("/measure/request/atlas-10k", test_atlas);
        g_test_add_func("/measure/request/gp3", test_gp3);
        g_test_add_func("/measure/request/flash", test_flash);
        g_test_add_func("/measure/request/sequential", test_sequential);
        g_test_add_func("/measure/request/forward-gap", test_forward_gap);
        g_test_add_func("/measure/request/track-readahead", test_track_readahead);
        g_test_add_func("/measure/request/merge-and-split", test_merge_and_split);
        g_test_add_func("/measure/request/elevator-merges", test_elevator_merges);
        g_test_add_func("/measure/request/direction", test_direction);
        g_test_add_func("/measure/request/far-places", test_far_places);
        return g_test_run();
}
