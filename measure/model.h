// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The disk model: what requests cost on a given drive. Formulas and their sources: docs/model.md of
 * this project. Pure; units ms and bytes.
 */
#pragma once

#include <glib.h>

typedef enum { DISK_ROTATIONAL, DISK_FLASH } DiskKind;

typedef struct {
        gchar *name;
        DiskKind kind;
        guint64 capacity_bytes; /* LBA range; 0 = the device's size. The built-in classes come with
                                   that of a small member: what is smaller is the first part of such
                                   a drive (a loop file, a virtual disk) */
        /* rotational */
        double rotation_ms; /* T, one turn */
        double seek_t1_ms, seek_avg_ms, seek_full_ms;
        double outer_bytes_per_ms;
        double rho;                    /* inner / outer rate */
        double overhead_ms;            /* o, a request */
        double interface_bytes_per_ms; /* from the drive's cache */
        guint64 cache_bytes;           /* of read-ahead cache, 0 = none */
        guint cache_segments;          /* how many places the cache follows */
        guint queue_depth;             /* NCQ; flash: requests served at once */
        /* flash and network */
        double latency_ms;
        double iops; /* 0 = no limit */
        double bytes_per_ms;
        double first_touch_ms; /* per region, lazily loaded volumes */
        guint64 first_touch_bytes;
        /* common */
        guint64 max_request_bytes;
} DiskModel;

/* One of the built-in classes; NULL and COMMON_ERROR_USAGE naming the known ones otherwise. */
DiskModel *disk_model_new(const char *name, GError **error);
DiskModel *disk_model_copy(const DiskModel *model);
void disk_model_free(DiskModel *model);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DiskModel, disk_model_free)
const char *const *disk_model_names(void);

/* u = position / capacity in [0, 1]. */
double disk_model_rate_bytes_per_ms(const DiskModel *model, double u);
/* Radial position in [0, 1], 0 = outermost track. */
double disk_model_radius(const DiskModel *model, double u);
/* Time of a seek; 0 on the same track. */
double disk_model_seek_ms(const DiskModel *model, double u1, double u2);
/* Mean of the seek curve over uniform pairs of radial positions (equals seek_avg_ms by
 * construction). */
double disk_model_seek_mean_ms(const DiskModel *model);

/* The mean of any curve over uniform pairs of points in [0, 1]: the integral of 2 (1 - x) curve(x),
 * where x > 0 is their distance. */
double seek_curve_mean_ms(double (*curve)(double x, gconstpointer data), gconstpointer data);

/* The turns that the platter makes while everything before this place is read at the sustained
 * rate: the whole part numbers the track, the fraction is the angle (a pseudo-phase: real drives
 * start their tracks where they like, but differences over a few tracks are true). */
double disk_model_turns(const DiskModel *model, guint64 position_bytes);
