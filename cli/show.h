// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The parts of the verb show: each prints one view of a profile, as text or JSON. Times are
 * milliseconds since the start of the recording.
 */
#pragma once

#include <json-glib/json-glib.h>

#include "cli/cli.h"
#include "profiler/misses.h"

static inline const ProfileFile *
file_at(const Profile *profile, guint index)
{
        return &g_array_index(profile->files, ProfileFile, index);
}

static inline const ProfileFs *
fs_at(const Profile *profile, guint index)
{
        return &g_array_index(profile->fs, ProfileFs, index);
}

static inline double
ms(guint64 us)
{
        return (double)us / 1000;
}

/* show-lists.c: --files, --ranges; the whole profile as JSON. */
void show_files_json(JsonBuilder *json, const Profile *profile);
void show_files_text(const Profile *profile, gboolean null);
void show_ranges_json(JsonBuilder *json, const Profile *profile);
void show_ranges_text(const Profile *profile);
void show_meta_json(JsonBuilder *json, const Profile *profile);
/* Members of an open object. */
void show_range_members(JsonBuilder *json, const Profile *profile, const ProfileRange *range);
void show_meta_members(JsonBuilder *json, const Profile *profile, const ProfileMeta *meta);

/* show-events.c: reads, metadata, marks, waits, beginnings and ends of processes by time. */
void show_events_json(JsonBuilder *json, const Profile *profile);
void show_events_text(const Profile *profile);

/* show-processes.c: --processes; waits and marks. */
void show_processes_json(JsonBuilder *json, const Profile *profile);
void show_processes_text(const Profile *profile);
void show_waits_json(JsonBuilder *json, const Profile *profile);
void show_marks_json(JsonBuilder *json, const Profile *profile);
void show_wait_members(JsonBuilder *json, const Profile *profile, const ProfileWait *wait);

/* show-misses.c: --misses. `before` NULL = none. */
MissTable *show_misses(const Cli *cli, const Profile *profile, const Profile *before, MissBy by,
                       GError **error);
void show_misses_json(JsonBuilder *json, const MissTable *table, MissBy by);
void show_misses_text(const MissTable *table, MissBy by);
