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
        guint64 capacity_bytes;   /* LBA range; 0 = the device's size */
        /* rotational */
        double rotation_ms;       /* T, one turn */
        double seek_t1_ms, seek_avg_ms, seek_full_ms;
        double outer_bytes_per_ms;
        double rho;               /* inner / outer rate */
        double overhead_ms;       /* o, a request */
        guint queue_depth;        /* NCQ */
        /* flash and network */
        double latency_ms;
        double iops;              /* 0 = no limit */
        double bytes_per_ms;
        double first_touch_ms;    /* per region, lazily loaded volumes */
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
double disk_model_seek_ms(const DiskModel *model, double u1, double u2);
/* Mean of the seek curve over uniform pairs of radial positions (equals seek_avg_ms by construction). */
double disk_model_seek_mean_ms(const DiskModel *model);
