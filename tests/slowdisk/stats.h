// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * stats.h - the counters of a simulated drive.
 *
 * busy_ms is measured by the clock, the parts are computed: that they add up says that the
 * timing was kept. Operations that overlap (flash units; the interface of a disk beside its arm)
 * are counted in full each, so busy_ms can grow faster than time passes.
 */
#pragma once

#include <glib.h>

typedef struct {
        guint64 reads, writes, flushes, discards, read_bytes, write_bytes;
        guint64 destages, destage_bytes; /* cached writes carried out on the platter */
        guint64 cache_hits, first_touches, seeks, max_queue;
        double busy_ms, seek_ms, rotation_ms, transfer_ms, overhead_ms;
        double wait_ms;              /* from arrival to the start of the service, all requests */
        double late_ms, late_max_ms; /* answers given after their deadline */
        guint64 answers;
} DriveStats;

/* The text of MNT/stats. */
char *drive_stats_format(const DriveStats *stats, guint64 queued, guint64 unwritten_bytes,
                         gboolean realtime);
