// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The donor: one unnamed file with the blocks that the data will be moved to, for the whole list.
 * It goes away with its descriptor, and with it, after the moves, the old blocks.
 */
#pragma once

#include <glib.h>

#include "relocator/plan.h"

typedef struct {
        int fd;
        GArray *segments; /* Segment, in order of place on the disk: what is to be used */
} Donor;

void donor_free(Donor *donor);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Donor, donor_free)

/* Allocates a donor for the plan on the file system of the folder, in as few runs as its free
 * space allows; more than needed is allocated for a moment when the first try is not in one run. A
 * reserve of free space is left at every moment. The donor's map is read before it is handed out.
 * Errors: RELOCATOR_ERROR_NO_SPACE, RELOCATOR_ERROR_FAILED; nothing is left behind. */
Donor *donor_new(int dir_fd, const char *dir, const Plan *plan, GError **error);

/* What donor_new() could use at best by the map of free space (needs root): segments whose
 * donor_block counts on from 0. For a dry run. */
GArray *free_segments(int dir_fd, guint32 block_bytes, GError **error);
