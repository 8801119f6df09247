// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * queue-hdd.c - what a disk does next.
 *
 * It serves one request at a time with its arm ("mechanical"): the one among the oldest
 * queue_depth outstanding whose data can pass the head first, with some weight for age. Beside
 * the arm the interface moves data from and to the caches. Cached writes are written when there
 * was nothing else to do for a while, when the cache is full, or for a flush. A flush is what the
 * ATA command is, not queued: later requests wait for it.
 */
#include "queue-private.h"

#include <math.h>

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

/* A transfer from or to a cache of the disk, beside what the arm does. */
static void
serve_by_interface(Queue *queue, Request *request, double ready_ms)
{
        double start_ms = MAX(request->arrival_ms, queue->interface_free_ms);

        if (request->waited)
                start_ms = MAX(start_ms, queue->room_ms);

        request->overhead_ms =
                queue->params.overhead_us / 1e3 * CACHED_OVERHEAD + queue_touch_ms(queue, request);
        request->cost.transfer_ms = (double)request->bytes / (queue->params.interface_mb_s * 1e3);
        request->cost.transfer_ms =
                MAX(request->cost.transfer_ms, ready_ms - start_ms - request->overhead_ms);
        queue_serve_until(queue, request, start_ms);
        queue->interface_free_ms = request->end_ms;
        queue_fill_read(queue, request);
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
        queue_serve_until(queue, request, start_ms);
        queue->arm_free_ms = request->end_ms;
        queue_fill_read(queue, request);
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
 * The request to begin with so that the chosen one follows without a gap: drives join adjacent
 * commands of the queue. Else a sequential reader at some depth, once out of order, would stay so:
 * turning back by a few requests costs little.
 */
static guint
first_of_chain(const Queue *queue, guint64 limit, double begin_ms, guint chosen)
{
        guint depth = MIN(queue->pending->len, (guint)queue->params.queue_depth);

        for (guint i = 0; i < depth; i++) {
                const Request *head = g_ptr_array_index(queue->pending, chosen);
                const Request *request = g_ptr_array_index(queue->pending, i);

                if (request->number >= limit)
                        break;
                if (request->kind != head->kind || request->arrival_ms > begin_ms ||
                    request->offset + request->bytes != head->offset)
                        continue;
                chosen = i;
                i = (guint)-1; /* look for its predecessor from the first on */
        }
        return chosen;
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
        double begin_ms = now;
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
                begin_ms = MAX(queue->arm_free_ms, first->arrival_ms) + overhead_ms;
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
                Request *request = g_ptr_array_index(queue->pending, index);
                guint64 start = first_sector(request);

                /* The head runs on into a request that it has reached, whatever lies before. */
                if (hdd_drive_positioning_ms(&queue->hdd, start, end_sector(request) - start,
                                             request->kind == REQUEST_WRITE, begin_ms) > 0)
                        index = (gint)first_of_chain(queue, limit, begin_ms, (guint)index);
                request = g_ptr_array_remove_index(queue->pending, (guint)index);
                request->overhead_ms = overhead_ms + queue_touch_ms(queue, request);
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

void
queue_dispatch_hdd(Queue *queue, double now)
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
                queue_serve_until(queue, flush, MAX(flush->arrival_ms, queue->arm_free_ms));
                /* What waited for it is looked at when it is done. */
                return;
        }
        if (!queue->arm_busy)
                dispatch_arm(queue, limit, flush != NULL || writes_wait, now);
}
