// SPDX-License-Identifier: GPL-2.0-or-later
/* Inside of the merge: merge.c chooses files, merge-ranges.c their ranges. */
#pragma once

#include "common/profile.h"

/* Files got other numbers: moved[i] is the new index of file i, G_MAXUINT32 = it went. Ranges of
 * files that went go too, waits for them name none. */
void merge_renumber(Profile *profile, const guint32 *moved);

/* Chooses the ranges of each file of `last`: sources[i] is the index of the same, unchanged file in
 * `earlier`, G_MAXUINT32 = none. Files marked LOW have their earlier ranges, from base_us on.
 * Returns how many files kept better known ranges, and sets last->source and last->exact. */
guint merge_ranges(Profile *last, const Profile *earlier, const guint32 *sources, guint64 base_us);
