// SPDX-License-Identifier: GPL-2.0-or-later
/* How `measure` prints what it found: a short table, or JSON; and reading its JSON back for
 * --before. */
#pragma once

#include "cli/cli.h"
#include "measure/estimate.h"

/* The figures of one measurement; what --before reads and compares. */
typedef struct {
        gchar *model;
        guint64 files, bytes, extents, runs, requests, seeks;
        double seek_ms, rotation_ms, transfer_ms, total_ms, sequential_ms;
} MeasureFigures;

typedef struct {
        const char *name; /* of the profile, or NULL for a list */
        const Profile *profile;
        const Layout *layout;
        const LayoutDisk *disk; /* the main one, NULL when nothing was measured */
        const LoadEstimate *load;
        const GArray *files;        /* LaunchFileCost, or NULL */
        const char *const *outside; /* paths to print, NULL: the profile's own */
        const GArray *situations;   /* Estimate */
        const GPtrArray *skipped;
        MeasureFigures figures;
        const MeasureFigures *before; /* or NULL */
} MeasureOutput;

/* Fills output->figures from the rest. The model's name stays the layout's. */
void measure_figures(MeasureOutput *output);
void measure_print(const MeasureOutput *output);
gboolean measure_print_json(const MeasureOutput *output, GError **error);

/* Reads what `measure --json` printed. Errors: COMMON_ERROR_INPUT. */
gboolean measure_figures_load(const char *path, MeasureFigures *ret, GError **error);
void measure_figures_clear(MeasureFigures *figures);
