// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From page-cache events to the pages that were used, in order of first use. Pure: no clock, no
 * file system; whoever calls feeds events and, at the end, sizes and residency.
 *
 * What counts as used (source "used-pages"):
 *  - a page that a read looked up (mm_filemap_get_pages) or that faulted (mm_filemap_fault): exact;
 *  - a page in the window that fault-around mapped (mm_filemap_map_pages), as far as it was cached
 *    at that moment: added earlier in this recording, or never added and resident at the end (then
 *    it had been there before). Fault-around maps only what is cached, the event tells the window;
 *  - the other pages of a folio that was mapped whole, since no event tells when they are touched:
 *    from Linux 6.18 on all folios that a fault or a window meets (without it every second window
 * of a file touched from end to end was missing, measured). Folios are known from their addition,
 *    or asked for at the end. One as large as a huge page is mapped without any event (measured)
 * and counts when it comes in; those occur with a readahead of 2 MiB and more only.
 *
 * With source "read-in" only additions to the page cache are seen, and each counts as used. `exact`
 * (the kernel's readahead is off) lets additions count beside the used-page events.
 *
 * Cached or not: a page was read from the disk when it was added before its first use, or for it
 * (the addition comes after the fault that asks for it, and in the course of a long read). All else
 * was there.
 *
 * Invariants: memory grows with the pages touched (about 8 bytes each), not with the events; each
 * event costs a hash look-up or less; a read that asks for more than 512 pages is kept as one
 * record and cut to the file's size at the end, so that a huge buffer on a small file costs
 * nothing.
 */
#pragma once

#include <glib.h>
#include <sys/types.h>

#include "common/profile.h"

typedef enum {
        ACCESS_ADD,   /* pages were added to the page cache: first to last */
        ACCESS_READ,  /* read(2) looked them up */
        ACCESS_FAULT, /* a fault that found the page not mapped */
        ACCESS_MAP,   /* a window mapped by fault-around */
        ACCESS_EXEC,  /* the thread executes a program from now on; text: as it was called */
        ACCESS_MARK,  /* text: of a mark; first: 1 = the mark that was waited for */
        ACCESS_RA,    /* the kernel is about to read around page first for the thread */
        ACCESS_FORK,  /* first: thread made; last: 1 = a thread of the same process; text: name */
        ACCESS_NAME,  /* first: the thread that is called text from now on */
        ACCESS_EXIT,  /* the thread ends; first: 1 = the whole process */
        /* with reasons for waiting: */
        ACCESS_SWITCH,  /* leaves the CPU; first: its state; last: the thread that gets the CPU */
        ACCESS_WAKE,    /* first: the thread that may run again */
        ACCESS_SYSCALL, /* first: number of the system call that begins; last: first argument */
} AccessKind;

typedef struct {
        guint64 time_ns;
        guint64 inode;
        guint64 first, last; /* pages, both included */
        dev_t dev;
        gint32 tid;
        AccessKind kind;
        const gchar *text; /* bytes, NULL = none; kept by whoever made the event */
} AccessEvent;

typedef struct Collector Collector;

typedef struct {
        ProfileSource source; /* USED_PAGES or READ_IN */
        gboolean exact;
        gboolean faults_map_folios; /* Linux 6.18 and later */
        guint64 start_ns;           /* events before count as this moment */
        gboolean log_accesses;      /* remember which thread was at which file, for waits */
        gint32 gate_tid; /* until this thread's ACCESS_EXEC its faults and windows are ours, not
                            the command's; 0 = no gate */
} CollectorOptions;

Collector *collector_new(const CollectorOptions *options);
void collector_free(Collector *collector);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Collector, collector_free)

/* Pages of a block device's own mapping are metadata of the file system on it. The kernel reports
 * them on an internal file system (major 0) with the device number as inode. `device` is the block
 * device; `others` the numbers of mounted file systems, which are never that internal one. */
void collector_add_block_device(Collector *collector, dev_t device);
void collector_add_mounted(Collector *collector, dev_t dev);

/* Events in order of time (small disorder does no harm). */
void collector_add(Collector *collector, const AccessEvent *event);

/* Of the last event that made a page used for the first time (windows count when the page is known
 * to be cached or nothing is known), microseconds since the start. 0 before the first. */
guint64 collector_last_new_us(const Collector *collector);
/* TRUE when any event of a page was seen at all, our own ones before the exec not counted. */
gboolean collector_saw_pages(const Collector *collector);

typedef struct {
        dev_t dev;
        guint64 inode;
        guint64 first_us; /* first event of any kind */
} CollectedFile;

guint collector_n_files(const Collector *collector);
CollectedFile collector_file(const Collector *collector, guint index);

/* Sets vec[i] to 1 when page first + i of the file is resident now. */
typedef void (*ResidentFunc)(guint64 first, guint n, guint8 *vec, gpointer data);

/* The folio that holds a resident page. */
typedef void (*FolioFunc)(guint64 page, guint64 *ret_first, guint64 *ret_last, gpointer data);

typedef struct {
        ResidentFunc resident; /* NULL: pages of a window that nothing is known of count */
        FolioFunc folio;       /* may be NULL */
        gpointer data;
} CollectorAsk;

typedef struct {
        guint64 used_pages;
        guint64 cached_before_pages; /* of these: never added in this recording */
        guint64 first_use_us;        /* G_MAXUINT64 when no page was used */
} CollectedUse;

/* Settles which pages of the file were used, given its size and what can be asked of it now. Call
 * once a file, before collector_ranges(). */
CollectedUse collector_settle(Collector *collector, guint index, guint64 size_bytes,
                              const CollectorAsk *ask);

/* Appends the used pages of settled files to profile->ranges in order of first use; pages used one
 * after the other by one process, adjacent forward in one file, of the same cause, all cached
 * or all read from the disk become one range.
 * profile_file[i] is the index in profile->files of collected file i, G_MAXUINT32 = leave out. */
void collector_ranges(Collector *collector, const guint32 *profile_file, Profile *profile);

/* Fills processes and marks of the profile and what is known of its files' last use. After
 * collector_ranges(). */
void collector_causes(Collector *collector, const guint32 *profile_file, Profile *profile);

/* Finds the file that each wait for the disk was for. After collector_causes(), with
 * options.log_accesses. */
void collector_name_waits(Collector *collector, Profile *profile);

/* Who was seen so far; those that ran before may be told to it. Borrowed. */
struct ProcessTable *collector_processes(Collector *collector);

/* One read of the block device's own mapping. */
typedef struct {
        guint64 page;
        guint64 time_us;
        gint32 tid;
} CollectedBlockRead;

/* The reads seen of the device's mapping, in order of time, no page twice; NULL when none.
 * Borrowed. */
const GArray *collector_block_reads(const Collector *collector, dev_t device);

/* Marks the reads (ret_follower[i] = TRUE) that look like inode-table readahead of the file system:
 * after a wanted block, which comes first, the same thread reads the other blocks of the aligned
 * window of `window_pages` in ascending order at once. */
void collector_mark_readahead(const GArray *reads, guint window_pages, gboolean *ret_follower);
