// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * drive-flash.h - a device without a head: flash, or a network volume.
 *
 * Pure: functions of the state and of the times given, ms, which never run backwards.
 */
#pragma once

#include "drives.h"

typedef struct {
        guint32 units;
        double *unit_free_ms; /* a binary heap, the earliest on top */
        double latency_ms, slot_ms, bytes_ms;
        double next_slot_ms, next_bytes_ms; /* when the caps let the next request through */
} FlashDrive;

typedef struct {
        double start_ms;    /* when a unit and both caps let it start */
        double latency_ms;  /* access, extra_ms included */
        double transfer_ms; /* end = start + latency + transfer */
} FlashCost;

void flash_drive_init(FlashDrive *drive, const DriveParams *params);
void flash_drive_clear(FlashDrive *drive);

/* Serves a request of @bytes that arrives at @now_ms and costs @extra_ms of first touches. */
FlashCost flash_drive_serve(FlashDrive *drive, guint64 bytes, double extra_ms, double now_ms);
