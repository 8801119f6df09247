// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From names that somebody else recorded to a profile of what is on this machine now: symbolic
 * links followed (inside the root) and the target recorded once, types checked through O_PATH
 * descriptors before anything is opened, so that no FIFO, socket or device can hold it up. One
 * descriptor at a time is open.
 */
#pragma once

#include <glib.h>

#include "common/profile.h"
#include "profiler/import.h"

typedef struct {
        const char *root; /* a tree other than /, NULL = / */
        /* What a program opens beside files (devices, /proc, folders, files of its own that are
         * gone) is left out quietly: counted, not "skipped". */
        gboolean trace;
        const volatile int *interrupted; /* stop when it is set; may be NULL */
} ResolveOptions;

typedef struct {
        GPtrArray *skipped;  /* Skipped *: could not be taken */
        GPtrArray *left_out; /* Skipped *: nothing that a profile holds */
        GPtrArray *notes;    /* gchar *: for people */
        guint64 replaced;    /* another inode than in the recording */
} ResolveResult;

void resolve_result_init(ResolveResult *result);
void resolve_result_clear(ResolveResult *result);

/* Fills fs, files, ranges, metadata, processes and marks of the (empty) profile, whose page_bytes
 * must be set, and its source. Errors: COMMON_ERROR_USAGE (root), COMMON_ERROR_FAILED,
 * COMMON_ERROR_INTERRUPTED. */
gboolean resolve_profile(const ImportList *list, const ResolveOptions *options, Profile *profile,
                         ResolveResult *result, GError **error);
