// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Ranges where only opens were seen: of each opened file what is in the page cache at the end.
 *
 * What that means: a page that was not cached when the open was noticed and is now was read in
 * meanwhile, by whomever (cause "read-in", a miss). A page that was cached already may have been
 * used or not, and may have come in between the open and the moment it was noticed (cause "open",
 * neither hit nor miss). Pages read and dropped again are missing. The order is that of the opens.
 */
#pragma once

#include <glib.h>

#include "common/profile.h"
#include "profiler/opens.h"
#include "profiler/residency.h"

/* Appends the ranges of files[file]; fd and size are of it now. Returns the pages that were cached
 * when the open was noticed. */
guint64 build_resident_ranges(Profile *profile, guint32 file, const OpenedFile *opened, int fd,
                              Residency *residency);
