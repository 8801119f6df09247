// SPDX-License-Identifier: GPL-2.0-or-later
/* Where a start ends: the one rule. Times in seconds below. */
#include "profiler/end.h"

#define S(x) ((guint64)((x)*G_USEC_PER_SEC))

static const StartEndRule PLAIN = {.quiet_us = START_QUIET_US_DEFAULT,
                                   .limit_us = START_LIMIT_US_DEFAULT};

static void
check(const StartEndRule *rule, StartState state, StartEnd expected, guint64 expected_us)
{
        guint64 end_us = 12345;

        g_assert_cmpint(start_end_check(rule, &state, &end_us), ==, expected);
        g_assert_cmpuint(end_us, ==, expected == START_GOES_ON ? 12345 : expected_us);
}

static void
test_quiet(void)
{
        check(&PLAIN, (StartState){.now_us = S(1.9)}, START_GOES_ON, 0);
        check(&PLAIN, (StartState){.now_us = S(3), .last_new_page_us = S(1.1)}, START_GOES_ON, 0);
        /* the start ended with its last new page */
        check(&PLAIN, (StartState){.now_us = S(3.1), .last_new_page_us = S(1.1)}, START_ENDED_QUIET,
              S(1.1));
        /* no page at all */
        check(&PLAIN, (StartState){.now_us = S(2)}, START_ENDED_QUIET, S(2));
}

static void
test_limit(void)
{
        check(&PLAIN, (StartState){.now_us = S(59.9), .last_new_page_us = S(59)}, START_GOES_ON, 0);
        check(&PLAIN, (StartState){.now_us = S(60.1), .last_new_page_us = S(60)}, START_ENDED_LIMIT,
              S(60));
        /* looked at late: quiet had come first */
        check(&PLAIN, (StartState){.now_us = S(90), .last_new_page_us = S(10)}, START_ENDED_QUIET,
              S(10));
}

static void
test_exit(void)
{
        check(&PLAIN, (StartState){.now_us = S(1), .exited = TRUE, .exited_us = S(0.5)},
              START_ENDED_EXIT, S(0.5));
        /* of two reasons the earlier */
        check(&PLAIN,
              (StartState){
                      .now_us = S(9), .last_new_page_us = S(1), .exited = TRUE, .exited_us = S(8)},
              START_ENDED_QUIET, S(1));
        check(&PLAIN,
              (StartState){
                      .now_us = S(9), .last_new_page_us = S(1), .exited = TRUE, .exited_us = S(2)},
              START_ENDED_EXIT, S(2));
}

static void
test_duration(void)
{
        StartEndRule rule = PLAIN;

        rule.duration_us = S(5);
        check(&rule, (StartState){.now_us = S(4.9), .last_new_page_us = S(0.1)}, START_GOES_ON, 0);
        check(&rule, (StartState){.now_us = S(5.2), .last_new_page_us = S(0.1)},
              START_ENDED_DURATION, S(5));
        check(&rule, (StartState){.now_us = S(5.2), .exited = TRUE, .exited_us = S(3)},
              START_ENDED_EXIT, S(3));
        rule.duration_us = S(100);
        check(&rule, (StartState){.now_us = S(61), .last_new_page_us = S(1)}, START_GOES_ON, 0);
}

static void
test_mark(void)
{
        StartEndRule rule = PLAIN;
        StartState marked = {.now_us = S(8), .marked = TRUE, .marked_us = S(7)};

        rule.until_mark = TRUE;
        check(&rule, (StartState){.now_us = S(7)}, START_GOES_ON, 0);
        check(&rule, marked, START_ENDED_MARK, S(7));
        check(&rule, (StartState){.now_us = S(60)}, START_ENDED_LIMIT, S(60));
        rule.duration_us = S(3);
        check(&rule, (StartState){.now_us = S(3)}, START_ENDED_DURATION, S(3));
        /* nobody waits for a mark */
        marked.now_us = S(1);
        marked.marked_us = S(0.5);
        check(&PLAIN, marked, START_GOES_ON, 0);
}

static void
test_wait(void)
{
        StartState state = {.now_us = S(1.5), .last_new_page_us = S(1)};
        StartEndRule rule = PLAIN;

        g_assert_cmpuint(start_end_wait_us(&PLAIN, &state), ==, S(1.5));
        rule.duration_us = S(1);
        g_assert_cmpuint(start_end_wait_us(&rule, &state), ==, 0);
        state.last_new_page_us = S(59.5);
        state.now_us = S(59.6);
        g_assert_cmpuint(start_end_wait_us(&PLAIN, &state), ==, S(60) - S(59.6));
}

int
main(int argc, char **argv)
{
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/start-end/quiet", test_quiet);
        g_test_add_func("/start-end/limit", test_limit);
        g_test_add_func("/start-end/exit", test_exit);
        g_test_add_func("/start-end/duration", test_duration);
        g_test_add_func("/start-end/mark", test_mark);
        g_test_add_func("/start-end/wait", test_wait);
        return g_test_run();
}
