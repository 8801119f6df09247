// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The compiler: profile + layout -> pack. Ranges come from ranges_from_profile(); metadata objects
 * are resolved to places through measure/metadata.h.
 */
#pragma once

#include <glib.h>

#include "common/profile.h"
#include "common/ranges.h"

typedef enum { REPLAY_ORDER_AUTO, REPLAY_ORDER_TIME, REPLAY_ORDER_BLOCK } ReplayOrder;

/* On the simulated 7200 rpm disk Writer (45 MiB) starts in 2.2 s with one bin for all, 2.45 s with
 * 8 MiB, 2.65 s with 2 MiB; on a simulated SD card in 3.0, 2.9, 2.9 s. */
#define COMPILE_BIN_BYTES_ROTATIONAL (64U << 20)
#define COMPILE_BIN_BYTES_FLASH (2U << 20)
#define COMPILE_META_GAP_BYTES_DEFAULT (32U << 10)

typedef struct {
        ReplayOrder order; /* AUTO: first use when the ranges lie on the disk in about that order
                              (relocated), else block order inside bins of first use */
        RangesOptions ranges;
        const char *root;  /* as replay_options.root */
        guint64 bin_bytes; /* AUTO sorts by place inside bins of so many bytes; 0 = by the kind of
                              the drive */
        guint64 meta_gap_bytes; /* metadata blocks at most so far apart become one read; 0 = default
                                 */
} CompileOptions;

#define COMPILE_OPTIONS_DEFAULT                                                                    \
        ((CompileOptions){.ranges = {.gap_bytes = RANGES_GAP_BYTES_DEFAULT}})

/* Returns the pack's bytes. `ret_stale`/`ret_missing` (may be NULL) count files that are not as
 * recorded; they stay in the pack, where each replay finds them one by one, as do files whose
 * file system is not mounted. Metadata is left out where the block device cannot be read. options
 * NULL = defaults. Errors: COMMON_ERROR_INPUT (the profile makes no valid pack). */
GBytes *pack_compile(const Profile *profile, const CompileOptions *options, guint *ret_stale,
                     guint *ret_missing, GError **error);

/* Atomic: temporary name, fsync, rename; mode 0600. */
gboolean pack_save(GBytes *pack, const char *path, GError **error);

/* ---- the pure core, for tests ---- */

/* A part of a range with one place on the disk. */
typedef struct {
        guint32 file, fs;
        guint64 offset_bytes, length_bytes;
        guint64 physical_bytes; /* on the file system's device; COMPILE_NOWHERE = not known */
} CompilePiece;
#define COMPILE_NOWHERE G_MAXUINT64

/* How many runs the pieces (in reading order) make on the disk; nearness within 64 KiB counts as
 * contiguous, since the drive reads over such a gap. Pieces without a place belong to the run
 * before. */
guint64 compile_count_runs(const GArray *pieces);
/* Sorts by place inside bins of bin_bytes (0 = one bin); stable; pieces without a place stay behind
 * their predecessor. */
void compile_sort_bins(GArray *pieces, guint64 bin_bytes);
