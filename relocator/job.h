// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Moving the files of a placed plan, batch by batch: check again, read, hash, move, write out, read
 * back, compare. Used by relocate.c.
 */
#pragma once

#include <glib.h>

#include "relocator/check.h"
#include "relocator/donor.h"
#include "relocator/plan.h"
#include "relocator/relocate.h"

typedef struct {
        const Profile *profile;
        const RelocateOptions *options;
        const Target *target;
        Plan *plan;
        const Donor *donor;
        GPtrArray *skipped;  /* of the result */
        guint64 done_blocks; /* progress */
        guint64 moved_blocks;
        guint moved_files;
        gboolean interrupted;
} Job;

/* Moves all files of the plan. FALSE with RELOCATOR_ERROR_VERIFY when contents came back different:
 * nothing more is moved then. */
gboolean job_run(Job *job, GError **error);
