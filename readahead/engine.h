// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The replay engine, used by `prefetch`, `run`, the watcher and headstart-replay alike. libc and
 * raw system calls only. It never fails the caller: what cannot be done is counted.
 *
 * Order of work: (1) all metadata blocks of the pack, by one sorted batch of reads of the block
 * device (per file system, only when mounted); (2) opens; (3) the ranges in the pack's order in
 * batches that the block layer can merge across files. io_uring; threads where that is not allowed;
 * one thread last.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "readahead/pack.h"

struct replay_options {
        const char *root;      /* NULL = find each file system by UUID among the mounts; else paths
                                  are taken below this directory: the file systems mounted there,
                                  for the others the directory itself (a copy of the tree) */
        uint64_t budget_bytes; /* 0 = no limit; metadata and ranges together. A range that does not
                                  fit is left out, and all that come after it */
        double deadline_s;     /* 0 = none; counted from the call */
        bool no_uring, no_threads; /* for tests and for kernels that refuse */
        bool verify;               /* count resident_bytes at the end */
        void (*metadata_done)(
                void *data); /* called once after step (1) was completed; may be NULL */
        void *metadata_done_data;
        const volatile int *stop; /* set to non-zero (from a signal handler) to stop early */
};

struct replay_result {
        uint64_t files, ranges, bytes,
                metadata_blocks; /* done; bytes: of ranges, not of metadata */
        /* other size, mtime, inode or generation; when only the mtime is another one the file's
         * ranges were read all the same, and it counts in `files` too */
        uint64_t stale;
        uint64_t missing;        /* not there, or not a regular file */
        uint64_t skipped;        /* ranges left out: budget, deadline or stop */
        uint64_t failed;         /* files that could not be opened, reads that ended in an error */
        uint64_t resident_bytes; /* of the ranges asked, when verify */
        double elapsed_ms;
        double metadata_ms;        /* until step (1) was done */
        const char *method;        /* "io_uring", "threads", "sequential" */
        uint64_t unverified_bytes; /* of the ranges asked: the kernel does not tell us */
        uint64_t unmounted; /* file systems of the pack that are mounted nowhere; their files are
                               counted as missing */
        int metadata_error; /* 0, or the errno that kept us from reading some metadata (EACCES: no
                               privilege for the block device) */
        bool walked;        /* no openat2(2): paths were walked part by part */
};

/* Proves the rest of the pack when that was not done yet. Returns 0, or a negative errno when
 * nothing could be started at all (-EBADMSG: damaged, -ENOMEM). Reads that are in flight when the
 * deadline comes are waited for: 16 MiB at most. The whole call must be made by one thread. */
int replay_run(const struct pack *pack, size_t pack_bytes, const struct replay_options *options,
               struct replay_result *ret);
