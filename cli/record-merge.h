// SPDX-License-Identifier: GPL-2.0-or-later
/* Recording again under a name: the pure merge of profiler/merge.h with what it asks of the disk.
 */
#pragma once

#include "cli/cli.h"
#include "profiler/build.h"

/* Makes the profile just recorded the one to be saved. `previous` is what was saved under the name,
 * NULL = nothing, or not to be looked at. Says what was done; adds what is left out to
 * built->left_out. */
void record_merge(const Cli *cli, Profile *profile, const Profile *previous,
                  const BuildResult *built);
