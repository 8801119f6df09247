// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads whose contents nobody wants, many at a time: io_uring through raw system calls; a pool of
 * threads where the kernel or a sandbox refuses it; one read after the other last.
 *
 * Why buffered io_uring reads: one submission is one plug of the block layer, so that neighbouring
 * pieces of different files become one request under every scheduler (separate readahead(2) calls
 * are separate plugs), and a read loads all it was asked for, while readahead(2) and fadvise(2)
 * stop at max(io_pages, ra_pages). All reads share one buffer: what they write over each other is
 * not used.
 */
#include "readahead/engine-internal.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Of an older <linux/io_uring.h> than the kernel we run on. */
#ifndef IORING_SETUP_SINGLE_ISSUER
#define IORING_SETUP_SINGLE_ISSUER (1U << 12)
#endif
#ifndef IORING_SETUP_DEFER_TASKRUN
#define IORING_SETUP_DEFER_TASKRUN (1U << 13)
#endif

enum method { METHOD_URING, METHOD_THREADS, METHOD_SEQUENTIAL };

struct read_request {
        uint64_t offset;
        int fd;
        uint32_t length, tag;
};

struct io {
        enum method method;
        void *scratch;
        /* io_uring */
        int ring_fd;
        void *ring;
        size_t ring_bytes, sqes_bytes;
        struct io_uring_sqe *sqes;
        unsigned int *sq_tail, *sq_mask, *cq_head, *cq_tail, *cq_mask;
        struct io_uring_cqe *cqes;
        unsigned int tail;      /* ours; what lies between *sq_tail and this is queued */
        unsigned int submitted; /* consumed by the kernel, not reaped */
        int broken;             /* errno of a submission that cannot succeed */
        /* threads, sequential */
        struct pool *pool;
        struct read_request queue[IO_DEPTH];
        unsigned int queue_head, queue_tail; /* free running */
};

static int
uring_enter(const struct io *io, unsigned int submit, unsigned int wait, unsigned int timeout_ms)
{
        struct __kernel_timespec timeout = {
                .tv_sec = timeout_ms / 1000,
                .tv_nsec = (long long)(timeout_ms % 1000) * 1000000,
        };
        struct io_uring_getevents_arg arg = {.ts = (uintptr_t)&timeout};
        long r;

        if (wait == 0)
                r = syscall(SYS_io_uring_enter, io->ring_fd, submit, 0, 0U, NULL, (size_t)0);
        else
                r = syscall(SYS_io_uring_enter, io->ring_fd, submit, wait,
                            IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &arg, sizeof arg);
        return r < 0 ? -errno : (int)r;
}

static bool
uring_open(struct io *io)
{
        struct io_uring_params params = {
                /* completions are worked off when we wait, not by interrupting the application */
                .flags = IORING_SETUP_CLAMP | IORING_SETUP_SINGLE_ISSUER |
                         IORING_SETUP_DEFER_TASKRUN,
        };
        const unsigned int needed =
                IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG;
        unsigned int *sq_array;
        char *ring;

        io->ring_fd = (int)syscall(SYS_io_uring_setup, IO_DEPTH, &params);
        if (io->ring_fd < 0 && errno == EINVAL) {
                memset(&params, 0, sizeof params);
                io->ring_fd = (int)syscall(SYS_io_uring_setup, IO_DEPTH, &params);
        }
        if (io->ring_fd < 0)
                return false;
        io->ring_bytes = params.sq_off.array + params.sq_entries * sizeof(unsigned int);
        if (params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe) > io->ring_bytes)
                io->ring_bytes =
                        params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
        io->sqes_bytes = params.sq_entries * sizeof(struct io_uring_sqe);
        io->ring = MAP_FAILED;
        io->sqes = MAP_FAILED;
        if ((params.features & needed) == needed && params.sq_entries >= IO_DEPTH) {
                io->ring = mmap(NULL, io->ring_bytes, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_POPULATE, io->ring_fd, IORING_OFF_SQ_RING);
                io->sqes = mmap(NULL, io->sqes_bytes, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_POPULATE, io->ring_fd, IORING_OFF_SQES);
        }
        if (io->ring == MAP_FAILED || io->sqes == MAP_FAILED) {
                if (io->ring != MAP_FAILED)
                        munmap(io->ring, io->ring_bytes);
                if (io->sqes != MAP_FAILED)
                        munmap(io->sqes, io->sqes_bytes);
                close(io->ring_fd);
                return false;
        }
        ring = io->ring;
        io->sq_tail = (unsigned int *)(void *)(ring + params.sq_off.tail);
        io->sq_mask = (unsigned int *)(void *)(ring + params.sq_off.ring_mask);
        io->cq_head = (unsigned int *)(void *)(ring + params.cq_off.head);
        io->cq_tail = (unsigned int *)(void *)(ring + params.cq_off.tail);
        io->cq_mask = (unsigned int *)(void *)(ring + params.cq_off.ring_mask);
        io->cqes = (struct io_uring_cqe *)(void *)(ring + params.cq_off.cqes);
        sq_array = (unsigned int *)(void *)(ring + params.sq_off.array);
        for (unsigned int i = 0; i < params.sq_entries; i++)
                sq_array[i] = i;
        io->tail = *io->sq_tail;
        return true;
}

struct io *
io_new(bool no_uring, bool no_threads)
{
        struct io *io = calloc(1, sizeof *io);

        if (!io)
                return NULL;
        io->scratch = mmap(NULL, PACK_RANGE_MAX, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (io->scratch == MAP_FAILED) {
                free(io);
                return NULL;
        }
        io->method = METHOD_URING;
        if (no_uring || !uring_open(io)) {
                io->method = METHOD_THREADS;
                io->pool = no_threads ? NULL : pool_new(io->scratch);
                if (!io->pool)
                        io->method = METHOD_SEQUENTIAL;
        }
        return io;
}

void
io_free(struct io *io)
{
        if (!io)
                return;
        if (io->method == METHOD_URING) {
                munmap(io->ring, io->ring_bytes);
                munmap(io->sqes, io->sqes_bytes);
                close(io->ring_fd);
        }
        if (io->pool)
                pool_free(io->pool);
        munmap(io->scratch, PACK_RANGE_MAX);
        free(io);
}

const char *
io_method(const struct io *io)
{
        static const char *const names[] = {
                [METHOD_URING] = "io_uring",
                [METHOD_THREADS] = "threads",
                [METHOD_SEQUENTIAL] = "sequential",
        };

        return names[io->method];
}

void
io_queue(struct io *io, int fd, uint64_t offset, uint32_t length, uint32_t tag)
{
        if (io->method == METHOD_URING) {
                struct io_uring_sqe *sqe = &io->sqes[io->tail++ & *io->sq_mask];

                memset(sqe, 0, sizeof *sqe);
                sqe->opcode = IORING_OP_READ;
                sqe->fd = fd;
                sqe->off = offset;
                sqe->addr = (uintptr_t)io->scratch;
                sqe->len = length;
                sqe->user_data = tag;
        } else {
                io->queue[io->queue_tail++ % IO_DEPTH] = (struct read_request){
                        .fd = fd, .offset = offset, .length = length, .tag = tag};
        }
}

/* Submits all that is queued and waits for a completion when `timeout_ms` is not 0. */
static void
uring_submit(struct io *io, unsigned int timeout_ms)
{
        unsigned int queued = io->tail - *io->sq_tail;

        /* The tail is published whole and the loop left only when the kernel has consumed all of
         * it, or what it has not was taken back. */
        while (queued > 0 && !io->broken) {
                int r;

                __atomic_store_n(io->sq_tail, io->tail, __ATOMIC_RELEASE);
                r = uring_enter(io, queued, 0, 0);
                if (r > 0) {
                        io->submitted += (unsigned int)r;
                        queued -= (unsigned int)r;
                } else if (r == -EINTR) {
                        continue;
                } else if ((r == -EAGAIN || r == -EBUSY || r == 0) && io->submitted > 0) {
                        uring_enter(io, 0, 1, 100);
                } else if (r == -EAGAIN || r == -EBUSY || r == -ENOMEM || r == 0) {
                        poll(NULL, 0, 1);
                } else {
                        io->broken = -r;
                        /* take the entries back: io_reap() hands them out as failed */
                        __atomic_store_n(io->sq_tail, io->tail - queued, __ATOMIC_RELEASE);
                }
        }
        if (timeout_ms > 0 && io->submitted > 0)
                uring_enter(io, 0, 1, timeout_ms);
}

void
io_submit(struct io *io)
{
        if (io->method == METHOD_URING) {
                uring_submit(io, 0);
        } else if (io->method == METHOD_THREADS) {
                while (io->queue_head != io->queue_tail) {
                        const struct read_request *r = &io->queue[io->queue_head++ % IO_DEPTH];

                        pool_submit(io->pool, r->fd, r->offset, r->length, r->tag);
                }
        }
}

static bool
uring_take(struct io *io, struct io_done *ret)
{
        unsigned int head = *io->cq_head;
        const struct io_uring_cqe *cqe;

        if (head == __atomic_load_n(io->cq_tail, __ATOMIC_ACQUIRE)) {
                if (!io->broken || io->tail == *io->sq_tail)
                        return false;
                /* what could not be submitted */
                ret->tag = (uint32_t)io->sqes[--io->tail & *io->sq_mask].user_data;
                ret->result = -io->broken;
                return true;
        }
        cqe = &io->cqes[head & *io->cq_mask];
        ret->tag = (uint32_t)cqe->user_data;
        ret->result = cqe->res;
        __atomic_store_n(io->cq_head, head + 1, __ATOMIC_RELEASE);
        io->submitted--;
        return true;
}

bool
io_reap(struct io *io, unsigned int timeout_ms, struct io_done *ret)
{
        const struct read_request *r;
        ssize_t got;

        switch (io->method) {
        case METHOD_URING:
                if (uring_take(io, ret))
                        return true;
                uring_submit(io, timeout_ms);
                return uring_take(io, ret);
        case METHOD_THREADS: io_submit(io); return pool_reap(io->pool, timeout_ms, ret);
        case METHOD_SEQUENTIAL: break;
        }
        if (io->queue_head == io->queue_tail)
                return false;
        r = &io->queue[io->queue_head++ % IO_DEPTH];
        got = pread(r->fd, io->scratch, r->length, (off_t)r->offset);
        ret->tag = r->tag;
        ret->result = got < 0 ? -errno : (int32_t)got;
        return true;
}
