// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which pages the kernel reads when a program touches a page: a small page cache and the readahead
 * algorithm of Linux 6.x. Pure: it knows neither time nor place; the caller asks for a touch, gets
 * the reads that it causes, and decides when they are done.
 *
 * One readahead state a file stands for all of its open descriptors.
 */
#pragma once

#include <glib.h>

typedef struct {
        guint64 first_page, pages; /* pages that were not in the cache, inside the file */
        guint32 file;
        guint32 tag; /* its number: 0, 1, 2, ... over all files */
} ReadaheadRead;

typedef struct {
        guint64 first_page, end_page;
} PageSpan;

#define READAHEAD_ABSENT G_MAXUINT32

typedef struct ReadaheadSim ReadaheadSim;

/* `readahead_bytes` is the device's read_ahead_kb, 0 = off; `io_bytes` its largest request. */
ReadaheadSim *readahead_sim_new(guint32 page_bytes, guint64 readahead_bytes, guint64 io_bytes);
void readahead_sim_free(ReadaheadSim *sim);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ReadaheadSim, readahead_sim_free)

/* Returns the file's number: 0, 1, 2, ... `executable` (GArray of PageSpan, may be NULL; kept by
 * reference) says which pages are mapped to be executed: the kernel reads ahead otherwise there. */
guint32 readahead_sim_add_file(ReadaheadSim *sim, guint64 size_bytes, GArray *executable);

/* read(2) of `pages` pages from `page` on, of which `page` is looked up now. Appends ReadaheadRead
 * to `reads`, in rising order; readahead_sim_lookup() tells which one holds the page. Pages beyond
 * the file's end cause nothing. */
void readahead_sim_read(ReadaheadSim *sim, guint32 file, guint64 page, guint64 pages,
                        GArray *reads);
/* A fault in a mapping. */
void readahead_sim_fault(ReadaheadSim *sim, guint32 file, guint64 page, GArray *reads);
/* Pages that somebody else asks for, without readahead: those not there yet. */
void readahead_sim_fetch(ReadaheadSim *sim, guint32 file, guint64 page, guint64 pages,
                         GArray *reads);

/* The tag of the read that brings (brought) the page, or READAHEAD_ABSENT. */
guint32 readahead_sim_lookup(const ReadaheadSim *sim, guint32 file, guint64 page);
