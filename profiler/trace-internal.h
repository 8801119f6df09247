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

enum {
        EVENT_ADD,
        EVENT_READ,
        EVENT_FAULT,
        EVENT_MAP,
        EVENT_EXEC,
        EVENT_PRINT,
        EVENT_SYNC_RA,
        EVENT_ASYNC_RA,
        EVENT_FORK,
        EVENT_NAME,
        EVENT_EXIT,
        EVENT_SWITCH, /* from here on only with reasons for waiting */
        EVENT_WAKE,
        EVENT_SYSCALL,
        N_EVENTS
};

#define MARK_PREFIX "headstart: "

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
        gchar *until;        /* the text of the print event that is waited for */
        gint32 own_tid;      /* not reported: us, when every process is recorded; else 0 */
        GArray *pending;     /* AccessEvent, sorted by time after each read */
        GStringChunk *texts; /* of events */
        guint64 missed;
        guint64 on_ns; /* monotonic: since then every event is in our instance */
};

/* Events of threads: looks their fields up (FALSE: one that is needed is missing), fills first,
 * last and text of the access. A mark that is none of ours: FALSE. */
gboolean trace_task_fields(struct tep_event *parsed, Event *event);
void trace_task_decode(Trace *trace, const Event *event, const guint8 *record, int size,
                       AccessEvent *ret);
gboolean trace_mark_decode(Trace *trace, const Event *event, const guint8 *record, int size,
                           AccessEvent *ret);

/* Appends all that the CPU's buffer holds to trace->pending. */
void trace_read_cpu(Trace *trace, struct tracefs_cpu *cpu);
void trace_sort_pending(Trace *trace);
/* Events that the buffers of this instance had no room for. */
guint64 trace_lost_events(struct tracefs_instance *instance, guint n_cpus);
