// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From what was used to what is to be read: the ranges of a profile, merged over small gaps, in the
 * order in which a replay reads them and a relocation lays them out. Pure.
 *
 * Both must use the same list, since a replay of a relocated profile is one sequential read.
 */
#pragma once

#include "common/profile.h"

typedef struct {
        guint32 file;         /* index into Profile.files */
        guint64 offset_bytes; /* page aligned */
        guint64 length_bytes; /* clipped to the file's size, rounded up to the page */
        guint64 first_use_us; /* of its earliest page */
        guint64 used_bytes;   /* pages really used in it */
} OrderedRange;

typedef struct {
        guint64 gap_bytes; /* merge two used ranges of a file whose gap is not larger; default 16384
                            */
        guint64 window_us; /* but only if their first uses lie within this; 0 = no limit */
        gboolean whole_files; /* every file as one range from 0 to its size, at its first use */
} RangesOptions;

#define RANGES_GAP_BYTES_DEFAULT (4 * 4096)

/* Returns a GArray of OrderedRange in order of first use (ties: file, offset). options NULL =
 * defaults. */
GArray *ranges_from_profile(const Profile *profile, const RangesOptions *options);

/* The same with whole_files, for every unit a profile can be planned in. Sum of length_bytes. */
guint64 ranges_total_bytes(const GArray *ranges);
