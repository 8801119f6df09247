// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Inside of the collector: collect.c takes events in, collect-settle.c hands pages out.
 *
 * Pages are kept in chunks of 16 (one fault-around window): an open hash from (file, chunk) to a
 * slab of chunks. A chunk holds the first-use time of each page and three sets: used, added, and
 * pending (in a mapped window, not known whether cached).
 */
#pragma once

#include "profiler/collect.h"

#define CHUNK_PAGES 16U
#define SLAB_CHUNKS 4096U
#define BIG_READ_PAGES 512U
#define NO_TIME G_MAXUINT32
#define CAUSE_BITS 3
#define CAUSE_MASK ((1U << CAUSE_BITS) - 1)
#define ORDER_MAX 31U

typedef struct {
        guint64 chunk; /* page / CHUNK_PAGES */
        guint32 file;
        guint32 next; /* of the same file, 0 = none (indexes are kept + 1) */
        guint16 used, added, pending;
        guint8 cause[CHUNK_PAGES]; /* ProfileCause; the order of the page's folio << CAUSE_BITS */
        guint32 first_us[CHUNK_PAGES];
} Chunk;

typedef struct {
        guint64 first, last;
        guint32 time_us;
        guint32 next; /* index + 1 of the next big read of the file */
} BigRead;

typedef struct {
        dev_t dev;
        guint64 inode;
        guint64 first_us;
        guint64 read_first, read_last; /* the widest read marked last: repeats are inside it */
        guint32 chunks;                /* index + 1 of the first chunk */
        guint32 big_reads;             /* index + 1 */
        gboolean settled;
} FileEntry;

struct Collector {
        CollectorOptions options;
        gboolean gate_open;
        gboolean saw_pages;
        guint64 last_new_us;

        GArray *files;       /* FileEntry */
        guint32 *file_slots; /* open hash: index + 1 */
        guint32 n_file_slots;

        GPtrArray *slabs; /* Chunk[SLAB_CHUNKS] */
        guint32 n_chunks;
        guint32 *chunk_slots; /* open hash: index + 1 */
        guint32 n_chunk_slots;
        guint32 last_chunk; /* cache: index + 1 */

        GArray *big_reads; /* BigRead */
        guint huge_order;  /* of a folio that one entry of the upper page table maps */

        GHashTable *block_devices; /* kernel device number -> BlockDevice */
        GHashTable *mounted;       /* dev_t set */
};

typedef struct {
        GArray *reads;     /* CollectedBlockRead */
        GHashTable *pages; /* seen */
} BlockDevice;

static inline void
collector_set_used(Chunk *chunk, guint bit, guint32 time_us, ProfileCause cause)
{
        chunk->used |= (guint16)(1U << bit);
        chunk->first_us[bit] = time_us;
        chunk->cause[bit] = (guint8)((chunk->cause[bit] & ~CAUSE_MASK) | cause);
}

static inline ProfileCause
collector_cause(const Chunk *chunk, guint bit)
{
        return (ProfileCause)(chunk->cause[bit] & CAUSE_MASK);
}

static inline FileEntry *
collector_file_at(const Collector *c, guint32 index)
{
        return &g_array_index(c->files, FileEntry, index);
}

static inline Chunk *
collector_chunk_at(const Collector *c, guint32 index)
{
        return &((Chunk *)g_ptr_array_index(c->slabs, index / SLAB_CHUNKS))[index % SLAB_CHUNKS];
}

Chunk *collector_find_chunk(Collector *c, guint32 file, guint64 number);
