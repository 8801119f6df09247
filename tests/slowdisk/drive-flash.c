// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * drive-flash.c - n parallel units behind a cap on requests and a cap on bytes a second.
 *
 * A request waits for the earliest free unit and for its turn under both caps, then holds the unit
 * for latency + bytes / bandwidth. The caps stand before the units, as a provider's throttle does:
 * n requests of B bytes in all at a depth of QD take max(n * (L + b/BW) / min(QD, P), n / IOPS, B /
 * BW), and one request alone takes L + b/BW.
 */
#include "drive-flash.h"

void
flash_drive_init(FlashDrive *drive, const DriveParams *params)
{
        *drive = (FlashDrive){
                .units = (guint32)params->queue_depth,
                .latency_ms = params->latency_us / 1e3,
                .slot_ms = params->iops > 0 ? 1e3 / params->iops : 0,
                .bytes_ms = params->bandwidth_mb_s * 1e3,
        };
        drive->unit_free_ms = g_new0(double, drive->units);
}

void
flash_drive_clear(FlashDrive *drive)
{
        g_clear_pointer(&drive->unit_free_ms, g_free);
}

/* Puts @ms on top of the heap of units and restores its order. */
static void
units_replace_first(FlashDrive *drive, double ms)
{
        guint32 at = 0;

        for (;;) {
                guint32 child = 2 * at + 1;

                if (child >= drive->units)
                        break;
                if (child + 1 < drive->units &&
                    drive->unit_free_ms[child + 1] < drive->unit_free_ms[child])
                        child++;
                if (ms <= drive->unit_free_ms[child])
                        break;
                drive->unit_free_ms[at] = drive->unit_free_ms[child];
                at = child;
        }
        drive->unit_free_ms[at] = ms;
}

FlashCost
flash_drive_serve(FlashDrive *drive, guint64 bytes, double extra_ms, double now_ms)
{
        FlashCost cost = {
                .start_ms = MAX(now_ms, drive->unit_free_ms[0]),
                .latency_ms = drive->latency_ms + extra_ms,
                .transfer_ms = (double)bytes / drive->bytes_ms,
        };

        cost.start_ms = MAX(cost.start_ms, MAX(drive->next_slot_ms, drive->next_bytes_ms));
        drive->next_slot_ms = cost.start_ms + drive->slot_ms;
        drive->next_bytes_ms = cost.start_ms + cost.transfer_ms;
        units_replace_first(drive, cost.start_ms + cost.latency_ms + cost.transfer_ms);
        return cost;
}
