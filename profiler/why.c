// SPDX-License-Identifier: GPL-2.0-or-later
/* Reasons for waiting: see why.h. */
#include "profiler/why.h"

#include <linux/major.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* The kernel's; in the trace since 4.14, unchanged since. */
#define STATE_UNINTERRUPTIBLE 0x2U
#define STATE_NOLOAD 0x400U /* with the former: idle */
#define STATE_DEAD 0x80U
#define STATE_ZOMBIE 0x30U
#define STATE_PREEMPTED 0x100U /* only in the trace: above all states that it reports */

#define UNIX98_PTY_MAJORS 8
#define SHORT_US 10U /* shorter ones are summed at once */
#define N_REASONS (PROFILE_WAIT_OTHER + 1)

typedef enum { ARG_NONE, ARG_DESCRIPTOR, ARG_POLL, ARG_SELECT } Argument;

typedef struct {
        gint32 number;
        ProfileWaitReason reason; /* of an interruptible wait, when the argument does not tell */
        Argument argument;
} Call;

static const Call CALLS[] = {
        {SYS_futex, PROFILE_WAIT_LOCK},
#ifdef SYS_futex_waitv
        {SYS_futex_waitv, PROFILE_WAIT_LOCK},
#endif
        {SYS_flock, PROFILE_WAIT_LOCK},
        {SYS_fcntl, PROFILE_WAIT_LOCK},
        {SYS_semop, PROFILE_WAIT_LOCK},
        {SYS_semtimedop, PROFILE_WAIT_LOCK},
        {SYS_nanosleep, PROFILE_WAIT_SLEEP},
        {SYS_clock_nanosleep, PROFILE_WAIT_SLEEP},
        {SYS_wait4, PROFILE_WAIT_CHILD},
        {SYS_waitid, PROFILE_WAIT_CHILD},
        {SYS_clone, PROFILE_WAIT_CHILD},
#ifdef SYS_clone3
        {SYS_clone3, PROFILE_WAIT_CHILD},
#endif
#ifdef SYS_vfork
        {SYS_vfork, PROFILE_WAIT_CHILD},
#endif
#ifdef SYS_poll
        {SYS_poll, PROFILE_WAIT_PIPE, ARG_POLL},
        {SYS_select, PROFILE_WAIT_PIPE, ARG_SELECT},
        {SYS_epoll_wait, PROFILE_WAIT_PIPE},
        {SYS_pause, PROFILE_WAIT_OTHER},
        {SYS_open, PROFILE_WAIT_OTHER},
#endif
        {SYS_ppoll, PROFILE_WAIT_PIPE, ARG_POLL},
        {SYS_pselect6, PROFILE_WAIT_PIPE, ARG_SELECT},
        {SYS_epoll_pwait, PROFILE_WAIT_PIPE},
#ifdef SYS_epoll_pwait2
        {SYS_epoll_pwait2, PROFILE_WAIT_PIPE},
#endif
        {SYS_recvfrom, PROFILE_WAIT_PIPE},
        {SYS_recvmsg, PROFILE_WAIT_PIPE},
        {SYS_recvmmsg, PROFILE_WAIT_PIPE},
        {SYS_sendto, PROFILE_WAIT_PIPE},
        {SYS_sendmsg, PROFILE_WAIT_PIPE},
        {SYS_accept, PROFILE_WAIT_PIPE},
        {SYS_accept4, PROFILE_WAIT_PIPE},
        {SYS_connect, PROFILE_WAIT_PIPE},
        {SYS_msgrcv, PROFILE_WAIT_PIPE},
        {SYS_msgsnd, PROFILE_WAIT_PIPE},
        {SYS_read, PROFILE_WAIT_OTHER, ARG_DESCRIPTOR},
        {SYS_write, PROFILE_WAIT_OTHER, ARG_DESCRIPTOR},
        {SYS_readv, PROFILE_WAIT_OTHER, ARG_DESCRIPTOR},
        {SYS_writev, PROFILE_WAIT_OTHER, ARG_DESCRIPTOR},
        {SYS_sendfile, PROFILE_WAIT_OTHER, ARG_DESCRIPTOR},
        {SYS_splice, PROFILE_WAIT_OTHER, ARG_DESCRIPTOR},
        {SYS_tee, PROFILE_WAIT_PIPE},
        {SYS_ioctl, PROFILE_WAIT_OTHER, ARG_DESCRIPTOR},
        {SYS_openat, PROFILE_WAIT_OTHER},
        {SYS_rt_sigsuspend, PROFILE_WAIT_OTHER},
        {SYS_rt_sigtimedwait, PROFILE_WAIT_OTHER},
        {SYS_fsync, PROFILE_WAIT_DISK},
        {SYS_fdatasync, PROFILE_WAIT_DISK},
        {SYS_sync, PROFILE_WAIT_DISK},
        {SYS_syncfs, PROFILE_WAIT_DISK},
        {SYS_msync, PROFILE_WAIT_DISK},
        {SYS_io_getevents, PROFILE_WAIT_DISK},
#ifdef SYS_io_uring_enter
        {SYS_io_uring_enter, PROFILE_WAIT_DISK},
#endif
};

typedef struct {
        WhySpell off; /* start_ns 0 = on the CPU */
        gint32 syscall;
        guint64 arg0;
} Thread;

typedef struct {
        guint64 length_us, first_us;
} Sum;

struct Why {
        ProcessTable *processes;
        guint64 start_ns;
        guint limit;
        WhyLook look;
        GArray *threads; /* Thread, by the table's index; of switches */
        GArray *waits;   /* ProfileWait */
        GArray *sums;    /* Sum, [process number * N_REASONS + reason] */
};

static const Call *
find_call(gint32 number)
{
        for (guint i = 0; number >= 0 && i < G_N_ELEMENTS(CALLS); i++)
                if (CALLS[i].number == number)
                        return &CALLS[i];
        return NULL;
}

gboolean
why_syscall_has_descriptor(gint32 number)
{
        const Call *call = find_call(number);

        return call && call->argument == ARG_DESCRIPTOR;
}

const gint32 *
why_syscalls(void)
{
        static gint32 numbers[G_N_ELEMENTS(CALLS) + 1];

        for (guint i = 0; i < G_N_ELEMENTS(CALLS); i++)
                numbers[i] = CALLS[i].number;
        numbers[G_N_ELEMENTS(CALLS)] = -1;
        return numbers;
}

static gboolean
is_terminal(guint32 mode, guint32 rdev)
{
        guint32 number = rdev >> 20; /* the kernel's encoding */

        return S_ISCHR(mode) && (number == TTY_MAJOR || number == TTYAUX_MAJOR ||
                                 number == 166 /* ttyACM */ || number == 188 /* ttyUSB */ ||
                                 number == 204 /* ttyAMA and kin */ || number == 229 /* hvc */ ||
                                 (number >= UNIX98_PTY_MASTER_MAJOR &&
                                  number < UNIX98_PTY_SLAVE_MAJOR + UNIX98_PTY_MAJORS));
}

static ProfileWaitReason
descriptor_reason(const WhySpell *spell, ProfileWaitReason otherwise)
{
        if (S_ISFIFO(spell->mode) || S_ISSOCK(spell->mode))
                return PROFILE_WAIT_PIPE;
        if (is_terminal(spell->mode, spell->rdev))
                return PROFILE_WAIT_TERMINAL;
        if (S_ISREG(spell->mode) || S_ISBLK(spell->mode) || S_ISDIR(spell->mode))
                return PROFILE_WAIT_DISK;
        return otherwise;
}

ProfileWaitReason
why_reason(const WhySpell *spell)
{
        const Call *call = find_call(spell->syscall);

        if (spell->state == 0)
                return PROFILE_WAIT_RUNNABLE;
        if (spell->io == WHY_IO_YES)
                return PROFILE_WAIT_DISK;
        if ((spell->state & STATE_UNINTERRUPTIBLE) && !(spell->state & STATE_NOLOAD)) {
                if (call &&
                    (call->reason == PROFILE_WAIT_CHILD || call->reason == PROFILE_WAIT_DISK))
                        return call->reason;
                return spell->io == WHY_IO_NO ? PROFILE_WAIT_LOCK : PROFILE_WAIT_DISK;
        }
        if (!call)
                return PROFILE_WAIT_OTHER;
        switch (call->argument) {
        case ARG_DESCRIPTOR: return descriptor_reason(spell, call->reason);
        case ARG_POLL: return spell->arg1 ? call->reason : PROFILE_WAIT_SLEEP;
        case ARG_SELECT: return spell->arg0 ? call->reason : PROFILE_WAIT_SLEEP;
        default: return call->reason;
        }
}

Why *
why_new(ProcessTable *processes, guint64 start_ns, guint limit, WhyLook look)
{
        Why *why = g_new0(Why, 1);

        why->processes = processes;
        why->start_ns = start_ns;
        why->limit = limit;
        why->look = look;
        why->threads = g_array_new(FALSE, TRUE, sizeof(Thread));
        why->waits = g_array_new(FALSE, FALSE, sizeof(ProfileWait));
        why->sums = g_array_new(FALSE, TRUE, sizeof(Sum));
        return why;
}

void
why_free(Why *why)
{
        if (!why)
                return;
        g_array_unref(why->threads);
        g_array_unref(why->waits);
        g_array_unref(why->sums);
        g_free(why);
}

static void
add_sum(Why *why, const ProfileWait *wait)
{
        guint index = wait->process * N_REASONS + wait->reason;
        Sum *sum;

        if (index >= why->sums->len)
                g_array_set_size(why->sums, index + N_REASONS);
        sum = &g_array_index(why->sums, Sum, index);
        sum->first_us = sum->length_us ? MIN(sum->first_us, wait->start_us) : wait->start_us;
        sum->length_us += wait->length_us;
}

static gint
longest_first(gconstpointer a, gconstpointer b)
{
        const ProfileWait *x = a, *y = b;

        return (x->length_us < y->length_us) - (x->length_us > y->length_us);
}

static void
sum_shortest(Why *why)
{
        g_array_sort(why->waits, longest_first);
        for (guint i = why->limit; i < why->waits->len; i++)
                add_sum(why, &g_array_index(why->waits, ProfileWait, i));
        g_array_set_size(why->waits, MIN(why->limit, why->waits->len));
}

static void
add_wait(Why *why, const WhySpell *spell, guint64 from_ns, guint64 to_ns, ProfileWaitReason reason)
{
        guint32 thread = process_table_find(why->processes, spell->tid);
        ProfileWait wait = {
                .tid = spell->tid,
                .reason = (guint16)reason,
                .syscall = (gint16)CLAMP(spell->syscall, -1, G_MAXINT16),
                .start_us = (MAX(from_ns, why->start_ns) - why->start_ns) / 1000,
        };

        if (to_ns <= MAX(from_ns, why->start_ns))
                return;
        if (thread != G_MAXUINT32)
                wait.process = process_table_process(why->processes, thread);
        wait.length_us = (to_ns - why->start_ns) / 1000 - wait.start_us;
        if (wait.length_us < SHORT_US) {
                add_sum(why, &wait);
                return;
        }
        g_array_append_val(why->waits, wait);
        if (why->waits->len >= 2 * why->limit)
                sum_shortest(why);
}

void
why_add(Why *why, const WhySpell *spell)
{
        ProfileWaitReason reason = why_reason(spell);
        guint64 woken_ns = spell->woken_ns >= spell->start_ns && spell->woken_ns <= spell->end_ns
                                   ? spell->woken_ns
                                   : spell->end_ns;

        if (reason == PROFILE_WAIT_RUNNABLE)
                woken_ns = spell->start_ns;
        add_wait(why, spell, spell->start_ns, woken_ns, reason);
        add_wait(why, spell, woken_ns, spell->end_ns, PROFILE_WAIT_RUNNABLE);
}

/* NULL for threads that are not recorded: the other side of a switch. */
static Thread *
find_thread(Why *why, gint32 tid)
{
        guint32 thread = tid > 0 ? process_table_find(why->processes, tid) : G_MAXUINT32;

        if (thread == G_MAXUINT32)
                return NULL;
        while (thread >= why->threads->len) {
                Thread fresh = {.syscall = -1};

                g_array_append_val(why->threads, fresh);
        }
        return &g_array_index(why->threads, Thread, thread);
}

static void
leave_cpu(Why *why, Thread *thread, const AccessEvent *event)
{
        if (event->first & (STATE_DEAD | STATE_ZOMBIE)) {
                thread->off.start_ns = 0;
                return;
        }
        thread->off = (WhySpell){.tid = event->tid,
                                 .start_ns = event->time_ns,
                                 .state = (guint32)event->first & 0xffU,
                                 .syscall = thread->syscall,
                                 .arg0 = thread->arg0,
                                 /* of poll: no descriptors is a null pointer, as a rule */
                                 .arg1 = thread->arg0 != 0};
        if (event->first & STATE_PREEMPTED)
                thread->off.state = 0;
        /* Asked now: while it waits the descriptor is open. */
        if (thread->off.state && why->look && why_syscall_has_descriptor(thread->syscall))
                why->look(event->tid, thread->arg0, &thread->off.mode, &thread->off.rdev);
}

static void
arrive(Why *why, Thread *thread, guint64 time_ns)
{
        if (!thread->off.start_ns || thread->off.start_ns >= time_ns)
                return;
        thread->off.end_ns = time_ns;
        why_add(why, &thread->off);
        thread->off.start_ns = 0;
}

void
why_event(Why *why, const AccessEvent *event)
{
        Thread *thread = find_thread(why, event->tid);

        /* Whoever makes an event runs. The kernel's filter by process lets a switch to a thread
         * pass unseen now and then (measured, after a wake-up on another CPU). */
        if (thread)
                arrive(why, thread, event->time_ns);
        switch (event->kind) {
        case ACCESS_SWITCH:
                if (thread)
                        leave_cpu(why, thread, event);
                if ((thread = find_thread(why, (gint32)event->last)))
                        arrive(why, thread, event->time_ns);
                break;
        case ACCESS_WAKE:
                thread = find_thread(why, (gint32)event->first);
                if (thread && thread->off.start_ns && !thread->off.woken_ns)
                        thread->off.woken_ns = event->time_ns;
                break;
        case ACCESS_SYSCALL:
                if (thread) {
                        thread->syscall = (gint32)event->first;
                        thread->arg0 = event->last;
                }
                break;
        default: break;
        }
}

void
why_finish(Why *why, guint64 end_ns)
{
        for (guint i = 0; i < why->threads->len; i++) {
                Thread *thread = &g_array_index(why->threads, Thread, i);

                if (!thread->off.start_ns)
                        continue;
                thread->off.end_ns = end_ns;
                why_add(why, &thread->off);
                thread->off.start_ns = 0;
        }
}

static gint
earliest_first(gconstpointer a, gconstpointer b)
{
        const ProfileWait *x = a, *y = b;

        if (x->start_us != y->start_us)
                return x->start_us < y->start_us ? -1 : 1;
        return x->tid < y->tid ? -1 : x->tid > y->tid;
}

void
why_fill(Why *why, Profile *profile)
{
        if (why->waits->len > why->limit)
                sum_shortest(why);
        if (why->waits->len)
                g_array_append_vals(profile->waits, why->waits->data, why->waits->len);
        for (guint i = 0; i < why->sums->len; i++) {
                const Sum *sum = &g_array_index(why->sums, Sum, i);
                ProfileWait wait = {.process = i / N_REASONS,
                                    .reason = (guint16)(i % N_REASONS),
                                    .syscall = -1,
                                    .start_us = sum->first_us,
                                    .length_us = sum->length_us};

                if (sum->length_us)
                        g_array_append_val(profile->waits, wait);
        }
        g_array_sort(profile->waits, earliest_first);
}
