// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From what was collected to the profile: names, sizes, settled pages, metadata objects. To be
 * called right after the start, while the kernel still has the names at hand.
 */
#pragma once

#include <glib.h>

#include "measure/mounts.h"
#include "profiler/collect.h"
#include "profiler/opens.h"
#include "profiler/rules.h"

typedef struct {
        Collector *collector;    /* NULL for source "opens" */
        Opens *opens;            /* stopped; NULL when not needed */
        GPtrArray *mounts;       /* Mount * */
        gboolean by_residency;   /* source "opens": ranges by what is in the page cache */
        guint64 start_ns;        /* monotonic: time zero */
        gint64 written_since_ns; /* wall clock: files with this mtime, or made then, or later, are
                                    left out: a file unpacked or copied with its old mtime is new
                                    too */
        const Rules *rules;      /* of paths to leave out; NULL = none */
        const char *root;        /* the tree recorded, that paths of rules count from; NULL = / */
        GHashTable *inode_readahead; /* dev_t (guint64 *) -> blocks at recording; may be NULL */
} BuildInput;

typedef struct {
        guint64 cached_before_bytes; /* of the used bytes: not read in during the recording */
        guint64 meta_seen_blocks;    /* metadata blocks whose reads were seen */
        guint64 meta_unknown_blocks; /* of these: no object found */
        guint64 meta_readahead;      /* objects dropped: only read beside a wanted one */
        GPtrArray *left_out;         /* Skipped *: path (outside) and reason */
        GPtrArray *left_out_inside;  /* gchar *: the same files as "UUID:path inside" */
        GArray *fs_devs;             /* dev_t of each entry of profile->fs */
        GPtrArray *notes;            /* gchar *: what could not be done, for people */
} BuildResult;

void build_result_init(BuildResult *result);
void build_result_clear(BuildResult *result);

/* Fills fs, files, ranges and unnamed_files of the profile; its source and exact must be set. */
void build_files(const BuildInput *input, Profile *profile, BuildResult *result);

/* Fills meta for the ext2/3/4 file systems of the profile. */
void build_metadata(const BuildInput *input, Profile *profile, BuildResult *result);
