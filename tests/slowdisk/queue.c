// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * queue.c - the drive's thread: which request next, when it is done, and waiting until then.
 *
 * A disk serves one request at a time with its arm ("mechanical"): the one among the oldest
 * queue_depth outstanding whose data can pass the head first, unless one waited beyond
 * max_wait_ms. Beside the arm the interface moves data from and to the caches. Cached writes are
 * written when there was nothing else to do for a while, when the cache is full, or for a flush.
 * A flush is what the ATA command is, not queued: later requests wait for it.
 *
 * Time is ms since the queue was made. A service begins at the virtual end of the one before, or
 * when its request arrived (stack_us before it was seen), never at the time at which the thread got
 * round to it: being woken up late delays an answer but adds up to nothing. The thread sleeps to an
 * absolute time with a timer slack of 1 ns, as SCHED_FIFO when it may, and spins for the last
 * SPIN_MS at most.
 *
 * Reads are filled before their deadline: for a disk by the drive's thread as it starts the
 * service (the submitter has started the read of the backing file), for flash by the submitter.
 */
#include "queue.h"

#include "drive-flash.h"
#include "stats.h"
#include "write-cache.h"

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
/* Data sheets give a fraction of the command overhead for what the cache answers. */
#define CACHED_OVERHEAD (1.0 / 3)
/*
 * Shortest positioning with ageing (Jacobson and Wilkes, "Disk scheduling algorithms based on
 * rotational position", 1991): 100 ms of waiting weigh as much as 1 ms on the way. Without it a
 * sequential stream, which needs no positioning, starves all others.
 */
#define AGE_WEIGHT 0.01
#define DESTAGE_SECTORS_MAX 2048
#define DESTAGE_CANDIDATES 256 /* to each side of the arm */

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

static double
now_ms(const Queue *queue)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)((gint64)now.tv_sec * 1000000000 + now.tv_nsec - queue->origin_ns) / 1e6;
}

static guint64
first_sector(const Request *request)
{
        return request->offset / SECTOR_BYTES;
}

static guint64
end_sector(const Request *request)
{
        return (request->offset + request->bytes + SECTOR_BYTES - 1) / SECTOR_BYTES;
}

/* TRUE when the backing file has nothing there: reading it would only fill the page cache. */
static gboolean
is_hole(const Queue *queue, const Request *request)
{
        off_t data = lseek(queue->backing_fd, (off_t)request->offset, SEEK_DATA);

        return data < 0 ? errno == ENXIO : (guint64)data >= request->offset + request->bytes;
}

static void
fill_read(const Queue *queue, Request *request)
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

/* The cost of the regions that the request is the first to touch. */
static double
touch_ms(Queue *queue, const Request *request)
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

static void
serve_until(Queue *queue, Request *request, double start_ms)
{
        request->start_ms = start_ms;
        request->end_ms = start_ms + request->overhead_ms + request->cost.seek_ms +
                          request->cost.rotation_ms + request->cost.transfer_ms;
        g_ptr_array_add(queue->serving, request);
}

/* A transfer from or to a cache of the disk, beside what the arm does. */
static void
serve_by_interface(Queue *queue, Request *request, double ready_ms)
{
        double start_ms = MAX(request->arrival_ms, queue->interface_free_ms);

        if (request->waited)
                start_ms = MAX(start_ms, queue->room_ms);

        request->overhead_ms =
                queue->params.overhead_us / 1e3 * CACHED_OVERHEAD + touch_ms(queue, request);
        request->cost.transfer_ms = (double)request->bytes / (queue->params.interface_mb_s * 1e3);
        request->cost.transfer_ms =
                MAX(request->cost.transfer_ms, ready_ms - start_ms - request->overhead_ms);
        serve_until(queue, request, start_ms);
        queue->interface_free_ms = request->end_ms;
        fill_read(queue, request);
}

/* TRUE when the request was taken: it needs no arm. The read cache counts as of @judge_ms. */
static gboolean
try_caches(Queue *queue, Request *request, double judge_ms, gboolean *writes_wait)
{
        guint64 start = first_sector(request), end = end_sector(request);
        double ready_ms = 0;

        if (request->kind == REQUEST_READ) {
                if (write_cache_holds(&queue->dirty, start, end) ||
                    (queue->destaging.start <= start && end <= queue->destaging.end)) {
                        queue->stats.cache_hits++;
                        serve_by_interface(queue, request, 0);
                        return TRUE;
                }
                if (!queue->arm_busy)
                        hdd_drive_advance(&queue->hdd, judge_ms);
                if (!hdd_drive_cached(&queue->hdd, start, end - start, &ready_ms))
                        return FALSE;
                queue->stats.cache_hits++;
                serve_by_interface(queue, request, ready_ms);
                return TRUE;
        }
        if (request->kind == REQUEST_WRITE && end - start <= queue->dirty_limit / 2) {
                guint64 used = queue->dirty.sectors + queue->destaging.end - queue->destaging.start;

                if (*writes_wait || used + write_cache_new_sectors(&queue->dirty, start, end) >
                                            queue->dirty_limit) {
                        *writes_wait = TRUE;
                        request->waited = TRUE;
                        return FALSE;
                }
                hdd_drive_invalidate(&queue->hdd, start, end - start);
                write_cache_add(&queue->dirty, start, end);
                serve_by_interface(queue, request, 0);
                return TRUE;
        }
        return FALSE;
}

static void
serve_by_arm(Queue *queue, Request *request, double start_ms)
{
        guint64 start = first_sector(request), sectors = end_sector(request) - start;

        request->mechanical = TRUE;
        request->cost = hdd_drive_serve(&queue->hdd, start, sectors, request->kind != REQUEST_READ,
                                        start_ms + request->overhead_ms);
        queue->arm_busy = TRUE;
        queue->arm_destaged = request->kind == REQUEST_DESTAGE;
        queue->arm_sector = start + sectors;
        if (request->cost.cache_hit)
                queue->stats.cache_hits++;
        serve_until(queue, request, start_ms);
        queue->arm_free_ms = request->end_ms;
        fill_read(queue, request);
}

/* The unwritten run that the arm can start on first, from those around it; -1 for none. */
static gint
nearest_dirty(const Queue *queue, double now, double *ret_ms)
{
        guint middle = write_cache_lower(&queue->dirty, queue->arm_sector);
        guint low = middle > DESTAGE_CANDIDATES ? middle - DESTAGE_CANDIDATES : 0;
        guint high = MIN(queue->dirty.runs->len, middle + DESTAGE_CANDIDATES);
        gint best = -1;

        for (guint i = low; i < high; i++) {
                SectorRun run = g_array_index(queue->dirty.runs, SectorRun, i);
                double ms = hdd_drive_positioning_ms(&queue->hdd, run.start, run.end - run.start,
                                                     TRUE, now);

                if (best < 0 || ms < *ret_ms) {
                        best = (gint)i;
                        *ret_ms = ms;
                }
        }
        return best;
}

static void
start_destage(Queue *queue, gint index, double start_ms)
{
        SectorRun run = g_array_index(queue->dirty.runs, SectorRun, index);

        run.end = MIN(run.end, run.start + DESTAGE_SECTORS_MAX);
        write_cache_remove(&queue->dirty, run.start, run.end);
        queue->destaging = run;
        queue->destage = (Request){
                .kind = REQUEST_DESTAGE,
                .offset = run.start * SECTOR_BYTES,
                .bytes = (run.end - run.start) * SECTOR_BYTES,
        };
        queue->stats.destages++;
        queue->stats.destage_bytes += queue->destage.bytes;
        serve_by_arm(queue, &queue->destage, start_ms);
}

/* TRUE when the request is for the arm now, not waiting for room in the write cache. */
static gboolean
needs_arm(const Queue *queue, const Request *request)
{
        return request->kind == REQUEST_READ ||
               (request->kind == REQUEST_WRITE &&
                end_sector(request) - first_sector(request) > queue->dirty_limit / 2);
}

/*
 * The request before number @limit whose data can pass the head first when the arm starts at
 * @begin_ms: its index, or -1. An overdue one goes before all: *@ret_ms is 0 then.
 */
static gint
nearest_request(const Queue *queue, guint64 limit, double begin_ms, double *ret_ms)
{
        guint outstanding = 0;
        gint best = -1;

        for (guint i = 0; i < queue->pending->len; i++) {
                const Request *request = g_ptr_array_index(queue->pending, i);
                guint64 start = first_sector(request);
                double ms;

                if (request->number >= limit || ++outstanding > queue->params.queue_depth)
                        break;
                /* One that came later can be here only because this thread was late. */
                if (!needs_arm(queue, request) || request->arrival_ms > begin_ms)
                        continue;
                /* They are in order of arrival: the first is the oldest. */
                if (best < 0 && begin_ms - request->arrival_ms > queue->params.max_wait_ms) {
                        *ret_ms = 0;
                        return (gint)i;
                }
                ms = hdd_drive_positioning_ms(&queue->hdd, start, end_sector(request) - start,
                                              request->kind == REQUEST_WRITE, begin_ms);
                ms -= AGE_WEIGHT * (begin_ms - request->arrival_ms);
                if (best < 0 || ms < *ret_ms) {
                        *ret_ms = ms;
                        best = (gint)i;
                }
        }
        return best;
}

/*
 * Gives the arm the next thing to do. @limit: requests from that number on wait for a flush.
 *
 * The choice falls at the end of the controller's overhead, so that a request which a host sends
 * as an answer to the one just served, a tenth of a ms later, is among those to choose from.
 */
static void
dispatch_arm(Queue *queue, guint64 limit, gboolean destage_now, double now)
{
        double overhead_ms = queue->params.overhead_us / 1e3;
        double request_ms = INFINITY, dirty_ms = INFINITY, destage_start_ms;
        Request *first = NULL;
        gint index = -1, dirty = -1;

        queue->choice_ms = INFINITY;
        for (guint i = 0; i < queue->pending->len && first == NULL; i++) {
                Request *request = g_ptr_array_index(queue->pending, i);

                if (request->number >= limit)
                        break;
                if (needs_arm(queue, request))
                        first = request;
        }
        if (first != NULL) {
                double begin_ms = MAX(queue->arm_free_ms, first->arrival_ms) + overhead_ms;

                if (now < begin_ms) {
                        queue->choice_ms = begin_ms;
                        return;
                }
                hdd_drive_advance(&queue->hdd, begin_ms);
                index = nearest_request(queue, limit, begin_ms, &request_ms);
                request_ms += begin_ms - now;
        } else if (queue->arm_destaged ||
                   now >= queue->last_host_ms + queue->params.destage_delay_ms) {
                destage_now = TRUE;
        }
        /* A chain of destages has no gaps: the drive knew the next one before. */
        destage_start_ms =
                queue->arm_destaged && now - queue->arm_free_ms < 5 ? queue->arm_free_ms : now;
        if (destage_now) {
                hdd_drive_advance(&queue->hdd, destage_start_ms);
                dirty = nearest_dirty(queue, destage_start_ms, &dirty_ms);
        }
        if (dirty >= 0 && (index < 0 || dirty_ms + destage_start_ms - now < request_ms)) {
                start_destage(queue, dirty, destage_start_ms);
        } else if (index >= 0) {
                double start_ms = MAX(queue->arm_free_ms, first->arrival_ms);
                Request *request = g_ptr_array_remove_index(queue->pending, (guint)index);

                request->overhead_ms = overhead_ms + touch_ms(queue, request);
                serve_by_arm(queue, request, start_ms);
        } else {
                queue->arm_destaged = FALSE;
        }
}

static gboolean
serving_a_write(const Queue *queue)
{
        for (guint i = 0; i < queue->serving->len; i++) {
                const Request *request = g_ptr_array_index(queue->serving, i);

                if (request->kind == REQUEST_WRITE || request->kind == REQUEST_DESTAGE)
                        return TRUE;
        }
        return FALSE;
}

static void
dispatch_hdd(Queue *queue, double now)
{
        guint64 limit = G_MAXUINT64;
        gboolean writes_wait = FALSE, writes_before = FALSE;
        double choice_ms = now; /* not beyond the choice of what the arm does next */
        Request *flush = NULL;

        for (guint i = 0; i < queue->pending->len;) {
                Request *request = g_ptr_array_index(queue->pending, i);
                double judge_ms;

                if (request->kind == REQUEST_FLUSH) {
                        flush = request;
                        limit = request->number;
                        break;
                }
                judge_ms = MAX(queue->arm_free_ms, request->arrival_ms) +
                           queue->params.overhead_us / 1e3;
                judge_ms = MIN(judge_ms, choice_ms);
                if (try_caches(queue, request, judge_ms, &writes_wait)) {
                        g_ptr_array_remove_index(queue->pending, i);
                        continue;
                }
                if (needs_arm(queue, request))
                        choice_ms = judge_ms;
                writes_before |= request->kind == REQUEST_WRITE;
                i++;
        }
        if (flush != NULL && !writes_before && queue->dirty.sectors == 0 &&
            !serving_a_write(queue)) {
                g_ptr_array_remove(queue->pending, flush);
                flush->overhead_ms = queue->params.overhead_us / 1e3;
                serve_until(queue, flush, MAX(flush->arrival_ms, queue->arm_free_ms));
                /* What waited for it is looked at when it is done. */
                return;
        }
        if (!queue->arm_busy)
                dispatch_arm(queue, limit, flush != NULL || writes_wait, now);
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
                serve_until(queue, request, start_ms);
                return;
        }
        cost = flash_drive_serve(&queue->flash, request->bytes, touch_ms(queue, request),
                                 request->arrival_ms);
        request->overhead_ms = cost.latency_ms;
        request->cost.transfer_ms = cost.transfer_ms;
        serve_until(queue, request, cost.start_ms);
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

                fill_read(queue, request);
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
                        dispatch_hdd(queue, now);
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
                fill_read(queue, request);
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
