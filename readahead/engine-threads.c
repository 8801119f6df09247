// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The fallback for kernels and sandboxes without io_uring: eight threads that read what is queued,
 * in its order. Eight keep a disk's elevator and a flash device busy; the threads use no other part
 * of the engine's state.
 */
#include "readahead/engine-internal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define POOL_THREADS 8

struct work {
        uint64_t offset;
        int fd;
        uint32_t length, tag;
};

struct pool {
        pthread_mutex_t lock;
        pthread_cond_t work_added, done_added;
        void *scratch;
        bool quit;
        unsigned int n_threads;
        pthread_t threads[POOL_THREADS];
        /* both rings hold at most IO_DEPTH entries, free running indices */
        struct work work[IO_DEPTH];
        struct io_done done[IO_DEPTH];
        unsigned int work_head, work_tail, done_head, done_tail;
};

static void *
pool_thread(void *data)
{
        struct pool *pool = data;

        pthread_mutex_lock(&pool->lock);
        for (;;) {
                struct work work;
                ssize_t got;

                while (pool->work_head == pool->work_tail && !pool->quit)
                        pthread_cond_wait(&pool->work_added, &pool->lock);
                if (pool->work_head == pool->work_tail)
                        break;
                work = pool->work[pool->work_head++ % IO_DEPTH];
                pthread_mutex_unlock(&pool->lock);
                do
                        got = pread(work.fd, pool->scratch, work.length, (off_t)work.offset);
                while (got < 0 && errno == EINTR);
                pthread_mutex_lock(&pool->lock);
                pool->done[pool->done_tail++ % IO_DEPTH] = (struct io_done){
                        .tag = work.tag, .result = got < 0 ? -errno : (int32_t)got};
                pthread_cond_signal(&pool->done_added);
        }
        pthread_mutex_unlock(&pool->lock);
        return NULL;
}

struct pool *
pool_new(void *scratch)
{
        struct pool *pool = calloc(1, sizeof *pool);
        pthread_condattr_t monotonic;
        pthread_attr_t attributes;
        sigset_t all, old;

        if (!pool)
                return NULL;
        pool->scratch = scratch;
        pthread_mutex_init(&pool->lock, NULL);
        pthread_cond_init(&pool->work_added, NULL);
        pthread_condattr_init(&monotonic);
        pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        pthread_cond_init(&pool->done_added, &monotonic);
        pthread_condattr_destroy(&monotonic);
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, 64 * 1024);
        /* the caller's signals are the caller's */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        while (pool->n_threads < POOL_THREADS &&
               pthread_create(&pool->threads[pool->n_threads], &attributes, pool_thread, pool) == 0)
                pool->n_threads++;
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        pthread_attr_destroy(&attributes);
        if (pool->n_threads == 0) {
                pool_free(pool);
                return NULL;
        }
        return pool;
}

void
pool_free(struct pool *pool)
{
        pthread_mutex_lock(&pool->lock);
        pool->quit = true;
        pthread_cond_broadcast(&pool->work_added);
        pthread_mutex_unlock(&pool->lock);
        for (unsigned int i = 0; i < pool->n_threads; i++)
                pthread_join(pool->threads[i], NULL);
        pthread_cond_destroy(&pool->work_added);
        pthread_cond_destroy(&pool->done_added);
        pthread_mutex_destroy(&pool->lock);
        free(pool);
}

void
pool_submit(struct pool *pool, int fd, uint64_t offset, uint32_t length, uint32_t tag)
{
        pthread_mutex_lock(&pool->lock);
        pool->work[pool->work_tail++ % IO_DEPTH] =
                (struct work){.fd = fd, .offset = offset, .length = length, .tag = tag};
        pthread_cond_signal(&pool->work_added);
        pthread_mutex_unlock(&pool->lock);
}

bool
pool_reap(struct pool *pool, unsigned int timeout_ms, struct io_done *ret)
{
        struct timespec until;
        bool have;

        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += timeout_ms / 1000;
        until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
        if (until.tv_nsec >= 1000000000) {
                until.tv_nsec -= 1000000000;
                until.tv_sec++;
        }
        pthread_mutex_lock(&pool->lock);
        while (timeout_ms > 0 && pool->done_head == pool->done_tail &&
               pthread_cond_timedwait(&pool->done_added, &pool->lock, &until) == 0)
                ;
        have = pool->done_head != pool->done_tail;
        if (have)
                *ret = pool->done[pool->done_head++ % IO_DEPTH];
        pthread_mutex_unlock(&pool->lock);
        return have;
}
