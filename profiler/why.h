// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Why threads were not on a CPU. Pure: fed with switches (tracefs) or whole spells (BPF), it gives
 * each its reason and keeps the longest; the others are summed by process and reason.
 *
 * A spell has two parts: until it was woken the thread waited for its reason, then for a CPU. The
 * reason comes from its state, whether that was I/O, its system call and what the descriptor of the
 * call leads to. Without the knowledge of I/O (tracefs tells the state alone) every uninterruptible
 * wait counts as disk, which takes waits for locks inside the kernel (the address space's, a
 * directory's) for the disk's.
 */
#pragma once

#include <glib.h>

#include "common/profile.h"
#include "profiler/collect.h"
#include "profiler/process.h"

#define WHY_WAITS_MAX 200000

typedef enum { WHY_IO_UNKNOWN, WHY_IO_NO, WHY_IO_YES } WhyIo;

typedef struct {
        gint32 tid;
        gint32 syscall;   /* -1 = a fault, or not known */
        guint64 start_ns; /* CLOCK_MONOTONIC, as all times */
        guint64 woken_ns; /* 0 = not seen */
        guint64 end_ns;
        guint64 arg0, arg1; /* of the system call */
        guint32 state;      /* the kernel's TASK_... bits, 0 = still runnable */
        guint32 mode, rdev; /* of the file of descriptor arg0, the kernel's encoding; 0 = unknown */
        WhyIo io;
} WhySpell;

/* The reason of the first part. */
ProfileWaitReason why_reason(const WhySpell *spell);

/* TRUE for system calls whose first argument is a descriptor that decides the reason. */
gboolean why_syscall_has_descriptor(gint32 syscall);
/* Those that may wait; -1 ends the list. */
const gint32 *why_syscalls(void);

typedef struct Why Why;

/* What the descriptor of a thread leads to; leaves both at 0 when that is not known. */
typedef void (*WhyLook)(gint32 tid, guint64 descriptor, guint32 *ret_mode, guint32 *ret_rdev);

/* `look` may be NULL. `limit` of waits kept one by one. */
Why *why_new(ProcessTable *processes, guint64 start_ns, guint limit, WhyLook look);
void why_free(Why *why);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Why, why_free)

/* A whole spell, in order of its end (small disorder does no harm). */
void why_add(Why *why, const WhySpell *spell);
/* Every event in order of time. */
void why_event(Why *why, const AccessEvent *event);
/* Spells that have not ended end now. */
void why_finish(Why *why, guint64 end_ns);

/* Appends to profile->waits in order of time. Sums have the thread id 0 and begin with the first of
 * what they sum. */
void why_fill(Why *why, Profile *profile);
