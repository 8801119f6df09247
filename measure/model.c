// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The built-in drive classes and the formulas of one request: rate by zone, place of the arm, seek
 * time. Pure: functions of their arguments. Queues and reordering are in measure/request.c.
 *
 * The seek curve has three terms, t1 + a x^0.3 + b x over the part x of the stroke. It is fixed by
 * the three figures of a data sheet: t1 at no distance, `full` at x = 1, and the mean over uniform
 * pairs of places, where E[x^0.3] = 2 / (1.3 * 2.3) and E[x] = 1/3.
 */
#include "measure/model.h"

#include <math.h>

#include "common/error.h"

#define SEEK_POWER 0.3
#define MEAN_OF_POWER (2.0 / (1.3 * 2.3))
#define KIB 1024
#define MIB (1024 * 1024)

/* What an ordinary SATA drive has; only the first three need a source of their own. */
#define ROTATIONAL                                                                                 \
        .kind = DISK_ROTATIONAL, .overhead_ms = 0.15, .interface_bytes_per_ms = 200e3,             \
        .cache_bytes = 8 * MIB, .cache_segments = 16, .max_request_bytes = 1280 * KIB
#define FLASH .kind = DISK_FLASH, .max_request_bytes = 1280 * KIB

static const DiskModel classes[] = {
        /* Hitachi Deskstar T7K250 data sheet; t1 and full stroke derived from it. */
        {.name = "hdd-2006",
         ROTATIONAL,
         .capacity_bytes = 80000000000,
         .rotation_ms = 60e3 / 7200,
         .seek_t1_ms = 0.8,
         .seek_avg_ms = 8.5,
         .seek_full_ms = 16,
         .outer_bytes_per_ms = 67.8e3,
         .rho = 0.49,
         .queue_depth = 32},
        /* Hitachi Travelstar 5K160; rates assumed. */
        {.name = "hdd-laptop",
         ROTATIONAL,
         .capacity_bytes = 80000000000,
         .rotation_ms = 60e3 / 5400,
         .seek_t1_ms = 1,
         .seek_avg_ms = 11,
         .seek_full_ms = 20,
         .outer_bytes_per_ms = 40e3,
         .rho = 0.5,
         .queue_depth = 8},
        /* Maxtor 300 GB 10,000 rpm, measured. */
        {.name = "hdd-10k",
         ROTATIONAL,
         .capacity_bytes = 70000000000,
         .rotation_ms = 60e3 / 10000,
         .seek_t1_ms = 0.53,
         .seek_avg_ms = 4.84,
         .seek_full_ms = 9.57,
         .outer_bytes_per_ms = 77.6e3,
         .rho = 0.64,
         .queue_depth = 32},
        /* Ultrastar HC310, Constellation ES.3. */
        {.name = "hdd",
         ROTATIONAL,
         .capacity_bytes = 1000000000000,
         .rotation_ms = 60e3 / 7200,
         .seek_t1_ms = 0.23,
         .seek_avg_ms = 7.4,
         .seek_full_ms = 14,
         .outer_bytes_per_ms = 175e3,
         .rho = 0.47,
         .queue_depth = 32},
        /* Samsung 870 EVO, PM883 data sheets. */
        {.name = "ssd-sata",
         FLASH,
         .latency_ms = 0.1,
         .iops = 98000,
         .bytes_per_ms = 550e3,
         .queue_depth = 32},
        /* Samsung PM9A3 data sheet. */
        {.name = "nvme",
         FLASH,
         .latency_ms = 0.08,
         .iops = 850000,
         .bytes_per_ms = 6800e3,
         .queue_depth = 128},
        /* The floor of class A1; rate assumed. */
        {.name = "sd",
         FLASH,
         .latency_ms = 0.6,
         .iops = 1500,
         .bytes_per_ms = 20e3,
         .queue_depth = 1},
        /* AWS documentation; latency assumed until measured. */
        {.name = "ebs-gp3",
         FLASH,
         .latency_ms = 0.7,
         .iops = 3000,
         .bytes_per_ms = 125.0 * MIB / 1000,
         .queue_depth = 64},
        /* A volume whose blocks are fetched from a snapshot when first touched. */
        {.name = "ebs",
         FLASH,
         .latency_ms = 1,
         .iops = 3000,
         .bytes_per_ms = 125e3,
         .queue_depth = 64,
         .first_touch_ms = 5,
         .first_touch_bytes = 512 * KIB},
};

static const char *const class_names[] = {"hdd-2006", "hdd-laptop", "hdd-10k", "hdd", "ssd-sata",
                                          "nvme",     "sd",         "ebs-gp3", "ebs", NULL};

const char *const *
disk_model_names(void)
{
        return class_names;
}

DiskModel *
disk_model_new(const char *name, GError **error)
{
        g_autofree gchar *known = NULL;

        for (gsize i = 0; i < G_N_ELEMENTS(classes); i++)
                if (g_strcmp0(classes[i].name, name) == 0)
                        return disk_model_copy(&classes[i]);
        known = g_strjoinv(", ", (gchar **)class_names);
        g_set_error(error, COMMON_ERROR, COMMON_ERROR_USAGE,
                    "no device model of this name; use one of %s", known);
        return NULL;
}

DiskModel *
disk_model_copy(const DiskModel *model)
{
        DiskModel *copy = g_memdup2(model, sizeof(*model));

        copy->name = g_strdup(model->name);
        return copy;
}

void
disk_model_free(DiskModel *model)
{
        if (model == NULL)
                return;
        g_free(model->name);
        g_free(model);
}

/* Recording zones fill an annulus of constant areal density: the rate falls with the square root of
 * the part of the surface that lies behind. */
double
disk_model_rate_bytes_per_ms(const DiskModel *model, double u)
{
        if (model->kind == DISK_FLASH)
                return model->bytes_per_ms;
        u = CLAMP(u, 0.0, 1.0);
        return model->outer_bytes_per_ms * sqrt(1 - u * (1 - model->rho * model->rho));
}

double
disk_model_radius(const DiskModel *model, double u)
{
        if (model->kind == DISK_FLASH)
                return 0;
        if (model->rho >= 1)
                return CLAMP(u, 0.0, 1.0);
        return (1 - disk_model_rate_bytes_per_ms(model, u) / model->outer_bytes_per_ms) /
               (1 - model->rho);
}

double
disk_model_turns(const DiskModel *model, guint64 position_bytes)
{
        double u, tracks;

        if (model->kind == DISK_FLASH || model->capacity_bytes == 0)
                return 0;
        u = (double)position_bytes / (double)model->capacity_bytes;
        /* The integral of du / R(u), which is proportional to the radius. */
        tracks = 2.0 / (1 + model->rho) * (double)model->capacity_bytes /
                 (model->outer_bytes_per_ms * model->rotation_ms);
        return tracks * disk_model_radius(model, u);
}

static double
seek_curve_ms(const DiskModel *model, double x)
{
        double a = ((model->seek_avg_ms - model->seek_t1_ms) -
                    (model->seek_full_ms - model->seek_t1_ms) / 3) /
                   (MEAN_OF_POWER - 1.0 / 3);
        double b = (model->seek_full_ms - model->seek_t1_ms) - a;

        if (x <= 0)
                return 0;
        return model->seek_t1_ms + a * pow(x, SEEK_POWER) + b * x;
}

double
disk_model_seek_ms(const DiskModel *model, double u1, double u2)
{
        double capacity = (double)model->capacity_bytes;

        if (model->kind == DISK_FLASH)
                return 0;
        u1 = CLAMP(u1, 0.0, 1.0);
        u2 = CLAMP(u2, 0.0, 1.0);
        if (capacity > 0 && floor(disk_model_turns(model, (guint64)(u1 * capacity))) ==
                                    floor(disk_model_turns(model, (guint64)(u2 * capacity))))
                return 0;
        return seek_curve_ms(model,
                             fabs(disk_model_radius(model, u1) - disk_model_radius(model, u2)));
}

/* Curves of seek times are steep at x = 0 (a root, or a power below 1): substituting x = s^5 makes
 * the integrand smooth there, so that Simpson's rule with few steps is enough. */
double
seek_curve_mean_ms(double (*curve)(double x, gconstpointer data), gconstpointer data)
{
        const int steps = 4096;
        double sum = 0;

        for (int i = 0; i <= steps; i++) {
                double s = (double)i / steps;
                double x = pow(s, 5);
                double weight = i == 0 || i == steps ? 1 : i % 2 == 1 ? 4 : 2;

                if (i > 0)
                        sum += weight * 2 * (1 - x) * curve(x, data) * 5 * pow(s, 4);
        }
        return sum / (3.0 * steps);
}

static double
model_curve(double x, gconstpointer data)
{
        return seek_curve_ms(data, x);
}

double
disk_model_seek_mean_ms(const DiskModel *model)
{
        if (model->kind == DISK_FLASH)
                return 0;
        return seek_curve_mean_ms(model_curve, model);
}
