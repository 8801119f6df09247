// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The replay engine, used by `prefetch`, `run`, the watcher and headstart-replay alike. libc and raw
 * system calls only. It never fails the caller: what cannot be done is counted.
 *
 * Order of work: (1) all metadata blocks of the pack, by one sorted batch of reads of the block device
 * (per file system, only when mounted); (2) opens; (3) the ranges in the pack's order in batches that
 * the block layer can merge across files. io_uring; threads where that is not allowed; one thread last.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "readahead/pack.h"

struct replay_options {
        const char *root;        /* NULL = find each file system by UUID among the mounts; else paths
                                    are taken below this directory */
        uint64_t budget_bytes;   /* 0 = no limit */
        double deadline_s;       /* 0 = none; counted from the call */
        bool no_uring, no_threads; /* for tests and for kernels that refuse */
        bool verify;             /* count resident_bytes at the end */
        void (*metadata_done)(void *data); /* called once after step (1) was completed; may be NULL */
        void *metadata_done_data;
        const volatile int *stop; /* set to non-zero (from a signal handler) to stop early */
};

struct replay_result {
        uint64_t files, ranges, bytes, metadata_blocks;   /* done */
        uint64_t stale;          /* other size, mtime, inode or generation: their metadata was read,
                                    their ranges too as far as the file still has them when only the mtime differs */
        uint64_t missing;        /* not there, or not a regular file */
        uint64_t skipped;        /* budget or deadline */
        uint64_t failed;         /* I/O errors */
        uint64_t resident_bytes; /* of the ranges asked, when verify */
        double elapsed_ms;
        double metadata_ms;      /* until step (1) was done */
        const char *method;      /* "io_uring", "threads", "sequential" */
};

/* Returns 0, or a negative errno when nothing could be started at all. */
int replay_run(const struct pack *pack, size_t pack_bytes, const struct replay_options *options,
               struct replay_result *ret);
