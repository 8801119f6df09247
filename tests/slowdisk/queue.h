// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * queue.h - requests in, answers out at the time a drive would give them.
 *
 * One thread per queue takes requests by the drive's rules and calls request_done() at their
 * deadline. All functions may be called from any thread.
 */
#pragma once

#include "drive-hdd.h"

typedef enum { REQUEST_READ, REQUEST_WRITE, REQUEST_FLUSH, REQUEST_DESTAGE } RequestKind;

typedef struct {
        /* Set by the caller. */
        RequestKind kind;
        guint64 offset, bytes; /* bytes; inside the drive */
        void *data;            /* read: a buffer of that size */
        void *owner;
        gint64 log_number; /* flush: its record in the write log */

        /* The queue's own. */
        int error;
        guint64 number;
        double arrival_ms, start_ms, end_ms;
        double overhead_ms;
        HddCost cost;
        gboolean mechanical;
        gboolean waited; /* for room in the write cache */
} Request;

typedef struct Queue Queue;

/* Called once for each request, by the queue's thread: error is 0 or an errno. */
typedef void (*RequestDone)(Request *request, void *user_data);

/* A queue for @bytes of @backing_fd; starts its thread. */
Queue *queue_new(const DriveParams *params, guint64 bytes, int backing_fd, RequestDone request_done,
                 void *user_data);

/* Answers all that is outstanding at once, ends the thread, frees the queue. */
void queue_free(Queue *queue);

/* Takes the request until request_done() hands it back. A write's data are stored already. */
void queue_submit(Queue *queue, Request *request);

/* Counts a discard: no time, and nothing of it is left to be written. */
void queue_discard(Queue *queue, guint64 offset, guint64 bytes);

/* Zeroes the counters; @cold: also empties the read cache and forgets all first touches. */
void queue_reset(Queue *queue, gboolean cold);

/* The counters as text, a key and a value a line. */
char *queue_stats(Queue *queue);
