// SPDX-License-Identifier: GPL-2.0-or-later
/* write-cache.c - a set of sectors as sorted, disjoint, non-touching runs. */
#include "write-cache.h"

#define RUN(cache, i) g_array_index((cache)->runs, SectorRun, i)

void
write_cache_init(WriteCache *cache)
{
        cache->runs = g_array_new(FALSE, FALSE, sizeof(SectorRun));
        cache->sectors = 0;
}

void
write_cache_clear(WriteCache *cache)
{
        g_clear_pointer(&cache->runs, g_array_unref);
        cache->sectors = 0;
}

guint
write_cache_lower(const WriteCache *cache, guint64 sector)
{
        guint low = 0, high = cache->runs->len;

        while (low < high) {
                guint middle = (low + high) / 2;

                if (RUN(cache, middle).end > sector)
                        high = middle;
                else
                        low = middle + 1;
        }
        return low;
}

guint64
write_cache_new_sectors(const WriteCache *cache, guint64 start, guint64 end)
{
        guint64 held = 0;

        for (guint i = write_cache_lower(cache, start);
             i < cache->runs->len && RUN(cache, i).start < end; i++)
                held += MIN(end, RUN(cache, i).end) - MAX(start, RUN(cache, i).start);
        return end - start - held;
}

gboolean
write_cache_holds(const WriteCache *cache, guint64 start, guint64 end)
{
        return write_cache_new_sectors(cache, start, end) == 0;
}

void
write_cache_add(WriteCache *cache, guint64 start, guint64 end)
{
        SectorRun run = {start, end};
        guint first, last;

        if (start >= end)
                return;
        cache->sectors += write_cache_new_sectors(cache, start, end);
        first = write_cache_lower(cache, start);
        if (first > 0 && RUN(cache, first - 1).end == start)
                first--;
        for (last = first; last < cache->runs->len && RUN(cache, last).start <= end; last++) {
                run.start = MIN(run.start, RUN(cache, last).start);
                run.end = MAX(run.end, RUN(cache, last).end);
        }
        if (last > first) {
                RUN(cache, first) = run;
                if (last > first + 1)
                        g_array_remove_range(cache->runs, first + 1, last - first - 1);
        } else {
                g_array_insert_val(cache->runs, first, run);
        }
}

void
write_cache_remove(WriteCache *cache, guint64 start, guint64 end)
{
        guint i = write_cache_lower(cache, start);

        while (i < cache->runs->len && RUN(cache, i).start < end) {
                SectorRun run = RUN(cache, i);

                cache->sectors -= MIN(end, run.end) - MAX(start, run.start);
                if (run.start < start && run.end > end) {
                        SectorRun rest = {end, run.end};

                        RUN(cache, i).end = start;
                        g_array_insert_val(cache->runs, i + 1, rest);
                        return;
                }
                if (run.start < start) {
                        RUN(cache, i++).end = start;
                } else if (run.end > end) {
                        RUN(cache, i).start = end;
                        return;
                } else {
                        g_array_remove_index(cache->runs, i);
                }
        }
}
