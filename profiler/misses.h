// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The reads of a profile by cause: cached or from the disk, summed by who or what was read. Pure.
 *
 * A read is a page range at its first use. Bytes are cut to the file's size, so that
 * disk + cached + unknown = used = profile_used_bytes(), in each row and in the total. "Ahead" is
 * the part of disk that nobody waited for, as the kernel (or a replay) had read it in time.
 */
#pragma once

#include <glib.h>

#include "common/profile.h"

typedef struct {
        guint64 reads, disk_reads, cached_reads;
        guint64 used_bytes, disk_bytes, ahead_bytes, cached_bytes, unknown_bytes;
        guint64 stall_us;
} MissCount;

typedef struct {
        gchar *key;      /* what is compared: unique in a table */
        gchar *label;    /* what is shown, bytes */
        guint32 process; /* number; 0 = not one process */
        MissCount count, before;
} MissRow;

typedef struct {
        GPtrArray *rows; /* MissRow *: most waited for first, then most read from the disk */
        MissCount total, before;
        gboolean compared;
} MissTable;

typedef enum { MISS_BY_PROCESS, MISS_BY_FILE, MISS_BY_DIRECTORY, MISS_BY_PACKAGE } MissBy;

/* "process", "file", "directory", "package"; FALSE for another text. */
gboolean miss_by_parse(const char *text, MissBy *ret);
const char *miss_by_name(MissBy by);

/* Processes are told apart by name, so that two recordings can be compared. `packages` (by the
 * file's index, NULL = in no package) is needed for MISS_BY_PACKAGE only. */
MissTable *miss_table_new(const Profile *profile, MissBy by, const char *const *packages);
/* Joins the counts of another table by key as `before`. */
void miss_table_compare(MissTable *table, const MissTable *before);
void miss_table_free(MissTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MissTable, miss_table_free)

/* The same for each process (index 0 = no process known, else its number). n + 1 counts. */
MissCount *miss_count_processes(const Profile *profile);
/* Adds the range to the counts. */
void miss_count_add(MissCount *count, const Profile *profile, const ProfileRange *range);

/* What a process is called: its name, else the base name of what it executed, else "pid N". */
gchar *miss_process_name(const Profile *profile, guint32 process);
