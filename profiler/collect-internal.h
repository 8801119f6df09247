// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Inside of the collector: collect.c takes events in, collect-settle.c hands pages out.
 *
 * Pages are kept in chunks of 16 (one fault-around window): an open hash from (file, chunk) to a
 * slab of chunks. A chunk holds the first use of each page and four sets: used, added, missed (it
 * came in for its first use) and pending (in a mapped window, not known whether cached). A use is
 * kept once for all pages that one event made used: when, by whom, how long that thread waited.
 */
#pragma once

#include "profiler/collect.h"
#include "profiler/process.h"

#define CHUNK_PAGES 16U
#define SLAB_CHUNKS 4096U
#define BIG_READ_PAGES 512U
#define SLAB_USES 4096U
#define NO_TIME G_MAXUINT32
#define CAUSE_BITS 3
#define CAUSE_MASK ((1U << CAUSE_BITS) - 1)
#define ORDER_MAX 31U

typedef struct {
        guint64 chunk; /* page / CHUNK_PAGES */
        guint32 file;
        guint32 next; /* of the same file, 0 = none (indexes are kept + 1) */
        guint16 used, added, missed, pending;
        guint8 cause[CHUNK_PAGES]; /* ProfileCause; the order of the page's folio << CAUSE_BITS */
        guint32 use[CHUNK_PAGES];  /* number of the first use; valid for used and pending pages */
} Chunk;

typedef struct {
        guint32 time_us;
        guint32 process; /* number */
        guint32 stall_us;
} Use;

typedef struct {
        guint64 first, last;
        guint32 use;
        guint32 next; /* index + 1 of the next big read of the file */
} BigRead;

/* What a thread is in the middle of. Files are indexes + 1, 0 = nothing. */
typedef struct {
        guint32 ra_file, ra_us; /* the kernel began to read ahead for it */
        guint32 fault_file, fault_us, fault_use;
        guint32 map_file;      /* its last event was this window */
        guint32 open_use;      /* number of its last read or fault, which may still be going on */
        gboolean fault_missed; /* the page was not there or not ready */
        guint64 fault_page;
        guint64 map_first, map_last;
} ThreadState;

/* One access that made pages used, for the waits. */
typedef struct {
        guint32 thread;
        guint32 begin_us, end_us;
        guint32 file; /* index */
} ThreadAccess;

typedef struct {
        guint64 time_us;
        guint32 process;
        gchar *text;
} CollectedMark;

typedef struct {
        dev_t dev;
        guint64 inode;
        guint64 first_us, last_us;
        guint64 read_first, read_last; /* the widest read marked last: repeats are inside it */
        guint32 chunks;                /* index + 1 of the first chunk */
        guint32 big_reads;             /* index + 1 */
        gboolean settled;
} FileEntry;

struct Collector {
        CollectorOptions options;
        gboolean gate_open;
        gboolean saw_pages;
        gboolean saw_readahead; /* the kernel has events of readahead */
        guint64 last_new_us;

        GArray *files;       /* FileEntry */
        guint32 *file_slots; /* open hash: index + 1 */
        guint32 n_file_slots;

        GPtrArray *slabs; /* Chunk[SLAB_CHUNKS] */
        guint32 n_chunks;
        guint32 *chunk_slots; /* open hash: index + 1 */
        guint32 n_chunk_slots;
        guint32 last_chunk; /* cache: index + 1 */

        GPtrArray *use_slabs; /* Use[SLAB_USES] */
        guint32 n_uses;
        guint32 event_use; /* number of the use that the event at hand makes; 0 = not made yet */
        guint32 event_us, event_process;

        ProcessTable *processes;
        GArray *thread_states; /* ThreadState, by the thread's index */
        GArray *accesses;      /* ThreadAccess */
        guint32 *profile_file; /* index in the profile of each file, once known */
        GArray *marks;         /* CollectedMark */

        GArray *big_reads; /* BigRead */
        guint huge_order;  /* of a folio that one entry of the upper page table maps */

        GHashTable *block_devices; /* kernel device number -> BlockDevice */
        GHashTable *mounted;       /* dev_t set */
};

typedef struct {
        GArray *reads;     /* CollectedBlockRead */
        GHashTable *pages; /* seen */
} BlockDevice;

static inline Use *
collector_use(const Collector *c, guint32 number)
{
        return &((Use *)g_ptr_array_index(c->use_slabs,
                                          (number - 1) / SLAB_USES))[(number - 1) % SLAB_USES];
}

/* What came in before its first use came in for it. */
static inline void
collector_set_used(Chunk *chunk, guint bit, guint32 use, ProfileCause cause)
{
        chunk->used |= (guint16)(1U << bit);
        chunk->missed |= chunk->added & (guint16)(1U << bit);
        chunk->use[bit] = use;
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

/* Threads: collect-task.c. */
void collector_add_task(Collector *collector, const AccessEvent *event, guint64 time_us);
ThreadState *collector_thread(Collector *collector, gint32 tid, guint32 *ret_thread);
void collector_note_event(Collector *collector, const AccessEvent *event, guint32 file);
void collector_note_use(Collector *collector, const AccessEvent *event, guint32 file);
