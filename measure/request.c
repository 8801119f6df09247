// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The queue and the mechanics of a drive in virtual time. Pure.
 *
 * Queue: a plug merges a piece into the request before it when they touch. What waits is taken
 * first come, or (elevator) in rising position from the last one on, after every batch of 16 the
 * oldest when it has waited too long. The drive holds up to queue_depth requests and serves the one
 * with the shortest positioning time.
 *
 * Mechanics: after a read the head goes on reading into a segment of the cache until it is full or
 * another request takes it away. So the stream is somewhere beyond the last request, and what lies
 * a little further on comes by itself: the drive waits for it when that is quicker than
 * positioning. With one request to choose from, far away, the angle of its data is not known: half
 * a turn is expected. With several the best of them is chosen by pseudo-phase, since the gain of a
 * queue is the choice; and from one track to the next ones the angle is known.
 */
#include "measure/request.h"

#include <math.h>

#define ELEVATOR_BATCH 16
#define PHASE_TRACKS 4         /* over so many tracks the angle is known well enough */
#define ELEVATOR_EXPIRE_MS 500 /* mq-deadline's read_expire */

typedef struct {
        guint64 start, end;
        guint32 first, last; /* pieces */
        guint64 number;      /* order of submission */
        double submit_ms;
        double done_ms;
        GSequenceIter *sorted; /* while it waits under an elevator */
        GList *link;           /* in the fifo, then too */
} Queued;

typedef struct {
        guint64 start, end;
        guint64 used; /* 0 = free */
} Segment;

struct DriveSim {
        DiskModel *model;
        gboolean elevator;
        GArray *pieces;
        GPtrArray *plug;    /* Queued, in order of submission */
        GQueue fifo;        /* Queued that wait */
        GSequence *sorted;  /* the same by position, with an elevator */
        GPtrArray *window;  /* Queued that the drive chooses from */
        GPtrArray *service; /* Queued being served */
        guint64 number;
        guint64 elevator_position;
        guint elevator_run;
        double now_ms;
        RequestCost cost;

        /* rotational: where and when the last read ended; the stream goes on from there */
        guint64 stream_end;
        double stream_ms;
        gboolean streaming;
        GArray *segments;
        guint segment; /* of the stream */
        guint64 use_counter;

        /* flash */
        double iops_free_ms, bandwidth_free_ms, busy_since_ms;
        GHashTable *touched; /* regions, lazily loaded volumes */
};

static gint
compare_queued(gconstpointer a, gconstpointer b, gpointer data G_GNUC_UNUSED)
{
        const Queued *left = a, *right = b;

        if (left->start != right->start)
                return left->start < right->start ? -1 : 1;
        return left->number < right->number ? -1 : left->number > right->number;
}

static gint
compare_pointers(gconstpointer a, gconstpointer b)
{
        return compare_queued(*(gconstpointer const *)a, *(gconstpointer const *)b, NULL);
}

DriveSim *
drive_sim_new(const DiskModel *model, gboolean elevator)
{
        DriveSim *sim = g_new0(DriveSim, 1);

        sim->model = disk_model_copy(model);
        sim->elevator = elevator;
        sim->pieces = g_array_new(FALSE, FALSE, sizeof(DrivePiece));
        sim->plug = g_ptr_array_new();
        g_queue_init(&sim->fifo);
        sim->sorted = g_sequence_new(NULL);
        sim->window = g_ptr_array_new();
        sim->service = g_ptr_array_new();
        sim->segments = g_array_new(FALSE, TRUE, sizeof(Segment));
        g_array_set_size(sim->segments, MAX(model->cache_segments, 1));
        sim->touched = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
        return sim;
}

void
drive_sim_free(DriveSim *sim)
{
        if (sim == NULL)
                return;
        g_ptr_array_set_free_func(sim->plug, g_free);
        g_ptr_array_set_free_func(sim->window, g_free);
        g_ptr_array_set_free_func(sim->service, g_free);
        g_ptr_array_unref(sim->plug);
        g_ptr_array_unref(sim->window);
        g_ptr_array_unref(sim->service);
        g_queue_clear_full(&sim->fifo, g_free);
        g_sequence_free(sim->sorted);
        g_array_unref(sim->segments);
        g_array_unref(sim->pieces);
        g_hash_table_unref(sim->touched);
        disk_model_free(sim->model);
        g_free(sim);
}

const DiskModel *
drive_sim_model(const DriveSim *sim)
{
        return sim->model;
}

static guint64
max_request(const DriveSim *sim)
{
        return sim->model->max_request_bytes > 0 ? sim->model->max_request_bytes : G_MAXUINT64;
}

/* Puts the pieces of `later` behind those of `earlier`, when they touch and fit into one request.
 */
static gboolean
merge_behind(DriveSim *sim, Queued *earlier, const Queued *later)
{
        if (earlier->end != later->start || later->end - earlier->start > max_request(sim))
                return FALSE;
        g_array_index(sim->pieces, DrivePiece, earlier->last).next = later->first;
        earlier->last = later->last;
        earlier->end = later->end;
        return TRUE;
}

guint32
drive_sim_add(DriveSim *sim, guint64 position_bytes, guint64 length_bytes, guint32 owner)
{
        guint32 first = sim->pieces->len;

        g_assert(length_bytes > 0);
        while (length_bytes > 0) {
                guint64 length = MIN(length_bytes, max_request(sim));
                DrivePiece piece = {.position_bytes = position_bytes,
                                    .length_bytes = length,
                                    .owner = owner,
                                    .next = DRIVE_NO_PIECE,
                                    .done_ms = INFINITY};
                Queued new = {.start = position_bytes,
                              .end = position_bytes + length,
                              .first = sim->pieces->len,
                              .last = sim->pieces->len};
                Queued *last = sim->plug->len > 0 ? sim->plug->pdata[sim->plug->len - 1] : NULL;

                g_array_append_val(sim->pieces, piece);
                if (last == NULL || !merge_behind(sim, last, &new)) {
                        new.number = sim->number++;
                        g_ptr_array_add(sim->plug, g_memdup2(&new, sizeof(new)));
                }
                position_bytes += length;
                length_bytes -= length;
        }
        return first;
}

static void
queue_sorted(DriveSim *sim, Queued *request)
{
        GSequenceIter *at = g_sequence_search(sim->sorted, request, compare_queued, NULL);

        if (!g_sequence_iter_is_begin(at) &&
            merge_behind(sim, g_sequence_get(g_sequence_iter_prev(at)), request)) {
                g_free(request);
                return;
        }
        request->sorted = g_sequence_insert_before(at, request);
        g_queue_push_tail(&sim->fifo, request);
        request->link = g_queue_peek_tail_link(&sim->fifo);
}

void
drive_sim_unplug(DriveSim *sim, double now_ms)
{
        sim->now_ms = MAX(sim->now_ms, now_ms);
        if (sim->elevator)
                g_ptr_array_sort(sim->plug, compare_pointers);
        for (guint i = 0; i < sim->plug->len; i++) {
                Queued *request = sim->plug->pdata[i];

                request->submit_ms = sim->now_ms;
                if (sim->elevator)
                        queue_sorted(sim, request);
                else
                        g_queue_push_tail(&sim->fifo, request);
        }
        g_ptr_array_set_size(sim->plug, 0);
}

/* Takes the next request out of the queue, or NULL. */
static Queued *
take_waiting(DriveSim *sim)
{
        Queued *oldest = g_queue_peek_head(&sim->fifo), *chosen;
        GSequenceIter *at;
        Queued probe = {.start = sim->elevator_position, .number = 0};

        if (oldest == NULL)
                return NULL;
        if (!sim->elevator)
                return g_queue_pop_head(&sim->fifo);
        if (sim->elevator_run >= ELEVATOR_BATCH &&
            sim->now_ms - oldest->submit_ms > ELEVATOR_EXPIRE_MS) {
                chosen = oldest;
                sim->elevator_run = 0;
        } else {
                at = g_sequence_search(sim->sorted, &probe, compare_queued, NULL);
                if (g_sequence_iter_is_end(at))
                        at = g_sequence_get_begin_iter(sim->sorted);
                chosen = g_sequence_get(at);
        }
        sim->elevator_run++;
        sim->elevator_position = chosen->end;
        g_queue_delete_link(&sim->fifo, chosen->link);
        g_sequence_remove(chosen->sorted);
        chosen->sorted = NULL;
        return chosen;
}

/* --- one head over a turning platter --- */

static double
rate_at(const DriveSim *sim, guint64 position_bytes)
{
        return disk_model_rate_bytes_per_ms(
                sim->model, sim->model->capacity_bytes == 0
                                    ? 0
                                    : (double)position_bytes / (double)sim->model->capacity_bytes);
}

static guint64
segment_bytes(const DriveSim *sim)
{
        return sim->model->cache_bytes / MAX(sim->model->cache_segments, 1);
}

/* Where the stream is; *ret_ms is the moment at which it is (was) there. */
static guint64
stream_place(const DriveSim *sim, double now_ms, double *ret_ms)
{
        double rate = rate_at(sim, sim->stream_end);
        double ahead = rate * (now_ms - sim->stream_ms);

        if (!sim->streaming || ahead >= (double)segment_bytes(sim)) {
                guint64 limit = sim->streaming ? segment_bytes(sim) : 0;

                *ret_ms = sim->stream_ms + (double)limit / rate;
                return sim->stream_end + limit;
        }
        *ret_ms = now_ms;
        return sim->stream_end + (guint64)ahead;
}

typedef struct {
        gboolean cached; /* all in the cache */
        gboolean stream; /* the stream comes by: wait for it */
        guint64 from;    /* stream: where it is */
        double seek_ms, rotation_ms;
        double ready_ms; /* from now until the first byte: the drive's choice */
} Positioning;

static Segment *
find_cached(const DriveSim *sim, guint64 start, guint64 end)
{
        for (guint i = 0; i < sim->segments->len; i++) {
                Segment *segment = &g_array_index(sim->segments, Segment, i);

                if (segment->used > 0 && start >= segment->start && end <= segment->end)
                        return segment;
        }
        return NULL;
}

static Positioning
positioning(const DriveSim *sim, const Queued *request, double now_ms, gboolean expected)
{
        const DiskModel *model = sim->model;
        double capacity = model->capacity_bytes > 0 ? (double)model->capacity_bytes : 1;
        Positioning result = {0};
        double at_ms, gap_ms, distance, turns;
        guint64 at = stream_place(sim, now_ms, &at_ms);
        const Segment *segment = &g_array_index(sim->segments, Segment, sim->segment);

        if (find_cached(sim, request->start, request->end) != NULL ||
            (sim->streaming && request->start >= segment->start && request->end <= at)) {
                result.cached = TRUE;
                return result;
        }
        result.from = at;
        if (sim->streaming && request->start >= segment->start && request->start <= at &&
            request->end > at && at_ms >= now_ms) {
                result.stream = TRUE;
                return result;
        }
        result.seek_ms =
                disk_model_seek_ms(model, (double)at / capacity, (double)request->start / capacity);
        distance = disk_model_turns(model, request->start) - disk_model_turns(model, at);
        turns = distance -
                (now_ms + model->overhead_ms + result.seek_ms - at_ms) / model->rotation_ms;
        expected = expected && fabs(distance) > PHASE_TRACKS;
        result.rotation_ms = model->rotation_ms * (expected ? 0.5 : turns - floor(turns));
        result.ready_ms = model->overhead_ms + result.seek_ms + result.rotation_ms;
        if (sim->streaming && at_ms >= now_ms && request->start >= at) {
                gap_ms = (double)(request->start - at) / rate_at(sim, at);
                if (gap_ms <= result.ready_ms) {
                        result = (Positioning){.stream = TRUE, .from = at, .ready_ms = gap_ms};
                        return result;
                }
        }
        return result;
}

/* Divides a request's cost among its pieces: positioning to the first, transfer by length. */
static void
charge(DriveSim *sim, const Queued *request, double seek_ms, double rotation_ms, double transfer_ms,
       double overhead_ms)
{
        DrivePiece *piece = &g_array_index(sim->pieces, DrivePiece, request->first);
        double length = (double)(request->end - request->start);

        piece->leads = TRUE;
        piece->seek_ms = seek_ms;
        piece->rotation_ms = rotation_ms;
        piece->overhead_ms = overhead_ms;
        for (guint32 i = request->first; i != DRIVE_NO_PIECE; i = piece->next) {
                piece = &g_array_index(sim->pieces, DrivePiece, i);
                piece->transfer_ms = transfer_ms * (double)piece->length_bytes / length;
        }
        sim->cost.requests++;
        sim->cost.bytes += request->end - request->start;
        sim->cost.seeks += seek_ms > 0;
        sim->cost.seek_ms += seek_ms;
        sim->cost.rotation_ms += rotation_ms;
        sim->cost.transfer_ms += transfer_ms;
        sim->cost.overhead_ms += overhead_ms;
}

/* Gives the stream that begins at `start` a segment, the one unused longest. */
static void
open_segment(DriveSim *sim, guint64 start, guint64 end)
{
        guint oldest = 0;

        for (guint i = 1; i < sim->segments->len; i++)
                if (g_array_index(sim->segments, Segment, i).used <
                    g_array_index(sim->segments, Segment, oldest).used)
                        oldest = i;
        sim->segment = oldest;
        g_array_index(sim->segments, Segment, oldest) = (Segment){start, end, 0};
}

/* Extends the stream's segment up to `end`; a segment keeps what was read last. */
static void
extend_segment(DriveSim *sim, guint64 end)
{
        Segment *segment = &g_array_index(sim->segments, Segment, sim->segment);

        segment->end = end;
        if (segment->end - segment->start > segment_bytes(sim))
                segment->start = segment->end - segment_bytes(sim);
        segment->used = sim->model->cache_bytes > 0 ? ++sim->use_counter : 0;
}

static void
serve_rotational(DriveSim *sim, Queued *request, double now_ms)
{
        const DiskModel *model = sim->model;
        gboolean expected = sim->window->len == 0;
        Positioning p = positioning(sim, request, now_ms, expected);
        guint64 length = request->end - request->start;
        double bus_ms = model->interface_bytes_per_ms > 0
                                ? (double)length / model->interface_bytes_per_ms
                                : 0;
        double at_ms;

        if (p.cached) {
                Segment *segment = find_cached(sim, request->start, request->end);

                if (segment != NULL)
                        segment->used = ++sim->use_counter;
                charge(sim, request, 0, 0, bus_ms, model->overhead_ms);
                request->done_ms = now_ms + bus_ms + model->overhead_ms;
        } else if (p.stream) {
                double gap_ms = request->start > p.from
                                        ? (double)(request->start - p.from) / rate_at(sim, p.from)
                                        : 0;
                double media_ms = (double)(request->end - MAX(request->start, p.from)) /
                                  rate_at(sim, request->start);
                double late_ms = MAX(0, model->overhead_ms + bus_ms - gap_ms - media_ms);

                charge(sim, request, 0, gap_ms, media_ms, late_ms);
                extend_segment(sim, request->end);
                request->done_ms = now_ms + gap_ms + media_ms + late_ms;
                sim->stream_end = request->end;
                sim->stream_ms = now_ms + gap_ms + media_ms;
        } else {
                double media_ms = (double)length / rate_at(sim, request->start + length / 2);

                if (sim->streaming)
                        extend_segment(sim, stream_place(sim, now_ms, &at_ms));
                charge(sim, request, p.seek_ms, p.rotation_ms, media_ms, model->overhead_ms);
                request->done_ms =
                        now_ms + model->overhead_ms + p.seek_ms + p.rotation_ms + media_ms;
                open_segment(sim, request->start, request->end);
                extend_segment(sim, request->end);
                sim->stream_end = request->end;
                sim->stream_ms = request->done_ms;
                sim->streaming = TRUE;
        }
        sim->cost.total_ms += request->done_ms - now_ms;
}

static void
start_rotational(DriveSim *sim, double now_ms)
{
        guint best = 0;
        double best_ms = INFINITY;

        if (sim->service->len > 0)
                return;
        while (sim->window->len < MAX(sim->model->queue_depth, 1)) {
                Queued *request = take_waiting(sim);

                if (request == NULL)
                        break;
                g_ptr_array_add(sim->window, request);
        }
        if (sim->window->len == 0)
                return;
        for (guint i = 0; sim->window->len > 1 && i < sim->window->len; i++) {
                Positioning p = positioning(sim, sim->window->pdata[i], now_ms, FALSE);

                if (p.ready_ms < best_ms) {
                        best_ms = p.ready_ms;
                        best = i;
                }
        }
        Queued *chosen = g_ptr_array_steal_index(sim->window, best);
        serve_rotational(sim, chosen, now_ms);
        g_ptr_array_add(sim->service, chosen);
}

/* --- flash and network volumes: units that work side by side behind caps --- */

static double
first_touch_ms(DriveSim *sim, const Queued *request)
{
        double sum_ms = 0;

        if (sim->model->first_touch_bytes == 0)
                return 0;
        for (guint64 region = request->start / sim->model->first_touch_bytes;
             region <= (request->end - 1) / sim->model->first_touch_bytes; region++) {
                gint64 key = (gint64)region;

                if (g_hash_table_contains(sim->touched, &key))
                        continue;
                g_hash_table_add(sim->touched, g_memdup2(&key, sizeof(key)));
                sum_ms += sim->model->first_touch_ms;
        }
        return sum_ms;
}

static void
start_flash(DriveSim *sim, double now_ms)
{
        const DiskModel *model = sim->model;

        while (sim->service->len < MAX(model->queue_depth, 1)) {
                Queued *request = take_waiting(sim);
                double begin_ms, access_ms, transfer_ms;

                if (request == NULL)
                        return;
                begin_ms = MAX(now_ms, sim->iops_free_ms);
                if (model->iops > 0)
                        sim->iops_free_ms = begin_ms + 1000 / model->iops;
                access_ms = model->latency_ms + first_touch_ms(sim, request);
                transfer_ms = (double)(request->end - request->start) / model->bytes_per_ms;
                request->done_ms = MAX(begin_ms + access_ms, sim->bandwidth_free_ms) + transfer_ms;
                sim->bandwidth_free_ms = request->done_ms;
                charge(sim, request, 0, 0, transfer_ms, access_ms);
                if (sim->service->len == 0)
                        sim->busy_since_ms = now_ms;
                g_ptr_array_add(sim->service, request);
        }
}

/* --- the interface --- */

void
drive_sim_start(DriveSim *sim, double now_ms)
{
        sim->now_ms = MAX(sim->now_ms, now_ms);
        if (sim->model->kind == DISK_FLASH)
                start_flash(sim, sim->now_ms);
        else
                start_rotational(sim, sim->now_ms);
}

static guint
next_in_service(const DriveSim *sim)
{
        guint first = 0;

        for (guint i = 1; i < sim->service->len; i++)
                if (((Queued *)sim->service->pdata[i])->done_ms <
                    ((Queued *)sim->service->pdata[first])->done_ms)
                        first = i;
        return first;
}

double
drive_sim_next_ms(const DriveSim *sim)
{
        if (sim->service->len == 0)
                return INFINITY;
        return ((Queued *)sim->service->pdata[next_in_service(sim)])->done_ms;
}

void
drive_sim_finish(DriveSim *sim)
{
        g_autofree Queued *request = NULL;
        DrivePiece *piece;

        g_assert(sim->service->len > 0);
        request = g_ptr_array_steal_index_fast(sim->service, next_in_service(sim));
        sim->now_ms = MAX(sim->now_ms, request->done_ms);
        for (guint32 i = request->first; i != DRIVE_NO_PIECE; i = piece->next) {
                piece = &g_array_index(sim->pieces, DrivePiece, i);
                piece->done_ms = request->done_ms;
        }
        if (sim->model->kind == DISK_FLASH && sim->service->len == 0)
                sim->cost.total_ms += request->done_ms - sim->busy_since_ms;
}

guint
drive_sim_outstanding(const DriveSim *sim)
{
        return g_queue_get_length((GQueue *)&sim->fifo) + sim->window->len + sim->service->len;
}

double
drive_sim_done_ms(const DriveSim *sim, guint32 piece)
{
        return g_array_index(sim->pieces, DrivePiece, piece).done_ms;
}

const GArray *
drive_sim_pieces(const DriveSim *sim)
{
        return sim->pieces;
}

const RequestCost *
drive_sim_cost(const DriveSim *sim)
{
        return &sim->cost;
}

double
drive_sim_drain(DriveSim *sim, double now_ms)
{
        drive_sim_unplug(sim, now_ms);
        for (;;) {
                drive_sim_start(sim, sim->now_ms);
                if (sim->service->len == 0)
                        return sim->now_ms;
                drive_sim_finish(sim);
        }
}

void
request_stream_cost(const DiskModel *model, const Request *requests, gsize n_requests,
                    guint queue_depth, gboolean elevator, RequestCost *ret)
{
        g_autoptr(DriveSim) sim = drive_sim_new(model, elevator);
        gsize next = 0;

        for (;;) {
                while (next < n_requests && drive_sim_outstanding(sim) < MAX(queue_depth, 1)) {
                        drive_sim_add(sim, requests[next].position_bytes,
                                      requests[next].length_bytes, 0);
                        drive_sim_unplug(sim, sim->now_ms);
                        next++;
                }
                drive_sim_start(sim, sim->now_ms);
                if (sim->service->len == 0)
                        break;
                drive_sim_finish(sim);
        }
        *ret = sim->cost;
}
