// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Progress on a terminal: drawn on standard error only when that is a terminal and neither -q nor
 * --json was given, at most ten times a second, by writes that never block the work (a terminal
 * that does not take the bytes gets none).
 */
#pragma once

#include <glib.h>

typedef struct Progress Progress;

/* `label` is shown before the figures; `enabled` FALSE makes every call a no-op. */
Progress *progress_new(const char *label, gboolean enabled);
/* total 0 = unknown. Cheap: may be called for every item. */
void progress_update(Progress *progress, guint64 done, guint64 total, const char *unit);
/* Wipes the line. */
void progress_free(Progress *progress);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Progress, progress_free)
