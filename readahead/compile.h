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

typedef struct {
        ReplayOrder order;   /* AUTO: first use when relocated or on flash, else block order inside
                                bins of time */
        RangesOptions ranges;
        const char *root;    /* as replay_options.root */
} CompileOptions;

/* Returns the pack's bytes. `ret_stale`/`ret_missing` (may be NULL) count files that are not as
 * recorded. Files whose file system is not mounted are kept (they are found at replay). */
GBytes *pack_compile(const Profile *profile, const CompileOptions *options, guint *ret_stale,
                     guint *ret_missing, GError **error);

/* Atomic: temporary name, fsync, rename; mode 0600. */
gboolean pack_save(GBytes *pack, const char *path, GError **error);
