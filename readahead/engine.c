// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The replay engine: see engine.h.
 *
 * One thread decides, in the pack's order: it fills a batch (opening the files it needs), submits
 * it in one call, and fills the next one while at most two batches are in flight, so that the disk
 * is never idle and the elevator never sees far more than is wanted next.
 *
 * Invariants: a window slot with reads in flight is not closed; at most IO_DEPTH reads are
 * outstanding; whatever happens, everything in flight is reaped before a descriptor or the buffer
 * goes.
 */
#include "readahead/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "readahead/engine-internal.h"

#define WINDOW_MAX 256 /* files open at a time, when the limit allows */
#define BATCH_BYTES (8U << 20)
#define BATCH_BYTES_HURRY (1U << 20) /* when the deadline is less than HURRY_MS away */
#define HURRY_MS 500.0
#define RETRIES 3 /* of a read that says EAGAIN, before it is made to wait */

#define NO_SLOT 0xffffU
#define TAG_METADATA 0xffffffffU

enum file_state {
        FILE_UNKNOWN = 0,
        FILE_GOOD,     /* opened at least once */
        FILE_UNUSABLE, /* missing, stale or refused: counted, its ranges are passed over */
};

struct file {
        uint32_t ranges_left;
        uint16_t slot;
        uint8_t state;
};

struct slot {
        int fd; /* -1 = free */
        uint32_t file;
        uint32_t in_flight;
        uint64_t last_use;
};

/* A read in flight; the tag of an io_done is its index. */
struct transfer {
        uint64_t offset;
        uint32_t left;
        uint32_t total;
        uint32_t slot; /* TAG_METADATA: of a device */
        int fd;
        uint8_t retries;
};

struct replay {
        const struct pack *pack;
        const struct replay_options *options;
        struct replay_result *result;
        struct places places;
        struct io *io;
        struct file *files;
        struct slot window[WINDOW_MAX];
        unsigned int n_open, max_open;
        uint64_t clock; /* counts uses, for LRU */
        struct transfer transfers[IO_DEPTH];
        uint32_t free_transfers[IO_DEPTH];
        unsigned int n_free;
        uint64_t in_flight_bytes, spent_bytes;
        double start_ms;
        bool over; /* stopped, deadline or budget */
};

static double
now_ms(void)
{
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static bool
is_over(struct replay *r)
{
        const struct replay_options *o = r->options;

        if ((o->stop && *o->stop) ||
            (o->deadline_s > 0 && now_ms() - r->start_ms >= o->deadline_s * 1e3))
                r->over = true;
        return r->over;
}

/* ---- transfers ---- */

static void
queue_part(struct replay *r, uint32_t tag)
{
        const struct transfer *t = &r->transfers[tag];

        io_queue(r->io, t->fd, t->offset, t->left, tag);
}

static void
start_transfer(struct replay *r, int fd, uint64_t offset, uint32_t length, uint32_t slot)
{
        uint32_t tag = r->free_transfers[--r->n_free];

        r->transfers[tag] = (struct transfer){
                .offset = offset, .left = length, .total = length, .slot = slot, .fd = fd};
        r->in_flight_bytes += length;
        r->spent_bytes += length;
        if (slot != TAG_METADATA)
                r->window[slot].in_flight++;
        queue_part(r, tag);
}

/* What io_uring would not do at once, three times over. */
static int32_t
read_waiting(const struct transfer *t)
{
        static char sink[65536];
        uint32_t done = 0;

        while (done < t->left) {
                size_t want = t->left - done < sizeof sink ? t->left - done : sizeof sink;
                ssize_t got = pread(t->fd, sink, want, (off_t)(t->offset + done));

                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0)
                        return done > 0 ? (int32_t)done : -errno;
                if (got == 0)
                        break;
                done += (uint32_t)got;
        }
        return (int32_t)done;
}

static void close_slot(struct replay *r, unsigned int slot);

static void
finish_transfer(struct replay *r, uint32_t tag, bool failed)
{
        struct transfer *t = &r->transfers[tag];
        uint64_t done = t->total - t->left;

        r->in_flight_bytes -= t->total;
        r->free_transfers[r->n_free++] = tag;
        if (failed)
                r->result->failed++;
        if (t->slot == TAG_METADATA) {
                /* turned into blocks when all is done */
                r->result->metadata_blocks += done;
                return;
        }
        r->result->bytes += done;
        r->window[t->slot].in_flight--;
        if (!failed)
                r->result->ranges++;
        if (r->files[r->window[t->slot].file].ranges_left == 0 && r->window[t->slot].in_flight == 0)
                close_slot(r, t->slot);
}

static void
on_done(struct replay *r, const struct io_done *done)
{
        struct transfer *t = &r->transfers[done->tag];
        int32_t result = done->result;

        if (result == -EAGAIN || result == -EINTR) {
                if (t->retries++ < RETRIES) {
                        queue_part(r, done->tag);
                        return;
                }
                result = read_waiting(t);
        }
        if (result < 0) {
                finish_transfer(r, done->tag, true);
                return;
        }
        t->offset += (uint32_t)result;
        t->left -= (uint32_t)result < t->left ? (uint32_t)result : t->left;
        /* 0: the end of the file or device came earlier than expected */
        if (result == 0 || t->left == 0) {
                finish_transfer(r, done->tag, false);
        } else {
                t->retries = 0;
                queue_part(r, done->tag);
        }
}

/* Submits what is queued and waits until at most so much is outstanding. */
static void
wait_until(struct replay *r, unsigned int max_reads, uint64_t max_bytes)
{
        struct io_done done;

        io_submit(r->io);
        while (IO_DEPTH - r->n_free > max_reads || r->in_flight_bytes > max_bytes) {
                if (io_reap(r->io, 100, &done))
                        on_done(r, &done);
                else
                        is_over(r);
        }
}

static void
drain(struct replay *r)
{
        wait_until(r, 0, 0);
}

/* ---- the window of open files ---- */

static void
close_slot(struct replay *r, unsigned int slot)
{
        struct slot *s = &r->window[slot];

        close(s->fd);
        s->fd = -1;
        r->files[s->file].slot = NO_SLOT;
        r->n_open--;
}

/* Closes the file that was not used for longest; waits for one when all have reads in flight. FALSE
 * when none is open. */
static bool
close_one(struct replay *r)
{
        for (;;) {
                unsigned int oldest = NO_SLOT;
                struct io_done done;

                if (r->n_open == 0)
                        return false;
                for (unsigned int i = 0; i < WINDOW_MAX; i++)
                        if (r->window[i].fd >= 0 && r->window[i].in_flight == 0 &&
                            (oldest == NO_SLOT ||
                             r->window[i].last_use < r->window[oldest].last_use))
                                oldest = i;
                if (oldest != NO_SLOT) {
                        close_slot(r, oldest);
                        return true;
                }
                io_submit(r->io);
                if (io_reap(r->io, 100, &done))
                        on_done(r, &done);
        }
}

static void
count_outcome(struct replay *r, struct file *file, enum open_outcome outcome)
{
        if (file->state != FILE_UNKNOWN)
                return;
        file->state = outcome == OPEN_SAME || outcome == OPEN_TOUCHED ? FILE_GOOD : FILE_UNUSABLE;
        switch (outcome) {
        case OPEN_SAME: r->result->files++; break;
        case OPEN_TOUCHED:
                r->result->files++;
                r->result->stale++;
                break;
        case OPEN_STALE: r->result->stale++; break;
        case OPEN_MISSING: r->result->missing++; break;
        case OPEN_REFUSED:
        case OPEN_NO_FD: r->result->failed++; break;
        }
}

/* Opens the file wherever it is mounted. *ret_fd is set when the outcome is SAME or TOUCHED. */
static enum open_outcome
open_file(struct replay *r, uint32_t index, int *ret_fd)
{
        const struct pack_file *expect = &r->pack->files[index];
        const struct place *place;
        enum open_outcome outcome;
        const char *path;

        place = places_for_path(&r->places, expect->fs, r->pack->strings + expect->path, &path);
        if (!place)
                return OPEN_MISSING;
        if (r->n_open >= r->max_open)
                close_one(r);
        for (;;) {
                outcome = place_open_file(place, path, expect, ret_fd);
                if (outcome != OPEN_NO_FD || !close_one(r))
                        return outcome;
                /* others share the limit: ask for less from now on */
                r->max_open = r->n_open + 1;
        }
}

/* The window's slot of a file, opened when it is not; NO_SLOT when its ranges are to be passed
 * over. */
static unsigned int
slot_of_file(struct replay *r, uint32_t index)
{
        struct file *file = &r->files[index];
        enum open_outcome outcome;
        unsigned int slot = 0;
        int fd;

        if (file->state == FILE_UNUSABLE)
                return NO_SLOT;
        if (file->slot == NO_SLOT) {
                outcome = open_file(r, index, &fd);
                count_outcome(r, file, outcome);
                if (outcome != OPEN_SAME && outcome != OPEN_TOUCHED) {
                        file->state = FILE_UNUSABLE;
                        return NO_SLOT;
                }
                while (r->window[slot].fd >= 0)
                        slot++;
                r->window[slot] = (struct slot){.fd = fd, .file = index};
                file->slot = (uint16_t)slot;
                r->n_open++;
        }
        r->window[file->slot].last_use = ++r->clock;
        return file->slot;
}

/* ---- the steps ---- */

static void
read_metadata(struct replay *r)
{
        const struct pack *pack = r->pack;
        uint64_t page = pack->header->page_bytes, blocks = 0, i = 0;

        while (i < pack->n_meta) {
                uint32_t fs = pack->meta[i].fs, block = pack->fs[fs].block_bytes;
                const struct place *place = places_for_device(&r->places, fs);
                int fd = place ? place_open_device(place) : -ENODEV;

                if (fd < 0) {
                        if (place)
                                r->result->metadata_error = -fd;
                        while (i < pack->n_meta && pack->meta[i].fs == fs)
                                i++;
                        continue;
                }
                posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
                for (; i < pack->n_meta && pack->meta[i].fs == fs; i++) {
                        uint64_t start = pack->meta[i].offset / page * page;
                        uint64_t end = pack->meta[i].offset + pack->meta[i].length;

                        if (is_over(r))
                                continue;
                        if (r->options->budget_bytes > 0 &&
                            r->spent_bytes + (end - start) > r->options->budget_bytes) {
                                r->over = true;
                                continue;
                        }
                        /* a record that is not aligned may be longer than a read by one page */
                        while (start < end) {
                                uint32_t length = end - start < PACK_RANGE_MAX
                                                          ? (uint32_t)(end - start)
                                                          : PACK_RANGE_MAX;

                                start_transfer(r, fd, start, length, TAG_METADATA);
                                start += length;
                                if (IO_DEPTH - r->n_free >= IO_DEPTH)
                                        wait_until(r, IO_DEPTH - IO_BATCH, UINT64_MAX);
                        }
                }
                drain(r);
                close(fd);
                blocks += r->result->metadata_blocks / (block ? block : page);
                r->result->metadata_blocks = 0;
        }
        r->result->metadata_blocks = blocks;
}

/* Fills one batch from range *next on. */
static void
queue_batch(struct replay *r, uint64_t *next)
{
        const struct pack *pack = r->pack;
        const struct replay_options *o = r->options;
        uint64_t limit = BATCH_BYTES, bytes = 0;
        unsigned int reads = 0;

        if (o->deadline_s > 0 && r->start_ms + o->deadline_s * 1e3 - now_ms() < HURRY_MS)
                limit = BATCH_BYTES_HURRY;
        while (*next < pack->n_ranges && reads < IO_BATCH && r->n_free > 0 && bytes < limit) {
                const struct pack_range *range = &pack->ranges[*next];
                const struct pack_file *file = &pack->files[range->file];
                uint64_t end = range->offset + range->length;
                unsigned int slot;

                /* opens can take long on a cold disk */
                if (is_over(r))
                        return;
                if (end > file->size)
                        end = file->size;
                if (o->budget_bytes > 0 && end > range->offset) {
                        uint64_t left = o->budget_bytes - r->spent_bytes;

                        /* the last one is read as far as the budget goes, in whole pages */
                        left -= left % pack->header->page_bytes;
                        if (left == 0) {
                                r->over = true;
                                return;
                        }
                        if (end - range->offset > left)
                                end = range->offset + left;
                }
                slot = slot_of_file(r, range->file);
                (*next)++;
                r->files[range->file].ranges_left--;
                if (slot == NO_SLOT || end <= range->offset)
                        continue;
                start_transfer(r, r->window[slot].fd, range->offset,
                               (uint32_t)(end - range->offset), slot);
                bytes += end - range->offset;
                reads++;
        }
}

static void
read_ranges(struct replay *r)
{
        uint64_t next = 0;

        while (next < r->pack->n_ranges && !is_over(r)) {
                queue_batch(r, &next);
                io_submit(r->io);
                /* the batch before this one has to be done, more or less: the elevator may finish
                 * them in another order */
                wait_until(r, IO_BATCH, BATCH_BYTES);
        }
        drain(r);
        r->result->skipped = r->pack->n_ranges - next;
}

/* Files that are only opened: their inode and name are what is wanted. */
static void
open_the_rest(struct replay *r)
{
        for (uint32_t i = 0; i < r->pack->n_files && !is_over(r); i++) {
                int fd = -1;
                enum open_outcome outcome;

                if (r->pack->files[i].ranges > 0)
                        continue;
                outcome = open_file(r, i, &fd);
                count_outcome(r, &r->files[i], outcome);
                if (fd >= 0)
                        close(fd);
        }
}

static void
verify(struct replay *r)
{
        const struct pack *pack = r->pack;

        for (uint64_t i = 0; i < pack->n_ranges; i++) {
                const struct pack_range *range = &pack->ranges[i];
                uint64_t size = pack->files[range->file].size, length = range->length, resident;
                unsigned int slot;

                if (range->offset >= size)
                        continue;
                if (length > size - range->offset)
                        length = size - range->offset;
                /* files that the budget or the deadline left out are not opened for this */
                if (r->files[range->file].state != FILE_GOOD)
                        continue;
                slot = slot_of_file(r, range->file);
                if (slot == NO_SLOT)
                        continue;
                if (resident_bytes(r->window[slot].fd, range->offset, length, &resident))
                        r->result->resident_bytes += resident;
                else
                        r->result->unverified_bytes += length;
        }
}

static void
limit_window(struct replay *r)
{
        struct rlimit limit;

        r->max_open = WINDOW_MAX;
        /* half of what the process may have: the rest is the caller's */
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 2 < WINDOW_MAX)
                r->max_open = limit.rlim_cur > 2 ? (unsigned int)(limit.rlim_cur / 2) : 1;
        for (unsigned int i = 0; i < WINDOW_MAX; i++)
                r->window[i].fd = -1;
}

static void
count_unmounted(struct replay *r)
{
        for (uint32_t fs = 0; fs < r->pack->n_fs; fs++) {
                bool found = false;

                for (size_t i = 0; i < r->places.count && !found; i++)
                        found = r->places.items[i].fs == fs;
                r->result->unmounted += !found;
        }
}

static int
replay_prepare(struct replay *r)
{
        int ret = places_find(r->pack->fs, r->pack->n_fs, r->pack->strings, r->options->root,
                              &r->places);

        if (ret < 0)
                return ret;
        count_unmounted(r);
        r->files = calloc(r->pack->n_files + 1, sizeof *r->files);
        r->io = io_new(r->options->no_uring, r->options->no_threads);
        if (!r->files || !r->io)
                return -ENOMEM;
        for (uint64_t i = 0; i < r->pack->n_files; i++) {
                r->files[i].ranges_left = r->pack->files[i].ranges;
                r->files[i].slot = NO_SLOT;
        }
        limit_window(r);
        while (r->n_free < IO_DEPTH) {
                r->free_transfers[r->n_free] = r->n_free;
                r->n_free++;
        }
        return 0;
}

int
replay_run(const struct pack *pack, size_t pack_bytes, const struct replay_options *options,
           struct replay_result *ret)
{
        static const struct replay_options defaults;
        struct replay_result result = {0};
        struct pack whole = *pack;
        struct replay *r;
        int error;

        if (!whole.files && (error = pack_prove_rest(&whole, pack_bytes, NULL)) < 0)
                return error;
        r = calloc(1, sizeof *r);
        if (!r)
                return -ENOMEM;
        r->pack = &whole;
        r->options = options ? options : &defaults;
        r->result = &result;
        r->start_ms = now_ms();
        error = replay_prepare(r);
        if (error == 0) {
                read_metadata(r);
                result.metadata_ms = now_ms() - r->start_ms;
                if (r->options->metadata_done)
                        r->options->metadata_done(r->options->metadata_done_data);
                read_ranges(r);
                open_the_rest(r);
                result.elapsed_ms = now_ms() - r->start_ms;
                if (r->options->verify)
                        verify(r);
                for (unsigned int i = 0; i < WINDOW_MAX; i++)
                        if (r->window[i].fd >= 0)
                                close_slot(r, i);
                result.method = io_method(r->io);
                result.walked = open_walks();
                *ret = result;
        }
        io_free(r->io);
        places_free(&r->places);
        free(r->files);
        free(r);
        return error;
}
