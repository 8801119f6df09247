// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * drives.h - what a simulated drive is: its parameters, the built-in table, options by name.
 *
 * Units are in the field names; a MB is 10^6 bytes, as on data sheets.
 */
#pragma once

#include <glib.h>
#include <stdio.h>

#define SECTOR_BYTES 512

/* Deepest queue kept; a FUSE connection has no more background requests than this either. */
#define QUEUE_MAX 1024

typedef enum { DRIVE_HDD, DRIVE_FLASH } DriveKind;

typedef struct {
        const char *name;
        DriveKind kind;
        double capacity_bytes;    /* 0: as large as the backing file */
        double queue_depth;       /* hdd: requests the drive chooses among; flash: parallel units */
        double first_touch_ms;    /* extra cost of the first access of each region */
        double first_touch_bytes; /* 0: no such cost */
        double stack_us;          /* taken off: what loop and FUSE add to each request */

        /* disks */
        double rpm;
        double seek_track_ms, seek_average_ms, seek_full_ms;
        double outer_mb_s, inner_mb_s; /* sustained rates: skew included */
        double heads;
        double skew_ms; /* 0: as long as seek_track_ms */
        double overhead_us;
        double interface_mb_s;
        double cache_bytes, cache_segments;
        double write_cache_bytes;
        double destage_delay_ms; /* idle time before cached writes go to the platter */
        double max_wait_ms;      /* a request that waited longer is served first */

        /* flash */
        double latency_us;
        double iops; /* 0: no cap */
        double bandwidth_mb_s;
} DriveParams;

/* The built-in drive @name, NULL when there is none. */
const DriveParams *drive_find(const char *name);

/* Prints the table, one drive a line. */
void drives_list(FILE *out);

/* Prints each numeric option with its unit and meaning. */
void drive_options_help(FILE *out);

/*
 * Sets the option @name ("seek-track-ms", without dashes in front) from @text. Returns FALSE for
 * an unknown name, text that is no number, or a number out of range.
 */
gboolean drive_set_option(DriveParams *p, const char *name, const char *text, GError **error);

/* TRUE when @name is the name of a drive option; @ret_kinds: bit 0 disks, bit 1 flash. */
gboolean drive_option_known(const char *name, unsigned *ret_kinds);

/* The cross-field checks: average between track and full, and so on. */
gboolean drive_check(const DriveParams *p, GError **error);
