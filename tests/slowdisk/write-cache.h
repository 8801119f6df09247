// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * write-cache.h - which sectors a simulated disk's write-back cache holds unwritten.
 *
 * Pure. A sorted array of runs that neither overlap nor touch. The data themselves are in the
 * backing file from the moment of the write on: only the time of writing them is simulated here.
 */
#pragma once

#include <glib.h>

typedef struct {
        guint64 start, end; /* sectors */
} SectorRun;

typedef struct {
        GArray *runs;    /* SectorRun */
        guint64 sectors; /* sum of the runs */
} WriteCache;

void write_cache_init(WriteCache *cache);
void write_cache_clear(WriteCache *cache);

void write_cache_add(WriteCache *cache, guint64 start, guint64 end);
void write_cache_remove(WriteCache *cache, guint64 start, guint64 end);

/* The sectors that adding the run would add to the cache. */
guint64 write_cache_new_sectors(const WriteCache *cache, guint64 start, guint64 end);

/* TRUE when every sector of the run is held. */
gboolean write_cache_holds(const WriteCache *cache, guint64 start, guint64 end);

/* The index of the first run that ends beyond @sector (the number of runs when none does). */
guint write_cache_lower(const WriteCache *cache, guint64 sector);
