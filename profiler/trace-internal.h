// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Inside of the trace: trace.c sets the instance up and reads it, trace-early.c reads what a
 * tracing instance of the kernel command line holds.
 */
#pragma once

#include <kbuffer.h>
#include <tracefs.h>

#include "profiler/trace.h"

typedef struct {
        int offset;
        int size; /* 0 = the kernel's event has no such field */
} Field;

typedef struct {
        const char *system, *name;
        AccessKind kind;
        gboolean present;
        int id;
        Field inode, dev, first, last, order, text;
} Event;

enum { EVENT_ADD, EVENT_READ, EVENT_FAULT, EVENT_MAP, EVENT_EXEC, EVENT_PRINT, N_EVENTS };

struct Trace {
        struct tracefs_instance *instance;
        struct tep_handle *tep;
        struct kbuffer *kbuffer;
        struct tracefs_cpu **cpus;
        guint n_cpus;
        void *page;
        Event events[N_EVENTS];
        Field type, tid;
        gchar *missing;
        gchar *until;    /* the text of the print event that is waited for */
        gint32 own_tid;  /* not reported: us, when every process is recorded; else 0 */
        GArray *pending; /* AccessEvent, sorted by time after each read */
        guint64 missed;
        guint64 on_ns; /* monotonic: since then every event is in our instance */
};

/* Appends all that the CPU's buffer holds to trace->pending. */
void trace_read_cpu(Trace *trace, struct tracefs_cpu *cpu);
void trace_sort_pending(Trace *trace);
/* Events that the buffers of this instance had no room for. */
guint64 trace_lost_events(struct tracefs_instance *instance, guint n_cpus);
