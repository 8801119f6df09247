// SPDX-License-Identifier: GPL-2.0-or-later
/* What processes tell of the profile's files. */
#pragma once

#include "profiler/build.h"

/* Sets PROFILE_FILE_EXECUTED where a process executed the file by a path that still leads to it
 * (relative ones from our own folder), and opened_us where its open was seen. After build_files().
 * `root` NULL = /. */
void process_files_mark(Profile *profile, const BuildResult *built, const Opens *opens,
                        const char *root, guint64 start_ns);
