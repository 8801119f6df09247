// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * drives.c - the table of built-in drives and the table of their options.
 *
 * The numbers are those that the project's tests and issues refer to by name. An option is a row
 * of option_table: its name, the field it sets, its range and the kinds of drive that have it.
 */
#include "drives.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1024.0 * 1024.0)

/*
 * Two heads: an 80 GB drive of 2006 holds one platter. A drive's buffer is taken as 8 segments
 * of about two tracks. Command overheads of a few
 * tenths of a ms stand in data sheets of the time.
 *
 * Data sheets give times as a host sees them, but a request has come through the loop driver and
 * FUSE before it is seen here, and its answer goes back that way: 100 to 125 us in all at depth 1
 * in a virtual machine of two cores on Linux 6.18 (fio on a drive of latency 0). STACK_US of that
 * count as part of the service, which matters for flash and is 0.6 % of a random read of a disk.
 */
#define STACK_US 80
#define HDD_COMMON                                                                                 \
        .kind = DRIVE_HDD, .heads = 2, .stack_us = STACK_US, .overhead_us = 250,                   \
        .interface_mb_s = 300, .cache_bytes = 8 * MIB, .cache_segments = 8,                        \
        .write_cache_bytes = 8 * MIB, .destage_delay_ms = 10, .max_wait_ms = 4000

static const DriveParams drive_table[] = {
        {.name = "hdd-2006",
         HDD_COMMON,
         .rpm = 7200,
         .seek_track_ms = 0.8,
         .seek_average_ms = 8.5,
         .seek_full_ms = 16,
         .outer_mb_s = 65,
         .inner_mb_s = 35,
         .capacity_bytes = 80e9,
         .queue_depth = 32},
        {.name = "hdd-laptop",
         HDD_COMMON,
         .rpm = 5400,
         .seek_track_ms = 1,
         .seek_average_ms = 11,
         .seek_full_ms = 20,
         .outer_mb_s = 40,
         .inner_mb_s = 20,
         .capacity_bytes = 80e9,
         .queue_depth = 8},
        {.name = "hdd-10k",
         HDD_COMMON,
         .rpm = 10000,
         .seek_track_ms = 0.53,
         .seek_average_ms = 4.84,
         .seek_full_ms = 9.57,
         .outer_mb_s = 78,
         .inner_mb_s = 50,
         .capacity_bytes = 70e9,
         .queue_depth = 32},
        {.name = "sd",
         .kind = DRIVE_FLASH,
         .stack_us = STACK_US,
         .latency_us = 600,
         .bandwidth_mb_s = 20,
         .queue_depth = 1},
        {.name = "ssd-sata",
         .kind = DRIVE_FLASH,
         .stack_us = STACK_US,
         .latency_us = 100,
         .bandwidth_mb_s = 500,
         .queue_depth = 32},
        {.name = "ebs",
         .kind = DRIVE_FLASH,
         .stack_us = STACK_US,
         .latency_us = 1000,
         .bandwidth_mb_s = 125,
         .iops = 3000,
         .queue_depth = 64,
         .first_touch_ms = 5,
         .first_touch_bytes = 512 * 1024},
};

#define HDD (1u << DRIVE_HDD)
#define FLASH (1u << DRIVE_FLASH)

typedef struct {
        const char *name;
        size_t field;
        double min, max;
        unsigned kinds;
        const char *help;
} OptionRow;

#define FIELD(f) offsetof(DriveParams, f)

static const OptionRow option_table[] = {
        {"capacity-bytes", FIELD(capacity_bytes), 1e6, 1e15, HDD | FLASH,
         "size of the whole drive (disks: a smaller backing file is its outer part)"},
        {"queue-depth", FIELD(queue_depth), 1, QUEUE_MAX, HDD | FLASH,
         "disks: requests to choose among (NCQ); flash: parallel units"},
        {"first-touch-ms", FIELD(first_touch_ms), 0, 1e5, HDD | FLASH,
         "extra time of the first access of each region"},
        {"first-touch-bytes", FIELD(first_touch_bytes), 0, 1e12, HDD | FLASH,
         "size of such a region, 0 for none"},
        {"stack-us", FIELD(stack_us), 0, 1e5, HDD | FLASH,
         "what loop and FUSE add to a request, counted as part of its service"},
        {"rpm", FIELD(rpm), 100, 1e5, HDD, "rotations a minute"},
        {"seek-track-ms", FIELD(seek_track_ms), 0.001, 1e3, HDD, "seek to the next cylinder"},
        {"seek-average-ms", FIELD(seek_average_ms), 0.001, 1e3, HDD,
         "mean over uniform random pairs of cylinders"},
        {"seek-full-ms", FIELD(seek_full_ms), 0.001, 1e3, HDD, "full stroke"},
        {"outer-mb-s", FIELD(outer_mb_s), 0.1, 1e4, HDD, "sustained rate of the first zone"},
        {"inner-mb-s", FIELD(inner_mb_s), 0.1, 1e4, HDD, "sustained rate of the last zone"},
        {"heads", FIELD(heads), 1, 64, HDD, "recording surfaces"},
        {"skew-ms", FIELD(skew_ms), 0, 100, HDD, "head and cylinder switch, 0: seek-track-ms"},
        {"overhead-us", FIELD(overhead_us), 0, 1e5, HDD,
         "controller time of each request, before the arm moves"},
        {"interface-mb-s", FIELD(interface_mb_s), 1, 1e5, HDD, "rate of transfers from cache"},
        {"cache-bytes", FIELD(cache_bytes), 0, 1e10, HDD, "read-ahead cache, 0 for none"},
        {"cache-segments", FIELD(cache_segments), 1, 256, HDD, "parts of the read-ahead cache"},
        {"write-cache-bytes", FIELD(write_cache_bytes), 0, 1e10, HDD, "0: write through"},
        {"destage-delay-ms", FIELD(destage_delay_ms), 0, 1e5, HDD,
         "idle time before cached writes are written"},
        {"max-wait-ms", FIELD(max_wait_ms), 1, 1e6, HDD,
         "a request that waited longer is served first"},
        {"latency-us", FIELD(latency_us), 0, 1e7, FLASH, "access time of a unit"},
        {"iops", FIELD(iops), 0, 1e7, FLASH, "cap on requests a second, 0 for none"},
        {"bandwidth-mb-s", FIELD(bandwidth_mb_s), 0.01, 1e5, FLASH, "cap on the total rate"},
};

const DriveParams *
drive_find(const char *name)
{
        for (size_t i = 0; i < G_N_ELEMENTS(drive_table); i++)
                if (strcmp(drive_table[i].name, name) == 0)
                        return &drive_table[i];
        return NULL;
}

void
drives_list(FILE *out)
{
        for (size_t i = 0; i < G_N_ELEMENTS(drive_table); i++) {
                const DriveParams *p = &drive_table[i];

                fprintf(out, "%-11s", p->name);
                if (p->kind == DRIVE_HDD)
                        fprintf(out,
                                "%.0f rpm, seek %g/%g/%g ms, %g to %g MB/s, %g GB, %g outstanding",
                                p->rpm, p->seek_track_ms, p->seek_average_ms, p->seek_full_ms,
                                p->outer_mb_s, p->inner_mb_s, p->capacity_bytes / 1e9,
                                p->queue_depth);
                else
                        fprintf(out, "%g us, %g MB/s, %g parallel", p->latency_us,
                                p->bandwidth_mb_s, p->queue_depth);
                if (p->iops > 0)
                        fprintf(out, ", %g IOPS", p->iops);
                if (p->first_touch_bytes > 0)
                        fprintf(out, ", first touch of each %g KiB %g ms",
                                p->first_touch_bytes / 1024, p->first_touch_ms);
                fputc('\n', out);
        }
}

void
drive_options_help(FILE *out)
{
        for (size_t i = 0; i < G_N_ELEMENTS(option_table); i++)
                fprintf(out, "  --%s=N%*s%s\n", option_table[i].name,
                        (int)(20 - strlen(option_table[i].name)), "", option_table[i].help);
}

static const OptionRow *
option_row_find(const char *name)
{
        for (size_t i = 0; i < G_N_ELEMENTS(option_table); i++)
                if (strcmp(option_table[i].name, name) == 0)
                        return &option_table[i];
        return NULL;
}

gboolean
drive_option_known(const char *name, unsigned *ret_kinds)
{
        const OptionRow *row = option_row_find(name);

        if (row == NULL)
                return FALSE;
        if (ret_kinds != NULL)
                *ret_kinds = row->kinds;
        return TRUE;
}

gboolean
drive_set_option(DriveParams *p, const char *name, const char *text, GError **error)
{
        const OptionRow *row = option_row_find(name);
        char *end = NULL;
        double value;

        if (row == NULL) {
                g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION,
                            "unknown option --%s", name);
                return FALSE;
        }
        if ((row->kinds & (1u << p->kind)) == 0) {
                g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                            "--%s does not apply to this kind of drive", name);
                return FALSE;
        }
        errno = 0;
        value = g_ascii_strtod(text, &end);
        if (errno != 0 || end == text || *end != '\0' || !isfinite(value) || value < row->min ||
            value > row->max) {
                g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                            "--%s=%s is not a number between %g and %g", name, text, row->min,
                            row->max);
                return FALSE;
        }
        *(double *)(void *)((char *)p + row->field) = value;
        return TRUE;
}

static gboolean
refuse(GError **error, const char *why)
{
        g_set_error_literal(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, why);
        return FALSE;
}

gboolean
drive_check(const DriveParams *p, GError **error)
{
        if (p->first_touch_bytes > 0 && p->first_touch_bytes < SECTOR_BYTES)
                return refuse(error, "--first-touch-bytes is less than a sector");
        if (p->kind == DRIVE_FLASH)
                return p->bandwidth_mb_s > 0 ? TRUE : refuse(error, "flash needs --bandwidth-mb-s");
        if (p->inner_mb_s > p->outer_mb_s)
                return refuse(error, "the inner rate is larger than the outer one");
        /* A mean over random pairs below a third needs a curve that bends upwards. */
        if (!(p->seek_track_ms < p->seek_average_ms && p->seek_average_ms < p->seek_full_ms) ||
            p->seek_average_ms - p->seek_track_ms <=
                    (p->seek_full_ms - p->seek_track_ms) * 0.3334 ||
            p->seek_average_ms - p->seek_track_ms >= (p->seek_full_ms - p->seek_track_ms) * 0.75)
                return refuse(error, "no seek curve goes through these track, average and full "
                                     "stroke times");
        return TRUE;
}
