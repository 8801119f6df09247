// SPDX-License-Identifier: GPL-2.0-or-later
/* queue-private.h - what queue.c (time and threads) and queue-hdd.c (the choice) share. */
#pragma once

#include "drive-flash.h"
#include "queue.h"
#include "stats.h"
#include "write-cache.h"

#include <pthread.h>

struct Queue {
        DriveParams params;
        HddDrive hdd;
        FlashDrive flash;
        guint64 bytes;
        int backing_fd;
        RequestDone request_done;
        void *user_data;

        pthread_t thread;
        pthread_mutex_t lock; /* of all below, and the drives above */
        pthread_cond_t changed;
        gint64 origin_ns;
        gboolean stopping, realtime;
        double wake_ms; /* what the thread sleeps towards */

        GPtrArray *pending; /* Request, in order of arrival */
        GPtrArray *serving; /* Request with start_ms and end_ms */
        guint64 next_number;

        Request destage; /* the write of a run from the cache */
        gboolean arm_busy, arm_destaged;
        double arm_free_ms, interface_free_ms, last_host_ms;
        double choice_ms; /* when the arm's next request is chosen */
        guint64 arm_sector;
        WriteCache dirty;
        guint64 dirty_limit;
        SectorRun destaging;
        double room_ms; /* when the last run was written */

        guint8 *touched; /* a bit a region */
        guint64 regions;
        DriveStats stats;
};

static inline guint64
first_sector(const Request *request)
{
        return request->offset / SECTOR_BYTES;
}

static inline guint64
end_sector(const Request *request)
{
        return (request->offset + request->bytes + SECTOR_BYTES - 1) / SECTOR_BYTES;
}

/* The extra cost of the regions that the request is the first to touch. */
double queue_touch_ms(Queue *queue, const Request *request);

/* Fills the buffer of a read; of others nothing. */
void queue_fill_read(const Queue *queue, Request *request);

/* Sets the service from @start_ms on, by the request's costs; it is answered at its end. */
void queue_serve_until(Queue *queue, Request *request, double start_ms);

/* Gives the arm and the interface of a disk what they can do now. Locked, as all of these. */
void queue_dispatch_hdd(Queue *queue, double now);
