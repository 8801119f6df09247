// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Relocating a profile: check, plan, allocate, move, verify.
 *
 * Safe at every moment: a crash leaves each page in the old or the new place, never torn (the
 * kernel moves page by page under the journal). The old blocks stay in the donor until the file
 * that had them was read back and found equal. A file with any failure is moved back and named; the
 * others are done.
 */
#pragma once

#include <glib.h>

#include "common/profile.h"
#include "relocator/error.h"

typedef enum {
        RELOCATE_UNIT_RANGE, /* the ranges that a replay reads */
        RELOCATE_UNIT_FILE,  /* whole files */
} RelocateUnit;

typedef struct {
        RelocateUnit unit;
        gboolean dry_run; /* changes nothing; what a donor would look like is taken from free space
                           */
        gboolean force;   /* on drives without seeks, when little is gained, on snapshots */
        const char *root; /* --root or NULL */
        const volatile int *stop; /* non-zero: stop between files */
        void (*progress)(guint64 done_bytes, guint64 total_bytes, void *data);
        void *progress_data;
} RelocateOptions;

typedef struct {
        const char *method; /* "move" */
        guint64 planned_bytes, moved_bytes;
        guint files;        /* moved, or on a dry run would be */
        GPtrArray *skipped; /* Skipped * (common/json.h); paths inside the file system */
        guint64 runs_before,
                runs_after;        /* of everything that can be moved, in the order of the plan */
        gint64 window_start_bytes; /* of the new place on the file system's device, -1 = none */
        gchar *declined;           /* why nothing was done although it could, or NULL */
        gboolean interrupted;      /* stopped; what was done until then is whole */
} RelocateResult;

void relocate_result_clear(RelocateResult *result);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(RelocateResult, relocate_result_clear)

/* FALSE when nothing could be done at all: RELOCATOR_ERROR_NOT_EXT4 / _REFUSED (what is missing is
 * named), _NO_SPACE, or _VERIFY (contents came back different; the message says what became of
 * them). `ret` is filled in both cases. Skipped files and a decline are no failure. */
gboolean relocate_profile(const Profile *profile, const RelocateOptions *options,
                          RelocateResult *ret, GError **error);
