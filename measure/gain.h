// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What reading ahead and relocating would gain for a profile, in three predicted times: the one
 * line that `run` prints after its first recording.
 */
#pragma once

#include <glib.h>

#include "common/profile.h"

typedef struct {
        const char *model;   /* the drive class the figures are for */
        double cold_ms;      /* no prefetch, as it lies, the device's own readahead */
        double prefetch_ms;  /* as it lies */
        double relocated_ms; /* laid out in order of first use, and prefetched */
        gboolean worth_it; /* relocation gains at least 5 % of the prefetched start, on a drive that
                              seeks */
} RelocationGain;

/* `root` as --root, or NULL. Errors: what measure says when nothing of it lies on a disk. */
gboolean relocation_gain_estimate(const Profile *profile, const char *root, RelocationGain *ret,
                                  GError **error);
