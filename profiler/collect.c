// SPDX-License-Identifier: GPL-2.0-or-later
/* Events in: see collect.h for the rules and collect-internal.h for how pages are kept. */
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "profiler/collect-internal.h"

static void
block_device_free(gpointer data)
{
        BlockDevice *device = data;

        g_array_unref(device->reads);
        g_hash_table_unref(device->pages);
        g_free(device);
}

static guint64
mix(guint64 a, guint64 b)
{
        guint64 h = (a ^ (b * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15))) *
                    G_GUINT64_CONSTANT(0xbf58476d1ce4e5b9);

        return h ^ (h >> 29);
}

/* The kernel's own encoding of a device number, which the block device's inode carries. */
static guint64
kernel_device_number(dev_t dev)
{
        return ((guint64)major(dev) << 20) | minor(dev);
}

Collector *
collector_new(const CollectorOptions *options)
{
        Collector *c = g_new0(Collector, 1);

        c->options = *options;
        c->gate_open = options->gate_tid == 0;
        c->files = g_array_new(FALSE, FALSE, sizeof(FileEntry));
        c->n_file_slots = 1024;
        c->file_slots = g_new0(guint32, c->n_file_slots);
        c->slabs = g_ptr_array_new_with_free_func(g_free);
        c->n_chunk_slots = 4096;
        c->chunk_slots = g_new0(guint32, c->n_chunk_slots);
        c->big_reads = g_array_new(FALSE, FALSE, sizeof(BigRead));
        c->use_slabs = g_ptr_array_new_with_free_func(g_free);
        c->processes = process_table_new();
        c->thread_states = g_array_new(FALSE, TRUE, sizeof(ThreadState));
        c->accesses = g_array_new(FALSE, FALSE, sizeof(ThreadAccess));
        c->marks = g_array_new(FALSE, FALSE, sizeof(CollectedMark));
        c->huge_order = g_bit_nth_msf((gulong)sysconf(_SC_PAGESIZE) / sizeof(guint64), -1);
        c->block_devices =
                g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, block_device_free);
        c->mounted = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
        return c;
}

void
collector_free(Collector *c)
{
        if (!c)
                return;
        g_array_unref(c->files);
        g_free(c->file_slots);
        g_ptr_array_unref(c->slabs);
        g_free(c->chunk_slots);
        g_array_unref(c->big_reads);
        g_ptr_array_unref(c->use_slabs);
        process_table_free(c->processes);
        g_array_unref(c->thread_states);
        g_array_unref(c->accesses);
        g_free(c->profile_file);
        for (guint i = 0; i < c->marks->len; i++)
                g_free(g_array_index(c->marks, CollectedMark, i).text);
        g_array_unref(c->marks);
        g_hash_table_unref(c->block_devices);
        g_hash_table_unref(c->mounted);
        g_free(c);
}

static gint64 *
int64_key(guint64 value)
{
        gint64 *key = g_new(gint64, 1);

        *key = (gint64)value;
        return key;
}

void
collector_add_block_device(Collector *c, dev_t device)
{
        guint64 number = kernel_device_number(device);
        BlockDevice *entry;

        if (g_hash_table_contains(c->block_devices, &number))
                return;
        entry = g_new0(BlockDevice, 1);
        entry->reads = g_array_new(FALSE, FALSE, sizeof(CollectedBlockRead));
        entry->pages = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
        g_hash_table_insert(c->block_devices, int64_key(number), entry);
}

void
collector_add_mounted(Collector *c, dev_t dev)
{
        g_hash_table_add(c->mounted, int64_key(dev));
}

static void
grow_files(Collector *c)
{
        guint32 n = c->n_file_slots * 2;
        guint32 *slots = g_new0(guint32, n);

        for (guint32 i = 0; i < c->files->len; i++) {
                const FileEntry *file = collector_file_at(c, i);
                guint32 at = (guint32)mix(file->inode, file->dev) & (n - 1);

                while (slots[at])
                        at = (at + 1) & (n - 1);
                slots[at] = i + 1;
        }
        g_free(c->file_slots);
        c->file_slots = slots;
        c->n_file_slots = n;
}

static guint32
find_file(Collector *c, dev_t dev, guint64 inode, guint64 time_us)
{
        guint32 at = (guint32)mix(inode, dev) & (c->n_file_slots - 1);
        FileEntry file = {.dev = dev, .inode = inode, .first_us = time_us, .read_first = 1};

        for (; c->file_slots[at]; at = (at + 1) & (c->n_file_slots - 1)) {
                const FileEntry *old = collector_file_at(c, c->file_slots[at] - 1);

                if (old->inode == inode && old->dev == dev)
                        return c->file_slots[at] - 1;
        }
        g_array_append_val(c->files, file);
        c->file_slots[at] = c->files->len;
        if (c->files->len > c->n_file_slots / 2)
                grow_files(c);
        return c->files->len - 1;
}

static void
grow_chunks(Collector *c)
{
        guint32 n = c->n_chunk_slots * 2;
        guint32 *slots = g_new0(guint32, n);

        for (guint32 i = 0; i < c->n_chunks; i++) {
                const Chunk *chunk = collector_chunk_at(c, i);
                guint32 at = (guint32)mix(chunk->chunk, chunk->file) & (n - 1);

                while (slots[at])
                        at = (at + 1) & (n - 1);
                slots[at] = i + 1;
        }
        g_free(c->chunk_slots);
        c->chunk_slots = slots;
        c->n_chunk_slots = n;
}

Chunk *
collector_find_chunk(Collector *c, guint32 file, guint64 number)
{
        guint32 at;
        Chunk *chunk;

        if (c->last_chunk) {
                chunk = collector_chunk_at(c, c->last_chunk - 1);
                if (chunk->chunk == number && chunk->file == file)
                        return chunk;
        }
        at = (guint32)mix(number, file) & (c->n_chunk_slots - 1);
        for (; c->chunk_slots[at]; at = (at + 1) & (c->n_chunk_slots - 1)) {
                chunk = collector_chunk_at(c, c->chunk_slots[at] - 1);
                if (chunk->chunk == number && chunk->file == file) {
                        c->last_chunk = c->chunk_slots[at];
                        return chunk;
                }
        }

        if (c->n_chunks % SLAB_CHUNKS == 0)
                g_ptr_array_add(c->slabs, g_new(Chunk, SLAB_CHUNKS));
        chunk = collector_chunk_at(c, c->n_chunks++);
        memset(chunk, 0, sizeof *chunk);
        chunk->chunk = number;
        chunk->file = file;
        chunk->next = collector_file_at(c, file)->chunks;
        collector_file_at(c, file)->chunks = c->n_chunks;
        c->chunk_slots[at] = c->n_chunks;
        c->last_chunk = c->n_chunks;
        if (c->n_chunks > c->n_chunk_slots / 2)
                grow_chunks(c);
        return chunk;
}

/* The use that the event at hand makes. */
static guint32
event_use(Collector *c)
{
        if (c->event_use)
                return c->event_use;
        if (c->n_uses % SLAB_USES == 0)
                g_ptr_array_add(c->use_slabs, g_new(Use, SLAB_USES));
        c->event_use = ++c->n_uses;
        *collector_use(c, c->event_use) =
                (Use){.time_us = c->event_us, .process = c->event_process};
        return c->event_use;
}

/* Pages that come in for a read or fault of the thread that is still going on. */
static void
mark_missed(Chunk *chunk, guint16 pages, guint32 open_use)
{
        if (!open_use)
                return;
        for (; pages; pages &= (guint16)(pages - 1)) {
                guint bit = (guint)__builtin_ctz(pages);

                if (chunk->use[bit] == open_use)
                        chunk->missed |= (guint16)(1U << bit);
        }
}

/* TRUE when a page became used (or pending) that was not so before. */
static gboolean
touch_chunk(Collector *c, Chunk *chunk, guint from, guint to, AccessKind kind, guint32 open_use)
{
        guint16 want = (guint16)(((1U << (to + 1)) - 1) & ~((1U << from) - 1));
        gboolean counts_added = c->options.source == PROFILE_SOURCE_READ_IN || c->options.exact;
        gboolean new_page = FALSE;
        guint16 left;

        switch (kind) {
        case ACCESS_ADD:
                /* A window that was mapped before cannot have held what only now came in. */
                chunk->pending &= (guint16) ~(want & ~chunk->used);
                mark_missed(chunk, want & chunk->used, open_use);
                chunk->added |= want;
                if (!counts_added)
                        return FALSE;
                left = want & (guint16)~chunk->used;
                break;
        case ACCESS_MAP: left = want & (guint16) ~(chunk->used | chunk->pending); break;
        default: left = want & (guint16)~chunk->used; break;
        }

        for (; left; left &= (guint16)(left - 1)) {
                guint bit = (guint)__builtin_ctz(left);

                if (kind == ACCESS_MAP && !(chunk->added & (1U << bit))) {
                        chunk->pending |= (guint16)(1U << bit);
                        chunk->use[bit] = event_use(c);
                } else {
                        collector_set_used(chunk, bit, event_use(c),
                                           kind == ACCESS_ADD     ? PROFILE_CAUSE_READ_IN
                                           : kind == ACCESS_READ  ? PROFILE_CAUSE_READ
                                           : kind == ACCESS_FAULT ? PROFILE_CAUSE_FAULT
                                                                  : PROFILE_CAUSE_MAP);
                }
                new_page = TRUE;
        }
        /* In an exact recording the addition comes just before the look-up that tells why. */
        if (counts_added && (kind == ACCESS_READ || kind == ACCESS_FAULT)) {
                for (guint16 known = want & chunk->used; known; known &= (guint16)(known - 1)) {
                        guint bit = (guint)__builtin_ctz(known);

                        if (collector_cause(chunk, bit) == PROFILE_CAUSE_READ_IN)
                                collector_set_used(chunk, bit, chunk->use[bit],
                                                   kind == ACCESS_READ ? PROFILE_CAUSE_READ
                                                                       : PROFILE_CAUSE_FAULT);
                }
        }
        return new_page;
}

static gboolean
touch(Collector *c, guint32 file, guint64 first, guint64 last, AccessKind kind, guint32 open_use)
{
        gboolean new_page = FALSE;

        for (guint64 number = first / CHUNK_PAGES; number <= last / CHUNK_PAGES; number++) {
                guint64 base = number * CHUNK_PAGES;

                if (touch_chunk(c, collector_find_chunk(c, file, number),
                                first > base ? (guint)(first - base) : 0,
                                last < base + CHUNK_PAGES - 1 ? (guint)(last - base)
                                                              : CHUNK_PAGES - 1,
                                kind, open_use))
                        new_page = TRUE;
        }
        return new_page;
}

static gboolean
add_big_read(Collector *c, guint32 file, const AccessEvent *event)
{
        FileEntry *entry = collector_file_at(c, file);
        BigRead big = {
                .first = event->first,
                .last = event->last,
                .next = entry->big_reads,
        };

        for (guint32 i = entry->big_reads; i;
             i = g_array_index(c->big_reads, BigRead, i - 1).next) {
                const BigRead *old = &g_array_index(c->big_reads, BigRead, i - 1);

                if (old->first <= big.first && big.last <= old->last)
                        return FALSE;
        }
        big.use = event_use(c);
        g_array_append_val(c->big_reads, big);
        entry->big_reads = c->big_reads->len;
        return TRUE;
}

/* Remembers of which order the folio is that the pages came in with. */
static void
note_folio(Collector *c, guint32 file, const AccessEvent *event)
{
        guint order = (guint)g_bit_nth_msf((gulong)(event->last - event->first + 1), -1);

        order = MIN(order, ORDER_MAX);
        for (guint64 page = event->first; order && page <= event->last; page++) {
                Chunk *chunk = collector_find_chunk(c, file, page / CHUNK_PAGES);
                guint bit = (guint)(page % CHUNK_PAGES);

                chunk->cause[bit] =
                        (guint8)((chunk->cause[bit] & CAUSE_MASK) | (order << CAUSE_BITS));
        }
        /* Its mapping through the upper page table makes no event at all. */
        if (order >= c->huge_order)
                touch(c, file, event->first, event->last, ACCESS_MAP, 0);
}

static void
map_folio_of(Collector *c, guint32 file, guint64 page)
{
        const Chunk *chunk = collector_find_chunk(c, file, page / CHUNK_PAGES);
        guint order = chunk->cause[page % CHUNK_PAGES] >> CAUSE_BITS;
        guint64 first = page >> order << order;

        if (order > 0 && (order >= c->huge_order || c->options.faults_map_folios))
                touch(c, file, first, first + ((guint64)1 << order) - 1, ACCESS_MAP, 0);
}

static void
add_block_read(BlockDevice *device, const AccessEvent *event, guint64 time_us)
{
        guint64 last = MIN(event->last, event->first + BIG_READ_PAGES);

        for (guint64 page = event->first; page <= last; page++) {
                CollectedBlockRead read = {.page = page, .time_us = time_us, .tid = event->tid};

                if (g_hash_table_contains(device->pages, &page))
                        continue;
                g_hash_table_add(device->pages, int64_key(page));
                g_array_append_val(device->reads, read);
        }
}

/* A read, fault, window or addition of a file's pages. */
static gboolean
add_pages(Collector *c, const AccessEvent *event, guint32 index)
{
        FileEntry *file = collector_file_at(c, index);
        guint32 open_use = 0;

        if (event->kind == ACCESS_READ) {
                /* One read(2) looks its whole rest up again after every few pages. */
                if (event->first >= file->read_first && event->last <= file->read_last)
                        return FALSE;
                if (event->last - event->first >= BIG_READ_PAGES)
                        return add_big_read(c, index, event);
                file->read_first = event->first;
                file->read_last = event->last;
        }
        if (event->kind == ACCESS_ADD)
                open_use = collector_thread(c, event->tid, NULL)->open_use;
        return touch(c, index, event->first, event->last, event->kind, open_use);
}

void
collector_add(Collector *c, const AccessEvent *event)
{
        guint64 time_us = event->time_ns > c->options.start_ns
                                  ? (event->time_ns - c->options.start_ns) / 1000
                                  : 0;
        gboolean new_page;
        guint32 index;

        if (event->kind == ACCESS_EXEC && event->tid == c->options.gate_tid)
                c->gate_open = TRUE;
        if (event->kind > ACCESS_MAP && event->kind != ACCESS_RA) {
                collector_add_task(c, event, time_us);
                return;
        }
        if (event->kind != ACCESS_RA && event->last < event->first)
                return;
        if (!c->gate_open && event->tid == c->options.gate_tid &&
            (event->kind == ACCESS_FAULT || event->kind == ACCESS_MAP))
                return;
        c->saw_pages = TRUE;

        if (major(event->dev) == 0) {
                BlockDevice *device = g_hash_table_lookup(c->block_devices, &event->inode);
                guint64 dev = event->dev;

                if (device && !g_hash_table_contains(c->mounted, &dev)) {
                        if (event->kind != ACCESS_RA)
                                add_block_read(device, event, time_us);
                        return;
                }
        }

        index = find_file(c, event->dev, event->inode, time_us);
        c->event_use = 0;
        c->event_us = (guint32)MIN(time_us, NO_TIME - 1);
        collector_note_event(c, event, index);
        if (event->kind == ACCESS_RA)
                return;
        new_page = add_pages(c, event, index);
        if (new_page)
                c->last_new_us = time_us;
        collector_note_use(c, event, index);
        if (c->options.exact)
                return;
        if (event->kind == ACCESS_ADD)
                note_folio(c, index, event);
        if (event->kind != ACCESS_MAP && event->kind != ACCESS_FAULT)
                return;
        /* Folios in the middle of the window lie inside it. */
        map_folio_of(c, index, event->first);
        if (event->last != event->first)
                map_folio_of(c, index, event->last);
}

guint64
collector_last_new_us(const Collector *c)
{
        return c->last_new_us;
}

gboolean
collector_saw_pages(const Collector *c)
{
        return c->saw_pages;
}

guint
collector_n_files(const Collector *c)
{
        return c->files->len;
}

CollectedFile
collector_file(const Collector *c, guint index)
{
        const FileEntry *file = collector_file_at(c, index);

        return (CollectedFile){.dev = file->dev, .inode = file->inode, .first_us = file->first_us};
}

const GArray *
collector_block_reads(const Collector *c, dev_t device)
{
        guint64 number = kernel_device_number(device);
        BlockDevice *entry = g_hash_table_lookup(c->block_devices, &number);

        return entry && entry->reads->len ? entry->reads : NULL;
}
