// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Inside of a recording: record.c starts, watches and stops it; record-source.c chooses what the
 * kernel is asked and which settings are changed for it.
 */
#pragma once

#include "profiler/goal.h"
#include "profiler/record.h"
#include "profiler/trace.h"

typedef struct {
        const RecordOptions *options;
        RecordResult *result;
        Trace *trace; /* NULL for source "opens" */
        Opens *opens;
        WhyRecorder *why; /* NULL = no reasons asked for, no marks of access() */
        Goal *goal;       /* NULL = none, or reached */
        Collector *collector;
        GPtrArray *mounts;
        GHashTable *inode_readahead;
        GHashTable *outside; /* dev_t set: file systems that --root leaves out; NULL = none */
        GHashTable *inside;  /* and those it takes; NULL = all */
        guint64 last_new_us; /* since the start: of the last page used that had not been used */
        ProfileSource source;
        gboolean by_residency; /* source "opens": with mincore */
        gboolean by_faults;    /* exact through fault-around of one page, readahead stays */
        guint64 start_us;
        gint64 wall_ns;
        StartState state;
        guint64 end_us;
        guint64 goal_us; /* since the start; 0 = not reached */
        guint64 cpu_us;
        guint64 lost;
        guint batch_events;
} Recording;

void record_note(const Recording *rec, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Sets up the best source that works here and says once what is missing. */
gboolean record_choose_source(Recording *rec, GError **error);
/* Turns the kernel's readahead down as far as source and options ask for it. */
gboolean record_change_settings(Recording *rec, GError **error);
/* Which file systems lie outside of options->root. */
void record_find_outside(Recording *rec);
/* How, for people: "events of used pages, readahead off". */
const char *record_method(const Recording *rec);
gboolean record_kernel_at_least(int major_number, int minor_number);
