// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the files of the engine (and the compiler, which must find the same files) share: reads in
 * batches, the mounts of a pack's file systems, opening a file that must be the one recorded.
 * libc and raw system calls only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "readahead/pack.h"

/* ---- engine-io.c, engine-threads.c: reads whose contents nobody wants ---- */

#define IO_BATCH 64  /* one submission: the block layer merges across the files in it */
#define IO_DEPTH 128 /* at most this many reads are queued or in flight */

struct io;

struct io_done {
        uint32_t tag;
        int32_t result; /* bytes read, 0 at the end of the file, or a negative errno */
};

/* NULL when there is no memory. */
struct io *io_new(bool no_uring, bool no_threads);
void io_free(struct io *io); /* only with nothing outstanding */
const char *io_method(const struct io *io);

/* Queues a read of at most PACK_RANGE_MAX bytes; at most IO_DEPTH may be outstanding. */
void io_queue(struct io *io, int fd, uint64_t offset, uint32_t length, uint32_t tag);
/* Hands everything queued to the kernel, in one call. */
void io_submit(struct io *io);
/* Takes one completed read. Submits what is queued and waits for at most `timeout_ms` when there is
 * none yet (0 = does not wait). FALSE: none, the time is over or a signal came. */
bool io_reap(struct io *io, unsigned int timeout_ms, struct io_done *ret);

/* The pool of threads below io_new(), see engine-threads.c. */
struct pool;
struct pool *pool_new(void *scratch);
void pool_free(struct pool *pool);
void pool_submit(struct pool *pool, int fd, uint64_t offset, uint32_t length, uint32_t tag);
bool pool_reap(struct pool *pool, unsigned int timeout_ms, struct io_done *ret);

/* ---- engine-places.c: where a pack's file systems are mounted ---- */

struct place {
        uint32_t fs;        /* index into the pack's file systems */
        int root_fd;        /* O_PATH */
        const char *prefix; /* which folder of the file system root_fd is; "" = all of it */
        size_t prefix_length;
        const char *source;        /* as in mountinfo */
        unsigned int major, minor; /* of the file system's device */
        bool verified;             /* its UUID is the pack's: its device may be read */
};

struct places {
        struct place *items;
        size_t count, room;
        char *text; /* what the strings point into */
};

/* Finds the file systems among the mounts, or below `root`. Never triggers an automount. Returns 0
 * also when none was found, or -ENOMEM. */
int places_find(const struct pack_fs *fs, size_t n_fs, const char *strings, const char *root,
                struct places *ret);
void places_free(struct places *places);

/* The place whose prefix of `path` is the longest (of these the last mounted); NULL when there is
 * none. *ret_path is the path below it, without a slash in front. */
const struct place *places_for_path(const struct places *places, uint32_t fs, const char *path,
                                    const char **ret_path);
/* The place through which the device of this file system may be read; NULL when there is none. */
const struct place *places_for_device(const struct places *places, uint32_t fs);

/* Opens the block device of the place read-only; a negative errno (-EACCES: no privilege). */
int place_open_device(const struct place *place);

/* ---- engine-open.c ---- */

enum open_outcome {
        OPEN_SAME,    /* open, and the file recorded */
        OPEN_TOUCHED, /* open; only its mtime is another one */
        OPEN_STALE,   /* another inode, generation or size */
        OPEN_MISSING, /* not there, behind a symbolic link or a mount, or not a regular file */
        OPEN_REFUSED, /* no permission, I/O error */
        OPEN_NO_FD,   /* too many open files: close some and try again */
};

/* Opens a file of the pack below its place, checks that it is the one recorded. *ret_fd is set with
 * OPEN_SAME and OPEN_TOUCHED only. Does not block on FIFOs, does not follow any link, does not
 * leave the mount, does not change the access time where it may choose. */
enum open_outcome place_open_file(const struct place *place, const char *path,
                                  const struct pack_file *expect, int *ret_fd);

/* TRUE when openat2(2) is missing and paths are walked part by part. */
bool open_walks(void);

/* ---- engine-verify.c ---- */

/* Bytes of [offset, offset + length) in the page cache; FALSE when the kernel does not tell. */
bool resident_bytes(int fd, uint64_t offset, uint64_t length, uint64_t *ret_bytes);
