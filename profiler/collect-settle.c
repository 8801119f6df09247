// SPDX-License-Identifier: GPL-2.0-or-later
/* Pages out: which were used, in what order, and which block reads only came along. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/collect-internal.h"

/* Blocks of one inode-table readahead are submitted without waiting in between. */
#define BURST_GAP_US 2000U

typedef struct {
        guint32 time_us;
        guint32 file;
        guint64 page;
        guint32 use;
        guint16 n;
        guint8 cause;
        guint8 flags;
} Run;

static guint32
use_us(const Collector *c, const Chunk *chunk, guint bit)
{
        return collector_use(c, chunk->use[bit])->time_us;
}

/* Pages of big reads count from here on as if they had been read one by one. */
static void
settle_big_reads(Collector *c, guint32 index, guint64 n_pages)
{
        for (guint32 i = collector_file_at(c, index)->big_reads; i;) {
                const BigRead big = g_array_index(c->big_reads, BigRead, i - 1);
                guint32 big_us = collector_use(c, big.use)->time_us;

                if (n_pages && big.first < n_pages) {
                        guint64 last = MIN(big.last, n_pages - 1);

                        for (guint64 number = big.first / CHUNK_PAGES; number <= last / CHUNK_PAGES;
                             number++) {
                                Chunk *chunk = collector_find_chunk(c, index, number);
                                guint64 base = number * CHUNK_PAGES;

                                for (guint bit = 0; bit < CHUNK_PAGES; bit++) {
                                        guint64 page = base + bit;
                                        gboolean used = chunk->used & (1U << bit);

                                        if (page < big.first || page > last)
                                                continue;
                                        if (!used || use_us(c, chunk, bit) > big_us)
                                                collector_set_used(chunk, bit, big.use,
                                                                   PROFILE_CAUSE_READ);
                                }
                        }
                }
                i = big.next;
        }
}

/* Pages of a window that were there before: asked in one go, and with them what else of their
 * folios was mapped, which can only reach out of the window at its ends. */
static void
settle_pending(Collector *c, Chunk *chunk, guint64 n_pages, const CollectorAsk *ask)
{
        guint16 pending = chunk->pending & (guint16) ~(chunk->used | chunk->added);
        guint64 base = chunk->chunk * CHUNK_PAGES;
        guint8 vec[CHUNK_PAGES];
        guint ends[2] = {CHUNK_PAGES, 0};
        guint32 file = chunk->file;

        chunk->pending = 0;
        if (!pending)
                return;
        memset(vec, 1, sizeof vec);
        if (ask->resident)
                ask->resident(base, CHUNK_PAGES, vec, ask->data);
        for (; pending; pending &= (guint16)(pending - 1)) {
                guint bit = (guint)__builtin_ctz(pending);

                if (!vec[bit])
                        continue;
                collector_set_used(chunk, bit, chunk->use[bit], PROFILE_CAUSE_MAP);
                ends[0] = MIN(ends[0], bit);
                ends[1] = bit;
        }
        if (!ask->folio || !c->options.faults_map_folios || ends[0] == CHUNK_PAGES)
                return;
        for (guint i = 0; i < G_N_ELEMENTS(ends); i++) {
                guint32 use = chunk->use[ends[i]];
                guint64 first, last;

                ask->folio(base + ends[i], &first, &last, ask->data);
                for (guint64 page = first; page <= last && page < n_pages; page++) {
                        Chunk *other = collector_find_chunk(c, file, page / CHUNK_PAGES);
                        guint bit = (guint)(page % CHUNK_PAGES);

                        if (!(other->used & (1U << bit)))
                                collector_set_used(other, bit, use, PROFILE_CAUSE_MAP);
                }
        }
}

static void
clip_chunk(Chunk *chunk, guint64 n_pages)
{
        guint64 base = chunk->chunk * CHUNK_PAGES;
        guint16 inside = base >= n_pages                 ? 0
                         : n_pages - base >= CHUNK_PAGES ? G_MAXUINT16
                                                         : (guint16)((1U << (n_pages - base)) - 1);

        chunk->used &= inside;
        chunk->pending &= inside;
}

CollectedUse
collector_settle(Collector *c, guint index, guint64 size_bytes, const CollectorAsk *ask)
{
        guint64 page_bytes = (guint64)sysconf(_SC_PAGESIZE);
        guint64 n_pages = size_bytes / page_bytes + (size_bytes % page_bytes != 0);
        CollectedUse use = {.first_use_us = G_MAXUINT64};

        settle_big_reads(c, index, n_pages);
        for (guint32 i = collector_file_at(c, index)->chunks; i;) {
                Chunk *chunk = collector_chunk_at(c, i - 1);

                clip_chunk(chunk, n_pages);
                settle_pending(c, chunk, n_pages, ask);
                i = chunk->next;
        }
        for (guint32 i = collector_file_at(c, index)->chunks; i;) {
                const Chunk *chunk = collector_chunk_at(c, i - 1);

                use.used_pages += (guint64)__builtin_popcount(chunk->used);
                use.cached_before_pages +=
                        (guint64)__builtin_popcount(chunk->used & (guint16)~chunk->missed);
                for (guint16 used = chunk->used; used; used &= (guint16)(used - 1))
                        use.first_use_us =
                                MIN(use.first_use_us, use_us(c, chunk, (guint)__builtin_ctz(used)));
                i = chunk->next;
        }
        collector_file_at(c, index)->settled = TRUE;
        return use;
}

static int
compare_runs(const void *a, const void *b)
{
        const Run *x = a, *y = b;

        if (x->time_us != y->time_us)
                return x->time_us < y->time_us ? -1 : 1;
        if (x->file != y->file)
                return x->file < y->file ? -1 : 1;
        return x->page < y->page ? -1 : x->page > y->page;
}

static void
add_runs(const Collector *c, const Chunk *chunk, guint32 file, GArray *runs)
{
        Run run = {.n = 0};

        for (guint bit = 0; bit <= CHUNK_PAGES; bit++) {
                gboolean used = bit < CHUNK_PAGES && (chunk->used & (1U << bit));

                guint8 flags = bit < CHUNK_PAGES && (chunk->missed & (1U << bit))
                                       ? PROFILE_RANGE_MISS
                                       : PROFILE_RANGE_HIT;

                if (used && run.n && chunk->use[bit] == run.use &&
                    collector_cause(chunk, bit) == run.cause && flags == run.flags) {
                        run.n++;
                        continue;
                }
                if (run.n)
                        g_array_append_val(runs, run);
                run.n = 0;
                if (used)
                        run = (Run){.time_us = use_us(c, chunk, bit),
                                    .file = file,
                                    .page = chunk->chunk * CHUNK_PAGES + bit,
                                    .use = chunk->use[bit],
                                    .n = 1,
                                    .cause = (guint8)collector_cause(chunk, bit),
                                    .flags = flags};
        }
}

/* A use may be spread over several runs; its stall counts with the first of them. */
static guint32
take_stall(const Use *use, guint32 number, guint8 *counted)
{
        guint8 bit = (guint8)(1U << (number % 8));

        if (counted[number / 8] & bit)
                return 0;
        counted[number / 8] |= bit;
        return use->stall_us;
}

void
collector_ranges(Collector *c, const guint32 *profile_file, Profile *profile)
{
        g_autoptr(GArray) runs = g_array_new(FALSE, FALSE, sizeof(Run));
        g_autofree guint8 *counted = g_new0(guint8, c->n_uses / 8 + 1);
        guint64 page_bytes = profile->page_bytes;
        ProfileRange range = {0};

        for (guint32 i = 0; i < c->n_chunks; i++) {
                const Chunk *chunk = collector_chunk_at(c, i);

                if (chunk->used && collector_file_at(c, chunk->file)->settled &&
                    profile_file[chunk->file] != G_MAXUINT32)
                        add_runs(c, chunk, profile_file[chunk->file], runs);
        }
        if (runs->len)
                qsort(runs->data, runs->len, sizeof(Run), compare_runs);

        for (guint i = 0; i < runs->len; i++) {
                const Run *run = &g_array_index(runs, Run, i);
                const Use *use = collector_use(c, run->use);
                guint64 offset = run->page * page_bytes;
                guint32 stall_us = take_stall(use, run->use, counted);

                if (range.length_bytes && range.file == run->file && range.cause == run->cause &&
                    range.process == use->process && range.flags == run->flags &&
                    range.offset_bytes + range.length_bytes == offset) {
                        range.length_bytes += run->n * page_bytes;
                        range.stall_us += MIN(stall_us, G_MAXUINT32 - range.stall_us);
                        continue;
                }
                if (range.length_bytes)
                        g_array_append_val(profile->ranges, range);
                range = (ProfileRange){.file = run->file,
                                       .cause = run->cause,
                                       .flags = run->flags,
                                       .process = use->process,
                                       .stall_us = stall_us,
                                       .offset_bytes = offset,
                                       .length_bytes = run->n * page_bytes,
                                       .first_use_us = run->time_us};
        }
        if (range.length_bytes)
                g_array_append_val(profile->ranges, range);
}

void
collector_mark_readahead(const GArray *reads, guint window_pages, gboolean *ret_follower)
{
        for (guint i = 0; i < reads->len; i++)
                ret_follower[i] = FALSE;
        if (window_pages < 2)
                return;

        for (guint i = 0; i < reads->len; i++) {
                const CollectedBlockRead *wanted = &g_array_index(reads, CollectedBlockRead, i);
                guint64 previous = 0, last_us = wanted->time_us;
                gboolean any = FALSE;

                if (ret_follower[i])
                        continue;
                for (guint k = i + 1; k < reads->len; k++) {
                        const CollectedBlockRead *next =
                                &g_array_index(reads, CollectedBlockRead, k);

                        if (next->time_us > last_us + BURST_GAP_US)
                                break;
                        if (next->tid != wanted->tid)
                                continue;
                        if (next->page / window_pages != wanted->page / window_pages ||
                            (any && next->page <= previous))
                                break;
                        ret_follower[k] = TRUE;
                        previous = next->page;
                        last_us = next->time_us;
                        any = TRUE;
                }
        }
}
