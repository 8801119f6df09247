// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * queue.c - the drive's thread: when a request is done, and waiting until then.
 *
 * Time is ms since the queue was made. A service begins at the virtual end of the one before, or
 * when its request arrived (stack_us before it was seen), never at the time at which the thread
 * got round to it: being woken up late delays an answer but adds up to nothing. The thread sleeps
 * to an absolute time with a timer slack of 1 ns, as SCHED_FIFO when it may, and spins for the
 * last SPIN_MS at most.
 *
 * Reads are filled before their deadline: for a disk by the drive's thread as it starts the
 * service (the submitter has started the read of the backing file), for flash by the submitter.
 */
#include "queue-private.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define SPIN_MS 0.03

static double
now_ms(const Queue *queue)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)((gint64)now.tv_sec * 1000000000 + now.tv_nsec - queue->origin_ns) / 1e6;
}

/* TRUE when the backing file has nothing there: reading it would only fill the page cache. */
static gboolean
is_hole(const Queue *queue, const Request *request)
{
        off_t data = lseek(queue->backing_fd, (off_t)request->offset, SEEK_DATA);

        return data < 0 ? errno == ENXIO : (guint64)data >= request->offset + request->bytes;
}

void
queue_fill_read(const Queue *queue, Request *request)
{
        size_t done = 0;

        if (request->kind != REQUEST_READ)
                return;
        if (is_hole(queue, request)) {
                memset(request->data, 0, request->bytes);
                return;
        }
        while (done < request->bytes) {
                ssize_t n = pread(queue->backing_fd, (char *)request->data + done,
                                  request->bytes - done, (off_t)(request->offset + done));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0) {
                        request->error = errno;
                        return;
                }
                if (n == 0) { /* beyond the end of a file shorter than the drive */
                        memset((char *)request->data + done, 0, request->bytes - done);
                        return;
                }
                done += (size_t)n;
        }
}

double
queue_touch_ms(Queue *queue, const Request *request)
{
        guint64 region_bytes = (guint64)queue->params.first_touch_bytes;
        double ms = 0;

        if (queue->touched == NULL || request->bytes == 0)
                return 0;
        for (guint64 r = request->offset / region_bytes;
             r <= (request->offset + request->bytes - 1) / region_bytes; r++) {
                if (queue->touched[r / 8] & (1u << (r % 8)))
                        continue;
                queue->touched[r / 8] |= (guint8)(1u << (r % 8));
                queue->stats.first_touches++;
                ms += queue->params.first_touch_ms;
        }
        return ms;
}

void
queue_serve_until(Queue *queue, Request *request, double start_ms)
{
        request->start_ms = start_ms;
        request->end_ms = start_ms + request->overhead_ms + request->cost.seek_ms +
                          request->cost.rotation_ms + request->cost.transfer_ms;
        g_ptr_array_add(queue->serving, request);
}

static void
serve_by_flash(Queue *queue, Request *request)
{
        FlashCost cost;

        if (request->kind == REQUEST_FLUSH) {
                double start_ms = request->arrival_ms;

                for (guint i = 0; i < queue->serving->len; i++) {
                        const Request *other = g_ptr_array_index(queue->serving, i);

                        start_ms = MAX(start_ms, other->end_ms);
                }
                queue_serve_until(queue, request, start_ms);
                return;
        }
        cost = flash_drive_serve(&queue->flash, request->bytes, queue_touch_ms(queue, request),
                                 request->arrival_ms);
        request->overhead_ms = cost.latency_ms;
        request->cost.transfer_ms = cost.transfer_ms;
        queue_serve_until(queue, request, cost.start_ms);
}

static void
account(Queue *queue, const Request *request, double now)
{
        DriveStats *stats = &queue->stats;
        double late_ms = MAX(0, now - request->end_ms);

        stats->busy_ms += MAX(now, request->end_ms) - request->start_ms;
        stats->seek_ms += request->cost.seek_ms;
        stats->rotation_ms += request->cost.rotation_ms;
        stats->transfer_ms += request->cost.transfer_ms;
        stats->overhead_ms += request->overhead_ms;
        stats->seeks += request->cost.seeked;
        stats->late_ms += late_ms;
        stats->late_max_ms = MAX(stats->late_max_ms, late_ms);
        stats->answers++;
        if (request->kind == REQUEST_DESTAGE)
                return;
        stats->wait_ms += MAX(0, request->start_ms - request->arrival_ms);
        if (request->kind == REQUEST_READ) {
                stats->reads++;
                stats->read_bytes += request->bytes;
        } else if (request->kind == REQUEST_WRITE) {
                stats->writes++;
                stats->write_bytes += request->bytes;
        } else {
                stats->flushes++;
        }
}

/* Answers what is due. Gives up the lock meanwhile; TRUE when anything was. */
static gboolean
complete_due(Queue *queue, double now)
{
        g_autoptr(GPtrArray) due = NULL;

        for (guint i = 0; i < queue->serving->len;) {
                Request *request = g_ptr_array_index(queue->serving, i);

                if (request->end_ms > now) {
                        i++;
                        continue;
                }
                g_ptr_array_remove_index_fast(queue->serving, i);
                account(queue, request, now);
                if (request->mechanical) {
                        queue->arm_busy = FALSE;
                        if (request->kind == REQUEST_DESTAGE) {
                                queue->destaging = (SectorRun){0, 0};
                                queue->room_ms = request->end_ms;
                        }
                }
                if (request->kind == REQUEST_FLUSH) { /* what waited for it starts then */
                        queue->arm_free_ms = MAX(queue->arm_free_ms, request->end_ms);
                        queue->interface_free_ms = MAX(queue->interface_free_ms, request->end_ms);
                }
                if (request->kind == REQUEST_DESTAGE)
                        continue;
                queue->last_host_ms = now;
                if (due == NULL)
                        due = g_ptr_array_new();
                g_ptr_array_add(due, request);
        }
        if (due == NULL)
                return FALSE;
        pthread_mutex_unlock(&queue->lock);
        for (guint i = 0; i < due->len; i++)
                queue->request_done(g_ptr_array_index(due, i), queue->user_data);
        pthread_mutex_lock(&queue->lock);
        return TRUE;
}

static double
next_wake_ms(const Queue *queue)
{
        double wake_ms = INFINITY;

        for (guint i = 0; i < queue->serving->len; i++) {
                const Request *request = g_ptr_array_index(queue->serving, i);

                wake_ms = MIN(wake_ms, request->end_ms);
        }
        if (queue->params.kind != DRIVE_HDD || queue->arm_busy)
                return wake_ms;
        wake_ms = MIN(wake_ms, queue->choice_ms);
        if (isinf(queue->choice_ms) && queue->dirty.sectors > 0)
                wake_ms = MIN(wake_ms, queue->last_host_ms + queue->params.destage_delay_ms);
        return wake_ms;
}

/* Sleeps until @wake_ms, or until something changes. */
static void
sleep_until(Queue *queue, double wake_ms)
{
        struct timespec until;
        gint64 ns;

        queue->wake_ms = wake_ms;
        if (isinf(wake_ms)) {
                pthread_cond_wait(&queue->changed, &queue->lock);
        } else if (wake_ms - now_ms(queue) > SPIN_MS) {
                ns = queue->origin_ns + (gint64)((wake_ms - SPIN_MS) * 1e6);
                until.tv_sec = (time_t)(ns / 1000000000);
                until.tv_nsec = (long)(ns % 1000000000);
                pthread_cond_timedwait(&queue->changed, &queue->lock, &until);
        } else {
                pthread_mutex_unlock(&queue->lock);
                while (now_ms(queue) < wake_ms)
                        ;
                pthread_mutex_lock(&queue->lock);
        }
        queue->wake_ms = -INFINITY;
}

/* The end: everything is answered now, whatever the drive would have taken. */
static void
answer_all(Queue *queue)
{
        for (guint i = 0; i < queue->pending->len; i++) {
                Request *request = g_ptr_array_index(queue->pending, i);

                queue_fill_read(queue, request);
                request->start_ms = request->end_ms = request->arrival_ms;
                g_ptr_array_add(queue->serving, request);
        }
        g_ptr_array_set_size(queue->pending, 0);
        complete_due(queue, INFINITY);
}

static void *
drive_thread(void *argument)
{
        Queue *queue = argument;
        struct sched_param priority = {.sched_priority = 2};

        prctl(PR_SET_TIMERSLACK, 1);
        pthread_mutex_lock(&queue->lock);
        queue->realtime = pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority) == 0;
        while (!queue->stopping) {
                double now = now_ms(queue);

                if (complete_due(queue, now))
                        continue;
                if (queue->params.kind == DRIVE_HDD)
                        queue_dispatch_hdd(queue, now);
                if (!queue->stopping)
                        sleep_until(queue, next_wake_ms(queue));
        }
        answer_all(queue);
        pthread_mutex_unlock(&queue->lock);
        return NULL;
}

Queue *
queue_new(const DriveParams *params, guint64 bytes, int backing_fd, RequestDone request_done,
          void *user_data)
{
        Queue *queue = g_new0(Queue, 1);
        guint64 drive_bytes = MAX(bytes, (guint64)params->capacity_bytes);
        pthread_condattr_t monotonic;
        pthread_mutexattr_t inherit;
        struct timespec now;

        queue->params = *params;
        queue->bytes = bytes;
        queue->backing_fd = backing_fd;
        queue->request_done = request_done;
        queue->user_data = user_data;
        queue->pending = g_ptr_array_new();
        queue->serving = g_ptr_array_new();
        write_cache_init(&queue->dirty);
        if (params->kind == DRIVE_HDD) {
                hdd_drive_init(&queue->hdd, params,
                               (drive_bytes + SECTOR_BYTES - 1) / SECTOR_BYTES);
                queue->dirty_limit = (guint64)params->write_cache_bytes / SECTOR_BYTES;
        } else {
                flash_drive_init(&queue->flash, params);
        }
        if (params->first_touch_bytes > 0 && params->first_touch_ms > 0) {
                queue->regions = bytes / (guint64)params->first_touch_bytes + 1;
                queue->touched = g_malloc0(queue->regions / 8 + 1);
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
        queue->origin_ns = (gint64)now.tv_sec * 1000000000 + now.tv_nsec;
        queue->wake_ms = -INFINITY;
        queue->choice_ms = INFINITY;
        /* A receiver that is preempted with the lock must not hold up the drive's thread. */
        pthread_mutexattr_init(&inherit);
        pthread_mutexattr_setprotocol(&inherit, PTHREAD_PRIO_INHERIT);
        pthread_mutex_init(&queue->lock, &inherit);
        pthread_mutexattr_destroy(&inherit);
        pthread_condattr_init(&monotonic);
        pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        pthread_cond_init(&queue->changed, &monotonic);
        pthread_condattr_destroy(&monotonic);
        if (pthread_create(&queue->thread, NULL, drive_thread, queue) != 0)
                g_error("cannot start the drive's thread");
        return queue;
}

void
queue_free(Queue *queue)
{
        pthread_mutex_lock(&queue->lock);
        queue->stopping = TRUE;
        pthread_cond_signal(&queue->changed);
        pthread_mutex_unlock(&queue->lock);
        pthread_join(queue->thread, NULL);
        pthread_cond_destroy(&queue->changed);
        pthread_mutex_destroy(&queue->lock);
        if (queue->params.kind == DRIVE_HDD)
                hdd_drive_clear(&queue->hdd);
        else
                flash_drive_clear(&queue->flash);
        write_cache_clear(&queue->dirty);
        g_ptr_array_unref(queue->pending);
        g_ptr_array_unref(queue->serving);
        g_free(queue->touched);
        g_free(queue);
}

void
queue_submit(Queue *queue, Request *request)
{
        double arrival_ms = now_ms(queue) - queue->params.stack_us / 1e3;

        if (queue->params.kind == DRIVE_FLASH)
                queue_fill_read(queue, request);
        else if (request->kind == REQUEST_READ && !is_hole(queue, request))
                posix_fadvise(queue->backing_fd, (off_t)request->offset, (off_t)request->bytes,
                              POSIX_FADV_WILLNEED);
        pthread_mutex_lock(&queue->lock);
        request->number = queue->next_number++;
        request->arrival_ms = arrival_ms;
        if (queue->params.kind == DRIVE_FLASH) {
                serve_by_flash(queue, request);
                if (request->end_ms < queue->wake_ms)
                        pthread_cond_signal(&queue->changed);
        } else {
                g_ptr_array_add(queue->pending, request);
                queue->last_host_ms = MAX(queue->last_host_ms, arrival_ms);
                pthread_cond_signal(&queue->changed);
        }
        queue->stats.max_queue =
                MAX(queue->stats.max_queue,
                    queue->pending->len + queue->serving->len - (queue->destaging.end > 0));
        pthread_mutex_unlock(&queue->lock);
}

void
queue_discard(Queue *queue, guint64 offset, guint64 bytes)
{
        guint64 start = offset / SECTOR_BYTES, end = (offset + bytes) / SECTOR_BYTES;

        pthread_mutex_lock(&queue->lock);
        queue->stats.discards++;
        if (queue->params.kind == DRIVE_HDD && end > start)
                write_cache_remove(&queue->dirty, start, end);
        pthread_mutex_unlock(&queue->lock);
}

void
queue_reset(Queue *queue, gboolean cold)
{
        pthread_mutex_lock(&queue->lock);
        queue->stats = (DriveStats){0};
        if (cold && queue->params.kind == DRIVE_HDD)
                hdd_drive_drop_cache(&queue->hdd);
        if (cold && queue->touched != NULL)
                memset(queue->touched, 0, queue->regions / 8 + 1);
        pthread_mutex_unlock(&queue->lock);
}

char *
queue_stats(Queue *queue)
{
        char *text;

        pthread_mutex_lock(&queue->lock);
        text = drive_stats_format(
                &queue->stats, queue->pending->len + queue->serving->len,
                (queue->dirty.sectors + queue->destaging.end - queue->destaging.start) *
                        SECTOR_BYTES,
                queue->realtime);
        pthread_mutex_unlock(&queue->lock);
        return text;
}
