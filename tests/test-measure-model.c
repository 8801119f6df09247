// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The formulas of one request against what is known from elsewhere: data sheets and published
 * drives.
 */
#include <math.h>

#include "common/error.h"
#include "measure/model.h"

#define assert_within(value, wanted, part)                                                         \
        g_assert_cmpfloat_with_epsilon((value), (wanted), fabs((double)(wanted)) * (part))

/* Every class: three figures in, the same three figures out. */
static void
test_seek_figures(void)
{
        for (const char *const *name = disk_model_names(); *name != NULL; name++) {
                g_autoptr(DiskModel) model = disk_model_new(*name, NULL);

                g_assert_nonnull(model);
                if (model->kind != DISK_ROTATIONAL)
                        continue;
                assert_within(disk_model_seek_mean_ms(model), model->seek_avg_ms, 1e-4);
                assert_within(disk_model_seek_ms(model, 0, 1), model->seek_full_ms, 1e-9);
                g_assert_cmpfloat(disk_model_seek_ms(model, 0.5, 0.5), ==, 0);
                g_assert_cmpfloat(disk_model_seek_ms(model, 0.5, 0.50001), >=, model->seek_t1_ms);
                g_assert_cmpfloat(disk_model_seek_ms(model, 0.2, 0.7), ==,
                                  disk_model_seek_ms(model, 0.7, 0.2));
        }
}

static void
test_seek_rises(void)
{
        g_autoptr(DiskModel) model = disk_model_new("hdd-2006", NULL);
        double last = 0;

        for (int i = 1; i <= 1000; i++) {
                double ms = disk_model_seek_ms(model, 0, i / 1000.0);

                g_assert_cmpfloat(ms, >=, last);
                last = ms;
        }
}

/* 0 on the track itself: half a track on is no seek, two tracks on is one. */
static void
test_same_track(void)
{
        g_autoptr(DiskModel) model = disk_model_new("hdd-2006", NULL);
        double track = model->outer_bytes_per_ms * model->rotation_ms;
        double capacity = (double)model->capacity_bytes;

        g_assert_cmpfloat(disk_model_seek_ms(model, 0, track / 2 / capacity), ==, 0);
        g_assert_cmpfloat(disk_model_seek_ms(model, 0, track * 2 / capacity), >, 0.79);
}

/* HP 97560 (Ruemmler and Wilkes 1994): a curve in two pieces over 1,962 cylinders; mean 12.83 ms.
 */
static double
hp97560(double x, gconstpointer data G_GNUC_UNUSED)
{
        double distance = x * 1962;

        return distance <= 383 ? 3.24 + 0.400 * sqrt(distance) : 8.00 + 0.008 * distance;
}

static void
test_integration(void)
{
        assert_within(seek_curve_mean_ms(hp97560, NULL), 12.83, 0.002);
}

static void
test_zones(void)
{
        g_autoptr(DiskModel) model = disk_model_new("hdd-2006", NULL);
        double seconds = 0, capacity = (double)model->capacity_bytes;

        assert_within(disk_model_rate_bytes_per_ms(model, 0), 67.8e3, 1e-9);
        assert_within(disk_model_rate_bytes_per_ms(model, 1), 67.8e3 * 0.49, 1e-9);
        g_assert_cmpfloat(disk_model_radius(model, 0), ==, 0);
        assert_within(disk_model_radius(model, 1), 1, 1e-9);
        /* The turns are the time of reading everything before at the rate of each place. */
        for (int i = 0; i < 10000; i++)
                seconds +=
                        capacity / 10000 / disk_model_rate_bytes_per_ms(model, (i + 0.5) / 10000);
        assert_within(disk_model_turns(model, model->capacity_bytes), seconds / model->rotation_ms,
                      1e-4);
        assert_within(disk_model_turns(model, 565000), 1, 0.001);
}

static void
test_unknown(void)
{
        g_autoptr(GError) error = NULL;

        g_assert_null(disk_model_new("hdd-1066", &error));
        g_assert_error(error, COMMON_ERROR, COMMON_ERROR_USAGE);
        g_assert_nonnull(strstr(error->message, "hdd-2006"));
}

int
main(int argc, char **argv)
{
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/measure/model/seek-figures", test_seek_figures);
        g_test_add_func("/measure/model/seek-rises", test_seek_rises);
        g_test_add_func("/measure/model/same-track", test_same_track);
        g_test_add_func("/measure/model/integration-hp97560", test_integration);
        g_test_add_func("/measure/model/zones", test_zones);
        g_test_add_func("/measure/model/unknown-name", test_unknown);
        return g_test_run();
}
