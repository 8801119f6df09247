// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Recording again under a name: the last start counts, and what is left to know of the two before.
 * Pure.
 *
 *  - Order and ranges are those of the last start.
 *  - A file that it did not use, but one of the two starts before did, is kept at the end (LOW);
 * one that none of the three used is dropped. Metadata objects likewise. So a profile never holds
 * more than three starts' worth.
 *  - A file that every start finds changed (another inode, size or modification time, written since
 *    the recording before) is left out, and remembered to be compared again: once it stays as it
 * is, it is taken in. A file changed by an upgrade (its time older than the recording before) and a
 * program (built anew) are taken as they are now.
 *  - Better knowledge of an unchanged file is not replaced by worse: ranges recorded exactly stay
 *    when the last start was recorded with readahead on (what it looked up or touched beside them
 * is added, for as long as the last start is the last), and ranges of used pages stay when the last
 *    start shows only what was read in, or opened. An incomplete recording replaces no ranges and
 * ages nothing.
 */
#pragma once

#include "common/profile.h"

typedef struct {
        /* TRUE for a program or library. Asked of changed files only; NULL = none is. */
        gboolean (*is_program)(const Profile *profile, const ProfileFile *file, gpointer data);
        gpointer data;
        const GPtrArray *left_out; /* gchar *, "UUID:path": files that `last` was left without for a
                                      reason, and which are not to be kept either; may be NULL */
} MergeOptions;

typedef struct {
        guint kept_low;      /* files kept at the end */
        guint dropped;       /* files that none of the last three starts used */
        guint kept_ranges;   /* files whose better known ranges were kept */
        GPtrArray *changing; /* gchar *, why: for each of the first `changing->len` entries of
                                last->changing, which the last start used */
} MergeResult;

void merge_result_clear(MergeResult *result);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(MergeResult, merge_result_clear)

/* TRUE when both are of the same program (argv[0]); only such profiles are to be merged. */
gboolean merge_same_program(const Profile *a, const Profile *b);

/* Makes `last`, as it was recorded, the profile to be saved; `earlier` (NULL = none) is the one
 * saved before under the name. */
void merge_profile(Profile *last, const Profile *earlier, const MergeOptions *options,
                   MergeResult *ret);
