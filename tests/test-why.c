// SPDX-License-Identifier: GPL-2.0-or-later
/* Reasons for waiting from state, system call and descriptor; what is kept and what is summed; who
 * is whose child. */
#include <sys/stat.h>
#include <sys/syscall.h>

#include "profiler/process.h"
#include "profiler/why.h"

#define S 1U
#define D 2U
#define PTS ((136U << 20) | 3)

static void
test_reasons(void)
{
        static const struct {
                WhySpell spell;
                ProfileWaitReason reason;
        } CASES[] = {
                {{.state = 0, .syscall = SYS_read}, PROFILE_WAIT_RUNNABLE},
                {{.state = D, .syscall = -1}, PROFILE_WAIT_DISK},
                {{.state = D, .syscall = SYS_read, .io = WHY_IO_YES}, PROFILE_WAIT_DISK},
                {{.state = D, .syscall = SYS_mmap, .io = WHY_IO_NO}, PROFILE_WAIT_LOCK},
                {{.state = D, .syscall = SYS_fsync, .io = WHY_IO_NO}, PROFILE_WAIT_DISK},
                {{.state = D, .syscall = SYS_clone, .io = WHY_IO_NO}, PROFILE_WAIT_CHILD},
                {{.state = S, .syscall = SYS_futex}, PROFILE_WAIT_LOCK},
                {{.state = S, .syscall = SYS_clock_nanosleep}, PROFILE_WAIT_SLEEP},
                {{.state = S, .syscall = SYS_wait4}, PROFILE_WAIT_CHILD},
                {{.state = S, .syscall = SYS_ppoll, .arg1 = 3}, PROFILE_WAIT_PIPE},
                {{.state = S, .syscall = SYS_ppoll, .arg1 = 0}, PROFILE_WAIT_SLEEP},
                {{.state = S, .syscall = SYS_recvmsg}, PROFILE_WAIT_PIPE},
                {{.state = S, .syscall = SYS_read, .mode = S_IFIFO}, PROFILE_WAIT_PIPE},
                {{.state = S, .syscall = SYS_read, .mode = S_IFSOCK}, PROFILE_WAIT_PIPE},
                {{.state = S, .syscall = SYS_write, .mode = S_IFCHR, .rdev = PTS},
                 PROFILE_WAIT_TERMINAL},
                {{.state = S, .syscall = SYS_write, .mode = S_IFCHR, .rdev = 1U << 20 | 3},
                 PROFILE_WAIT_OTHER},
                {{.state = S, .syscall = SYS_read}, PROFILE_WAIT_OTHER},
                {{.state = S, .syscall = -1}, PROFILE_WAIT_OTHER},
        };

        for (guint i = 0; i < G_N_ELEMENTS(CASES); i++) {
                g_test_message("case %u", i);
                g_assert_cmpint(why_reason(&CASES[i].spell), ==, CASES[i].reason);
        }
}

static guint64
sum_us(const Profile *profile, ProfileWaitReason reason)
{
        guint64 sum = 0;

        for (guint i = 0; i < profile->waits->len; i++) {
                const ProfileWait *wait = &g_array_index(profile->waits, ProfileWait, i);

                if (wait->reason == reason)
                        sum += wait->length_us;
        }
        return sum;
}

static void
test_limit(void)
{
        g_autoptr(ProcessTable) table = process_table_new();
        g_autoptr(Why) why = why_new(table, 0, 100, NULL);
        g_autoptr(Profile) profile = profile_new("x");
        guint64 expected_us = 0, shortest_us = G_MAXUINT64;

        process_table_fork(table, 0, 1, 7, FALSE, "x");
        for (guint i = 0; i < 5000; i++) {
                guint64 length_us = 20 + i * 7919 % 5000;
                WhySpell spell = {.tid = 7,
                                  .syscall = SYS_futex,
                                  .state = S,
                                  .start_ns = 1000 + (guint64)i * 10000000,
                                  .end_ns = 1000 + (guint64)i * 10000000 + length_us * 1000};

                expected_us += length_us;
                why_add(why, &spell);
        }
        process_table_fill(table, profile);
        why_fill(why, profile);
        g_assert_cmpuint(profile->waits->len, ==, 101); /* the sum of the others is one more */
        g_assert_cmpuint(sum_us(profile, PROFILE_WAIT_LOCK), ==, expected_us);
        for (guint i = 0; i < profile->waits->len; i++) {
                const ProfileWait *wait = &g_array_index(profile->waits, ProfileWait, i);

                if (wait->tid)
                        shortest_us = MIN(shortest_us, wait->length_us);
        }
        g_assert_cmpuint(shortest_us, ==, 20 + 4900);
        g_assert_true(profile_validate(profile, NULL));
}

static void
event(Why *why, AccessKind kind, guint64 time_us, gint32 tid, guint64 first, guint64 last)
{
        AccessEvent e = {
                .kind = kind, .time_ns = time_us * 1000, .tid = tid, .first = first, .last = last};

        why_event(why, &e);
}

static void
test_switches(void)
{
        g_autoptr(ProcessTable) table = process_table_new();
        g_autoptr(Why) why = why_new(table, 0, 100, NULL);
        g_autoptr(Profile) profile = profile_new("x");

        process_table_fork(table, 0, 1, 7, FALSE, "x");
        event(why, ACCESS_SYSCALL, 100, 7, SYS_futex, 0);
        event(why, ACCESS_SWITCH, 200, 7, S, 0);
        event(why, ACCESS_WAKE, 1200, 0, 7, 0); /* 1,000 us lock, 300 us runnable */
        event(why, ACCESS_SWITCH, 1500, 0, 0, 7);
        event(why, ACCESS_SWITCH, 2000, 7, 0x100, 8); /* preempted */
        event(why, ACCESS_SWITCH, 2400, 8, 0, 7);
        event(why, ACCESS_SWITCH, 3000, 7, D, 0);
        event(why, ACCESS_READ, 3700, 7, 0, 0); /* the switch back was not seen */
        event(why, ACCESS_SYSCALL, 4000, 7, SYS_nanosleep, 0);
        event(why, ACCESS_SWITCH, 4100, 7, S, 0);
        why_finish(why, 9100 * 1000); /* sleeps on */
        process_table_fill(table, profile);
        why_fill(why, profile);
        g_assert_cmpuint(sum_us(profile, PROFILE_WAIT_LOCK), ==, 1000);
        g_assert_cmpuint(sum_us(profile, PROFILE_WAIT_RUNNABLE), ==, 700);
        g_assert_cmpuint(sum_us(profile, PROFILE_WAIT_DISK), ==, 700);
        g_assert_cmpuint(sum_us(profile, PROFILE_WAIT_SLEEP), ==, 5000);
}

static void
test_processes(void)
{
        g_autoptr(ProcessTable) table = process_table_new();
        g_autoptr(Profile) profile = profile_new("x");
        const ProfileProcess *p;

        process_table_seed(table, 10, 1, "shell", "/bin/sh");
        process_table_fork(table, 5, 10, 20, FALSE, "shell");
        process_table_fork(table, 6, 20, 21, TRUE, "shell"); /* a thread */
        process_table_name(table, 21, "worker");             /* is not the process's name */
        process_table_exec(table, 7, 20, "/bin/x");
        process_table_name(table, 20, "x");
        process_table_fork(table, 8, 21, 22, FALSE, "x"); /* by the thread */
        process_table_exit(table, 9, 21, FALSE);
        process_table_exit(table, 10, 22, TRUE);
        process_table_fork(table, 11, 10, 22, FALSE, "again"); /* the id again */
        g_assert_cmpuint(process_table_process(table, process_table_find(table, 21)), ==, 2);
        g_assert_cmpuint(process_table_process(table, process_table_find(table, 22)), ==, 4);
        g_assert_cmpuint(process_table_find(table, 99), ==, G_MAXUINT32);
        process_table_fill(table, profile);
        g_assert_cmpuint(profile->processes->len, ==, 4);
        p = (const ProfileProcess *)profile->processes->data;
        g_assert_cmpstr(p[1].comm, ==, "x");
        g_assert_cmpstr(p[1].executable, ==, "/bin/x");
        g_assert_cmpuint(p[1].parent, ==, 1);
        g_assert_cmpuint(p[1].exit_us, ==, 0);
        g_assert_cmpuint(p[2].parent, ==, 2);
        g_assert_cmpuint(p[2].exit_us, ==, 10);
        g_assert_cmpuint(p[3].parent, ==, 1);
        g_assert_true(profile_validate(profile, NULL));
}

int
main(int argc, char **argv)
{
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/why/reasons", test_reasons);
        g_test_add_func("/why/limit", test_limit);
        g_test_add_func("/why/switches", test_switches);
        g_test_add_func("/why/processes", test_processes);
        return g_test_run();
}
