// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The kernel's readahead, as of Linux 6.18 (mm/readahead.c and mm/filemap.c describe what it does;
 * the windows were checked with mincore(2) against a running 6.18). Pure.
 *
 * A window [start, start + size) is read in one go; its page start + size - async_size carries a
 * mark, and the touch of that page starts the next, larger window, for which nobody waits.
 *   read(2), miss: at the start of a file, after a sequential read or for a large one a first
 * window of 2 or 4 times the pages wanted; behind a run of cached pages a window as long as the
 * run; else the pages wanted, no more. fault, miss: a window of the whole readahead size, centred;
 * in executable mappings it begins at the page and ends with the mapping, without a mark. A file
 * with over a hundred more misses than hits gets single pages. mark touched: the next window, 2 or
 * 4 times as long up to the limit, its end cut down to a multiple of the folio size in use.
 */
#include "measure/readahead-sim.h"

#define CHUNK_PAGES 512
#define MARK (1U << 31)
#define LOTS_OF_MISSES 100
#define FAULT_AROUND_PAGES 16
#define FOLIO_ORDER_MAX 9

typedef struct {
        guint32 pages[CHUNK_PAGES]; /* 0 = absent, else tag + 1, with MARK */
} Chunk;

typedef struct {
        GHashTable *chunks;
        guint64 end_page; /* first page beyond the file */
        GArray *executable;
        /* the kernel's struct file_ra_state */
        guint64 start, size, async_size, previous;
        guint order, misses;
} File;

struct ReadaheadSim {
        guint64 page_bytes, ra_pages, io_pages;
        GPtrArray *files;
        guint32 tags;
};

static void
file_free(gpointer data)
{
        File *file = data;

        g_hash_table_unref(file->chunks);
        g_clear_pointer(&file->executable, g_array_unref);
        g_free(file);
}

ReadaheadSim *
readahead_sim_new(guint32 page_bytes, guint64 readahead_bytes, guint64 io_bytes)
{
        ReadaheadSim *sim = g_new0(ReadaheadSim, 1);

        sim->page_bytes = page_bytes;
        sim->ra_pages = readahead_bytes / page_bytes;
        sim->io_pages = io_bytes / page_bytes;
        sim->files = g_ptr_array_new_with_free_func(file_free);
        return sim;
}

void
readahead_sim_free(ReadaheadSim *sim)
{
        if (sim == NULL)
                return;
        g_ptr_array_unref(sim->files);
        g_free(sim);
}

guint32
readahead_sim_add_file(ReadaheadSim *sim, guint64 size_bytes, GArray *executable)
{
        File *file = g_new0(File, 1);

        file->chunks = g_hash_table_new_full(NULL, NULL, NULL, g_free);
        file->end_page = size_bytes / sim->page_bytes + (size_bytes % sim->page_bytes != 0);
        file->executable = executable != NULL ? g_array_ref(executable) : NULL;
        file->previous = G_MAXUINT64 / 2;
        g_ptr_array_add(sim->files, file);
        return sim->files->len - 1;
}

static guint32
page_get(const File *file, guint64 page)
{
        const Chunk *chunk =
                g_hash_table_lookup(file->chunks, GSIZE_TO_POINTER(page / CHUNK_PAGES + 1));

        return chunk != NULL ? chunk->pages[page % CHUNK_PAGES] : 0;
}

static void
page_set(File *file, guint64 page, guint32 value)
{
        gpointer key = GSIZE_TO_POINTER(page / CHUNK_PAGES + 1);
        Chunk *chunk = g_hash_table_lookup(file->chunks, key);

        if (chunk == NULL) {
                chunk = g_new0(Chunk, 1);
                g_hash_table_insert(file->chunks, key, chunk);
        }
        chunk->pages[page % CHUNK_PAGES] = value;
}

guint32
readahead_sim_lookup(const ReadaheadSim *sim, guint32 file, guint64 page)
{
        guint32 value = page_get(sim->files->pdata[file], page) & ~MARK;

        return value == 0 ? READAHEAD_ABSENT : value - 1;
}

/* Reads what is missing of [page, page + pages), every run of missing pages by itself, and marks.
 */
static void
read_window(ReadaheadSim *sim, guint32 number, guint64 page, guint64 pages, guint64 mark,
            GArray *reads)
{
        File *file = sim->files->pdata[number];
        ReadaheadRead run = {.file = number};

        if (page >= file->end_page)
                return;
        pages = MIN(pages, file->end_page - page);
        for (guint64 i = page; i < page + pages; i++) {
                if (page_get(file, i) != 0) {
                        if (run.pages > 0)
                                g_array_append_val(reads, run);
                        run.pages = 0;
                        continue;
                }
                if (run.pages == 0) {
                        run.first_page = i;
                        run.tag = sim->tags++;
                }
                run.pages++;
                page_set(file, i, (run.tag + 1) | (i == mark ? MARK : 0));
        }
        if (run.pages > 0)
                g_array_append_val(reads, run);
}

static void
read_state(ReadaheadSim *sim, guint32 number, GArray *reads)
{
        File *file = sim->files->pdata[number];

        read_window(sim, number, file->start, file->size,
                    file->async_size > 0 ? file->start + file->size - file->async_size
                                         : G_MAXUINT64,
                    reads);
}

static guint64
power_of_two(guint64 value)
{
        guint64 power = 1;

        while (power < value)
                power *= 2;
        return power;
}

static guint64
first_size(guint64 wanted, guint64 limit)
{
        guint64 size = power_of_two(wanted);

        if (size <= limit / 32)
                return size * 4;
        if (size <= limit / 4)
                return size * 2;
        return limit;
}

static guint64
next_size(guint64 size, guint64 limit)
{
        if (size < limit / 16)
                return size * 4;
        if (size <= limit / 2)
                return size * 2;
        return limit;
}

static guint64
limit_pages(const ReadaheadSim *sim, guint64 wanted)
{
        if (wanted > sim->ra_pages && sim->io_pages > sim->ra_pages)
                return MIN(wanted, sim->io_pages);
        return sim->ra_pages;
}

static void
miss_in_read(ReadaheadSim *sim, guint32 number, guint64 page, guint64 wanted, GArray *reads)
{
        File *file = sim->files->pdata[number];
        guint64 limit, run = 0;

        if (sim->ra_pages == 0) {
                read_window(sim, number, page, 1, G_MAXUINT64, reads);
                return;
        }
        limit = limit_pages(sim, wanted);
        if (page == 0 || wanted > limit || page - file->previous <= 1) {
                file->start = page;
                file->size = first_size(wanted, limit);
                file->async_size = file->size > wanted ? file->size - wanted : file->size / 2;
                file->order = 0;
                read_state(sim, number, reads);
                return;
        }
        while (run < limit && run < page && page_get(file, page - 1 - run) != 0)
                run++;
        if (run <= wanted) {
                read_window(sim, number, page, wanted, G_MAXUINT64, reads);
                return;
        }
        if (run == page) /* cached from the beginning: the whole file is being read */
                run *= 2;
        file->start = page;
        file->size = MIN(run + wanted, limit);
        file->async_size = 1;
        file->order = 0;
        read_state(sim, number, reads);
}

static void
mark_touched(ReadaheadSim *sim, guint32 number, guint64 page, guint64 wanted, GArray *reads)
{
        File *file = sim->files->pdata[number];
        guint64 limit = limit_pages(sim, wanted), next, end, aligned;

        page_set(file, page, page_get(file, page) & ~MARK);
        if (sim->ra_pages == 0)
                return;
        if (page == file->start + file->size - file->async_size) {
                file->start += file->size;
                file->size = MAX(file->size, next_size(file->size, limit));
        } else {
                /* The mark of another stream: go on behind what is cached from here. */
                for (next = page + 1; next - page <= limit && page_get(file, next) != 0; next++)
                        ;
                if (next - page > limit)
                        return;
                file->start = next;
                file->size = next_size(next - page + wanted, limit);
        }
        file->order = MIN(file->order + 2, FOLIO_ORDER_MAX);
        end = file->start + file->size;
        aligned = end >> file->order << file->order;
        if (aligned > file->start)
                file->size = aligned - file->start;
        while (file->order > 0 && file->size >> file->order == 0)
                file->order--;
        file->async_size = file->size;
        read_state(sim, number, reads);
}

void
readahead_sim_read(ReadaheadSim *sim, guint32 number, guint64 page, guint64 pages, GArray *reads)
{
        File *file = sim->files->pdata[number];

        if (page >= file->end_page)
                return;
        pages = CLAMP(pages, 1, file->end_page - page);
        if (page_get(file, page) == 0)
                miss_in_read(sim, number, page, pages, reads);
        if (page_get(file, page) & MARK)
                mark_touched(sim, number, page, pages, reads);
        file->previous = page + 1;
}

static const PageSpan *
executable_span(const File *file, guint64 page)
{
        for (guint i = 0; file->executable != NULL && i < file->executable->len; i++) {
                const PageSpan *span = &g_array_index(file->executable, PageSpan, i);

                if (page >= span->first_page && page < span->end_page)
                        return span;
        }
        return NULL;
}

static void
miss_in_fault(ReadaheadSim *sim, guint32 number, guint64 page, GArray *reads)
{
        File *file = sim->files->pdata[number];
        const PageSpan *span = executable_span(file, page);

        if (file->misses < LOTS_OF_MISSES * 10)
                file->misses++;
        if (sim->ra_pages > 0 && file->misses <= LOTS_OF_MISSES) {
                if (span != NULL) {
                        file->start = page;
                        file->size = MIN(sim->ra_pages, span->end_page - page);
                        file->async_size = 0;
                } else {
                        file->start = page - MIN(page, sim->ra_pages / 2);
                        file->size = sim->ra_pages;
                        file->async_size = sim->ra_pages / 4;
                }
                file->order = 0;
                read_state(sim, number, reads);
        }
        if (page_get(file, page) == 0)
                read_window(sim, number, page, 1, G_MAXUINT64, reads);
}

void
readahead_sim_fault(ReadaheadSim *sim, guint32 number, guint64 page, GArray *reads)
{
        File *file = sim->files->pdata[number];
        guint32 value;

        if (page >= file->end_page)
                return;
        value = page_get(file, page);
        if (value == 0) {
                miss_in_fault(sim, number, page, reads);
                return;
        }
        /* Found. What is mapped around the fault counts as hits; a marked page is left out there.
         */
        if (value & MARK)
                mark_touched(sim, number, page, sim->ra_pages, reads);
        file->misses -= MIN(file->misses, FAULT_AROUND_PAGES);
}

void
readahead_sim_fetch(ReadaheadSim *sim, guint32 number, guint64 page, guint64 pages, GArray *reads)
{
        read_window(sim, number, page, pages, G_MAXUINT64, reads);
}
