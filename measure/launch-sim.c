// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The event loop of a simulated start. At any moment the earliest of three kinds of event happens:
 * a drive completes a request, a walker (program or whole-file reader) touches its next page, the
 * prefetcher submits its next batch. A drive takes up new work only when all that happens by then
 * is done. Pure.
 */
#include "measure/launch-sim.h"

#include <math.h>

#define FAULT_AROUND_BYTES 65536  /* mm/memory.c, its default since Linux 3.15 */
#define PAGES_PER_READ_PROGRAM 8  /* a guess at what read(2) calls of programs ask for: 32 KiB */
#define PAGES_PER_READ_READER 256 /* a tool that loads whole files: 1 MiB */
#define INODE_READAHEAD_BLOCKS 32 /* ext4's default */
/* As the replay engine and the compiler of packs have them. */
#define PREFETCH_BATCH 64
#define PREFETCH_BATCH_BYTES (8 * 1024 * 1024)
#define PREFETCH_PIECE_BYTES (1024 * 1024)
#define PREFETCH_META_GAP_BYTES (32 * 1024)

typedef struct {
        guint32 disk, piece;
} Wait;

typedef struct {
        guint64 logical_bytes, length_bytes;
        guint32 piece;
} Segment;

typedef struct {
        guint32 disk, first_segment, segments;
} TagPlaces;

typedef enum { STEP_META, STEP_READ, STEP_FAULT } StepKind;

typedef struct {
        StepKind kind;
        guint32 object; /* LayoutMeta or file */
        guint64 page, pages;
        guint64 first_use_us;
} Step;

typedef struct {
        GArray *steps;
        guint next;
        guint64 page; /* pages of the step that are done */
        guint64 pages_per_read;
        double cpu_per_page_ms;
        double cpu_left_ms; /* at the end: all of it when no page is touched */
        double ready_ms;    /* of the next touch; INFINITY: waits, or done */
        GArray *waits;      /* Wait */
        gboolean done;
        double done_ms;
} Walker;

typedef struct {
        const GArray *ranges;
        guint next;
        guint64 offset_bytes; /* of the next range, what is submitted */
        GArray *waits;        /* Wait: pieces in flight */
        gboolean metadata;    /* still reading it */
        gboolean ready;
        gboolean done;
        double metadata_ms, done_ms;
} Prefetcher;

typedef struct {
        const LaunchPlan *plan;
        const Layout *layout;
        GPtrArray *drives; /* DriveSim */
        ReadaheadSim *cache;
        GArray *reads;   /* scratch: ReadaheadRead */
        GArray *extents; /* scratch: Extent */
        GArray *segments;
        GArray *tags;     /* TagPlaces */
        GHashTable *meta; /* block -> piece + 1 */
        guint64 metadata_blocks;
        double now_ms;
} Sim;

static DriveSim *
drive_of(const Sim *sim, guint32 disk)
{
        return sim->drives->pdata[disk];
}

static gboolean
is_done(const Sim *sim, const Wait *wait)
{
        return drive_sim_done_ms(drive_of(sim, wait->disk), wait->piece) <= sim->now_ms;
}

/* Drops what is done; returns the number left. */
static guint
still_waiting(const Sim *sim, GArray *waits)
{
        for (guint i = 0; i < waits->len;)
                if (is_done(sim, &g_array_index(waits, Wait, i)))
                        g_array_remove_index_fast(waits, i);
                else
                        i++;
        return waits->len;
}

static void
unplug_all(Sim *sim)
{
        for (guint i = 0; i < sim->drives->len; i++)
                drive_sim_unplug(sim->drives->pdata[i], sim->now_ms);
}

/* Puts the reads found by the cache on the drives; the places of each are remembered under its tag.
 */
static void
submit_reads(Sim *sim, GArray *waits)
{
        guint64 page_bytes = sim->layout->page_bytes;

        for (guint i = 0; i < sim->reads->len; i++) {
                const ReadaheadRead *read = &g_array_index(sim->reads, ReadaheadRead, i);
                guint32 disk = g_array_index(sim->layout->files, LayoutFile, read->file).disk;
                TagPlaces places = {.disk = disk, .first_segment = sim->segments->len};

                g_assert(read->tag == sim->tags->len);
                g_array_set_size(sim->extents, 0);
                layout_clip(sim->layout, read->file, read->first_page * page_bytes,
                            read->pages * page_bytes, sim->extents);
                for (guint k = 0; k < sim->extents->len; k++) {
                        const Extent *extent = &g_array_index(sim->extents, Extent, k);
                        Segment segment = {.logical_bytes = extent->logical_bytes,
                                           .length_bytes = extent->length_bytes};

                        segment.piece = drive_sim_add(drive_of(sim, disk), extent->physical_bytes,
                                                      extent->length_bytes, read->file);
                        g_array_append_val(sim->segments, segment);
                        for (guint32 p = segment.piece;
                             waits != NULL && p < drive_sim_pieces(drive_of(sim, disk))->len; p++) {
                                Wait wait = {disk, p};

                                g_array_append_val(waits, wait);
                        }
                }
                places.segments = sim->segments->len - places.first_segment;
                g_array_append_val(sim->tags, places);
        }
        g_array_set_size(sim->reads, 0);
}

/* Appends what has to be waited for until the page can be used. */
static void
wait_for_page(const Sim *sim, guint32 file, guint64 page, GArray *waits)
{
        guint32 tag = readahead_sim_lookup(sim->cache, file, page);
        guint64 page_bytes = sim->layout->page_bytes, start = page * page_bytes;
        const TagPlaces *places;
        guint64 largest;

        if (tag == READAHEAD_ABSENT)
                return;
        places = &g_array_index(sim->tags, TagPlaces, tag);
        if (places->segments == 0) /* a hole */
                return;
        largest = drive_sim_model(drive_of(sim, places->disk))->max_request_bytes;
        for (guint i = 0; i < places->segments; i++) {
                const Segment *segment =
                        &g_array_index(sim->segments, Segment, places->first_segment + i);
                guint64 from = MAX(start, segment->logical_bytes);
                guint64 end =
                        MIN(start + page_bytes, segment->logical_bytes + segment->length_bytes);
                Wait wait = {.disk = places->disk, .piece = segment->piece};

                if (from >= end)
                        continue;
                if (largest > 0)
                        wait.piece += (guint32)((from - segment->logical_bytes) / largest);
                if (!is_done(sim, &wait))
                        g_array_append_val(waits, wait);
        }
}

/* --- metadata --- */

static gint64
meta_key(const LayoutMeta *meta, guint64 position_bytes)
{
        return (gint64)(((guint64)meta->disk << 54) ^
                        ((meta->offset_bytes + position_bytes) / 512));
}

static gboolean
meta_lookup(const Sim *sim, const LayoutMeta *meta, guint64 position_bytes, Wait *ret)
{
        gint64 key = meta_key(meta, position_bytes);
        guint value = GPOINTER_TO_UINT(g_hash_table_lookup(sim->meta, &key));

        *ret = (Wait){meta->disk, value - 1};
        return value != 0;
}

static void
meta_read(Sim *sim, const LayoutMeta *meta, guint64 position_bytes)
{
        gint64 *key = g_new(gint64, 1);
        guint32 piece =
                drive_sim_add(drive_of(sim, meta->disk), meta->offset_bytes + position_bytes,
                              meta->length_bytes, sim->layout->files->len);

        *key = meta_key(meta, position_bytes);
        g_hash_table_insert(sim->meta, key, GUINT_TO_POINTER(piece + 1));
        sim->metadata_blocks++;
}

/* A block that somebody needs now. ext4 reads an inode-table block with its aligned neighbours. */
static void
touch_meta(Sim *sim, const LayoutMeta *meta, GArray *waits)
{
        guint64 window = (guint64)meta->length_bytes * INODE_READAHEAD_BLOCKS;
        guint64 first = meta->position_bytes, end = first + meta->length_bytes;
        Wait wait;

        if (meta->disk == LAYOUT_NO_DISK)
                return;
        if (!meta_lookup(sim, meta, meta->position_bytes, &wait)) {
                if (meta->kind == PROFILE_META_INODE) {
                        first = first / window * window;
                        end = first + window;
                }
                for (guint64 at = first; at < end; at += meta->length_bytes)
                        if (!meta_lookup(sim, meta, at, &wait))
                                meta_read(sim, meta, at);
                meta_lookup(sim, meta, meta->position_bytes, &wait);
        }
        if (!is_done(sim, &wait))
                g_array_append_val(waits, wait);
}

/* --- walkers --- */

static gint
compare_steps(gconstpointer a, gconstpointer b)
{
        const Step *left = a, *right = b;

        if (left->first_use_us != right->first_use_us)
                return left->first_use_us < right->first_use_us ? -1 : 1;
        return (left->kind != STEP_META) - (right->kind != STEP_META);
}

static void
add_meta_steps(const Layout *layout, GArray *steps)
{
        for (guint32 i = 0; i < layout->meta->len; i++) {
                Step step = {.kind = STEP_META,
                             .object = i,
                             .pages = 1,
                             .first_use_us =
                                     g_array_index(layout->meta, LayoutMeta, i).first_use_us};

                g_array_append_val(steps, step);
        }
}

static void
walker_start(Walker *walker, double cpu_ms, guint64 pages_per_read)
{
        guint64 pages = 0;

        g_array_sort(walker->steps, compare_steps);
        for (guint i = 0; i < walker->steps->len; i++)
                if (g_array_index(walker->steps, Step, i).kind != STEP_META)
                        pages += g_array_index(walker->steps, Step, i).pages;
        walker->waits = g_array_new(FALSE, FALSE, sizeof(Wait));
        walker->pages_per_read = pages_per_read;
        walker->cpu_per_page_ms = pages > 0 ? cpu_ms / (double)pages : 0;
        walker->cpu_left_ms = pages > 0 ? 0 : cpu_ms;
        walker->ready_ms = walker->cpu_per_page_ms;
}

/* Windows that fault-around mapped: because a page in each was touched and was there, having been
 * cached before or read ahead. In another start, with another readahead, that touch may have to
 * wait. Where the page itself faulted as well, what is around it comes in with it and the step
 * costs nothing. */
static void
add_mapped(GArray *steps, Step step, guint64 page_bytes)
{
        const guint64 window = FAULT_AROUND_BYTES / page_bytes, end = step.page + step.pages;

        step.kind = STEP_FAULT;
        step.pages = 1;
        for (; step.page < end; step.page = (step.page / window + 1) * window)
                g_array_append_val(steps, step);
}

static void
program_init(Walker *walker, const LaunchPlan *plan)
{
        guint64 page_bytes = plan->layout->page_bytes;

        walker->steps = g_array_new(FALSE, FALSE, sizeof(Step));
        add_meta_steps(plan->layout, walker->steps);
        for (guint i = 0; i < plan->profile->ranges->len; i++) {
                const ProfileRange *range = &g_array_index(plan->profile->ranges, ProfileRange, i);
                Step step = {.kind = range->cause == PROFILE_CAUSE_FAULT ? STEP_FAULT : STEP_READ,
                             .object = range->file,
                             .page = range->offset_bytes / page_bytes,
                             .first_use_us = range->first_use_us};

                step.pages =
                        (range->offset_bytes + range->length_bytes + page_bytes - 1) / page_bytes -
                        step.page;
                if (range->cause == PROFILE_CAUSE_MAP)
                        add_mapped(walker->steps, step, page_bytes);
                else
                        g_array_append_val(walker->steps, step);
        }
        walker_start(walker, plan->cpu_ms, PAGES_PER_READ_PROGRAM);
}

static void
reader_init(Walker *walker, const LaunchPlan *plan)
{
        walker->steps = g_array_new(FALSE, FALSE, sizeof(Step));
        add_meta_steps(plan->layout, walker->steps);
        for (guint32 i = 0; i < plan->profile->files->len; i++) {
                const ProfileFile *file = &g_array_index(plan->profile->files, ProfileFile, i);
                Step step = {.kind = STEP_READ, .object = i, .first_use_us = file->first_use_us};

                step.pages = (file->size_bytes + plan->layout->page_bytes - 1) /
                             plan->layout->page_bytes;
                if (step.pages > 0)
                        g_array_append_val(walker->steps, step);
        }
        walker_start(walker, 0, PAGES_PER_READ_READER);
}

static void
walker_clear(Walker *walker)
{
        g_clear_pointer(&walker->steps, g_array_unref);
        g_clear_pointer(&walker->waits, g_array_unref);
}

/* Does the next touch; what it has to wait for comes into walker->waits. */
static void
walker_touch(Sim *sim, Walker *walker)
{
        const Step *step;
        guint64 page, left;

        if (walker->next == walker->steps->len && walker->cpu_left_ms > 0) {
                walker->ready_ms = sim->now_ms + walker->cpu_left_ms;
                walker->cpu_left_ms = 0;
                return;
        }
        if (walker->next == walker->steps->len) {
                walker->done = TRUE;
                walker->done_ms = sim->now_ms;
                walker->ready_ms = INFINITY;
                return;
        }
        step = &g_array_index(walker->steps, Step, walker->next);
        page = step->page + walker->page;
        if (step->kind == STEP_META) {
                touch_meta(sim, &g_array_index(sim->layout->meta, LayoutMeta, step->object),
                           walker->waits);
        } else {
                left = walker->pages_per_read - walker->page % walker->pages_per_read;
                left = MIN(left, step->pages - walker->page);
                if (step->kind == STEP_READ)
                        readahead_sim_read(sim->cache, step->object, page, left, sim->reads);
                else
                        readahead_sim_fault(sim->cache, step->object, page, sim->reads);
                submit_reads(sim, NULL);
                wait_for_page(sim, step->object, page, walker->waits);
        }
        unplug_all(sim);
        if (++walker->page == step->pages) {
                walker->page = 0;
                walker->next++;
        }
}

/* Until when the CPU is busy before the next touch. */
static double
walker_cpu_ms(const Walker *walker)
{
        if (walker->next == walker->steps->len ||
            g_array_index(walker->steps, Step, walker->next).kind == STEP_META)
                return 0;
        return walker->cpu_per_page_ms;
}

static void
walker_step(Sim *sim, Walker *walker)
{
        gboolean at_end = walker->next == walker->steps->len;

        walker_touch(sim, walker);
        if (!at_end)
                walker->ready_ms =
                        walker->waits->len > 0 ? INFINITY : sim->now_ms + walker_cpu_ms(walker);
}

static void
walker_wake(Sim *sim, Walker *walker)
{
        if (walker->waits != NULL && walker->waits->len > 0 &&
            still_waiting(sim, walker->waits) == 0)
                walker->ready_ms = sim->now_ms + walker_cpu_ms(walker);
}

/* --- the prefetcher --- */

static gint
compare_positions(gconstpointer a, gconstpointer b)
{
        const LayoutMeta *left = a, *right = b;
        guint64 x = left->offset_bytes + left->position_bytes;
        guint64 y = right->offset_bytes + right->position_bytes;

        if (left->disk != right->disk)
                return left->disk < right->disk ? -1 : 1;
        return x < y ? -1 : x > y;
}

static void
prefetch_metadata(Sim *sim, Prefetcher *prefetcher)
{
        g_autoptr(GArray) sorted = g_array_copy(sim->layout->meta);
        const LayoutMeta *last = NULL;

        g_array_sort(sorted, compare_positions);
        for (guint i = 0; i < sorted->len; i++) {
                const LayoutMeta *meta = &g_array_index(sorted, LayoutMeta, i);
                guint64 from = meta->position_bytes;
                Wait wait;

                if (meta->disk == LAYOUT_NO_DISK || meta_lookup(sim, meta, from, &wait))
                        continue;
                /* A small gap is read along: one request instead of two. */
                if (last != NULL && last->disk == meta->disk &&
                    last->offset_bytes == meta->offset_bytes &&
                    from - last->position_bytes - last->length_bytes <= PREFETCH_META_GAP_BYTES)
                        from = last->position_bytes + last->length_bytes;
                for (; from <= meta->position_bytes; from += meta->length_bytes) {
                        if (meta_lookup(sim, meta, from, &wait))
                                continue;
                        meta_read(sim, meta, from);
                        meta_lookup(sim, meta, from, &wait);
                        g_array_append_val(prefetcher->waits, wait);
                }
                last = meta;
        }
        unplug_all(sim);
}

static guint64
bytes_in_flight(const Sim *sim, const GArray *waits)
{
        guint64 sum = 0;

        for (guint i = 0; i < waits->len; i++) {
                const Wait *wait = &g_array_index(waits, Wait, i);

                sum += g_array_index(drive_sim_pieces(drive_of(sim, wait->disk)), DrivePiece,
                                     wait->piece)
                               .length_bytes;
        }
        return sum;
}

static void
prefetch_batch(Sim *sim, Prefetcher *prefetcher)
{
        guint64 page_bytes = sim->layout->page_bytes, bytes = 0;

        for (guint n = 0; n < PREFETCH_BATCH && bytes < PREFETCH_BATCH_BYTES &&
                          prefetcher->next < prefetcher->ranges->len;
             n++) {
                const OrderedRange *range =
                        &g_array_index(prefetcher->ranges, OrderedRange, prefetcher->next);
                guint64 from = range->offset_bytes + prefetcher->offset_bytes;
                guint64 length =
                        MIN(PREFETCH_PIECE_BYTES, range->length_bytes - prefetcher->offset_bytes);

                readahead_sim_fetch(sim->cache, range->file, from / page_bytes,
                                    (length + page_bytes - 1) / page_bytes, sim->reads);
                submit_reads(sim, prefetcher->waits);
                bytes += length;
                prefetcher->offset_bytes += length;
                if (prefetcher->offset_bytes >= range->length_bytes) {
                        prefetcher->offset_bytes = 0;
                        prefetcher->next++;
                }
        }
        unplug_all(sim);
}

/* What the prefetcher does at this moment; TRUE when it did something. */
static gboolean
prefetcher_step(Sim *sim, Prefetcher *prefetcher, Walker *program)
{
        if (prefetcher->ranges == NULL || prefetcher->done)
                return FALSE;
        still_waiting(sim, prefetcher->waits);
        if (prefetcher->metadata) {
                if (prefetcher->waits->len > 0)
                        return FALSE;
                prefetcher->metadata = FALSE;
                prefetcher->metadata_ms = sim->now_ms;
                if (program->steps != NULL)
                        program->ready_ms = sim->now_ms + walker_cpu_ms(program);
        }
        if (prefetcher->next == prefetcher->ranges->len) {
                if (prefetcher->waits->len > 0)
                        return FALSE;
                prefetcher->done = TRUE;
                prefetcher->done_ms = sim->now_ms;
                return TRUE;
        }
        if (prefetcher->waits->len > PREFETCH_BATCH ||
            bytes_in_flight(sim, prefetcher->waits) > PREFETCH_BATCH_BYTES)
                return FALSE;
        prefetch_batch(sim, prefetcher);
        return TRUE;
}

/* --- the loop --- */

static void
run(Sim *sim, Walker *program, Walker *reader, Prefetcher *prefetcher)
{
        while (!(program->steps != NULL ? program->done
                                        : prefetcher->ranges == NULL || prefetcher->done)) {
                DriveSim *first = NULL;
                double next_ms;

                if (prefetcher_step(sim, prefetcher, program))
                        continue;
                next_ms = MIN(program->ready_ms, reader->ready_ms);
                if (next_ms > sim->now_ms)
                        for (guint i = 0; i < sim->drives->len; i++)
                                drive_sim_start(sim->drives->pdata[i], sim->now_ms);
                for (guint i = 0; i < sim->drives->len; i++) {
                        double ms = drive_sim_next_ms(sim->drives->pdata[i]);

                        if (ms <= next_ms) {
                                next_ms = ms;
                                first = sim->drives->pdata[i];
                        }
                }
                g_assert(isfinite(next_ms)); /* somebody always can go on */
                sim->now_ms = MAX(sim->now_ms, next_ms);
                if (first != NULL) {
                        drive_sim_finish(first);
                        walker_wake(sim, program);
                        walker_wake(sim, reader);
                } else if (program->ready_ms <= next_ms) {
                        walker_step(sim, program);
                } else {
                        walker_step(sim, reader);
                }
        }
}

static void
sum_costs(const Sim *sim, LaunchResult *ret, GArray **ret_files)
{
        guint n_files = sim->layout->files->len;

        if (ret_files != NULL) {
                *ret_files = g_array_new(FALSE, TRUE, sizeof(LaunchFileCost));
                g_array_set_size(*ret_files, n_files + 1);
        }
        for (guint i = 0; i < sim->drives->len; i++) {
                const RequestCost *cost = drive_sim_cost(sim->drives->pdata[i]);
                const GArray *pieces = drive_sim_pieces(sim->drives->pdata[i]);

                ret->cost.requests += cost->requests;
                ret->cost.bytes += cost->bytes;
                ret->cost.seeks += cost->seeks;
                ret->cost.seek_ms += cost->seek_ms;
                ret->cost.rotation_ms += cost->rotation_ms;
                ret->cost.transfer_ms += cost->transfer_ms;
                ret->cost.overhead_ms += cost->overhead_ms;
                ret->cost.total_ms += cost->total_ms;
                for (guint k = 0; ret_files != NULL && k < pieces->len; k++) {
                        const DrivePiece *piece = &g_array_index(pieces, DrivePiece, k);
                        LaunchFileCost *file = &g_array_index(*ret_files, LaunchFileCost,
                                                              MIN(piece->owner, n_files));

                        file->requests += piece->leads;
                        file->bytes += piece->length_bytes;
                        file->seek_ms += piece->seek_ms;
                        file->rotation_ms += piece->rotation_ms;
                        file->transfer_ms += piece->transfer_ms;
                        file->overhead_ms += piece->overhead_ms;
                }
        }
}

void
launch_simulate(const LaunchPlan *plan, LaunchResult *ret, GArray **ret_files)
{
        const Layout *layout = plan->layout;
        Sim sim = {.plan = plan, .layout = layout};
        Walker program = {.ready_ms = INFINITY}, reader = {.ready_ms = INFINITY};
        Prefetcher prefetcher = {.ranges = plan->prefetch};
        guint64 largest =
                layout->disks->len > 0
                        ? ((LayoutDisk *)layout->disks->pdata[0])->model->max_request_bytes
                        : 0;

        *ret = (LaunchResult){0};
        sim.drives = g_ptr_array_new_with_free_func((GDestroyNotify)drive_sim_free);
        for (guint i = 0; i < layout->disks->len; i++) {
                const LayoutDisk *disk = layout->disks->pdata[i];

                g_ptr_array_add(sim.drives, drive_sim_new(disk->model, disk->elevator));
        }
        sim.cache = readahead_sim_new(layout->page_bytes, plan->readahead_bytes, largest);
        for (guint i = 0; i < layout->files->len; i++)
                readahead_sim_add_file(sim.cache,
                                       g_array_index(layout->files, LayoutFile, i).size_bytes,
                                       g_array_index(layout->files, LayoutFile, i).executable);
        sim.reads = g_array_new(FALSE, FALSE, sizeof(ReadaheadRead));
        sim.extents = g_array_new(FALSE, FALSE, sizeof(Extent));
        sim.segments = g_array_new(FALSE, FALSE, sizeof(Segment));
        sim.tags = g_array_new(FALSE, FALSE, sizeof(TagPlaces));
        sim.meta = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
        if (plan->program)
                program_init(&program, plan);
        if (plan->whole_files)
                reader_init(&reader, plan);
        if (plan->prefetch != NULL) {
                prefetcher.waits = g_array_new(FALSE, FALSE, sizeof(Wait));
                prefetcher.metadata = TRUE;
                program.ready_ms = INFINITY;
                prefetch_metadata(&sim, &prefetcher);
        }
        run(&sim, &program, &reader, &prefetcher);
        ret->total_ms = plan->program ? program.done_ms : prefetcher.done_ms;
        ret->metadata_ms = prefetcher.metadata_ms;
        ret->metadata_blocks = sim.metadata_blocks;
        sum_costs(&sim, ret, ret_files);
        walker_clear(&program);
        walker_clear(&reader);
        g_clear_pointer(&prefetcher.waits, g_array_unref);
        g_ptr_array_unref(sim.drives);
        readahead_sim_free(sim.cache);
        g_array_unref(sim.reads);
        g_array_unref(sim.extents);
        g_array_unref(sim.segments);
        g_array_unref(sim.tags);
        g_hash_table_unref(sim.meta);
}
