// SPDX-License-Identifier: GPL-2.0-or-later
/* Where a start ends: see end.h. */
#include "profiler/end.h"

static void
consider(StartEnd reason, guint64 when_us, StartEnd *end, guint64 *end_us)
{
        if (*end == START_GOES_ON || when_us < *end_us) {
                *end = reason;
                *end_us = when_us;
        }
}

/* The moment at which time alone ends the start; G_MAXUINT64 = none. */
static guint64
time_out(const StartEndRule *rule, const StartState *state, StartEnd *ret_reason)
{
        guint64 quiet_us = state->last_new_page_us + rule->quiet_us;

        if (rule->duration_us) {
                *ret_reason = START_ENDED_DURATION;
                return rule->duration_us;
        }
        *ret_reason = START_ENDED_LIMIT;
        if (rule->until_mark || quiet_us >= rule->limit_us)
                return rule->limit_us;
        *ret_reason = START_ENDED_QUIET;
        return quiet_us;
}

StartEnd
start_end_check(const StartEndRule *rule, const StartState *state, guint64 *ret_end_us)
{
        StartEnd end = START_GOES_ON, reason;
        guint64 end_us = 0;
        guint64 out_us = time_out(rule, state, &reason);

        if (state->exited)
                consider(START_ENDED_EXIT, state->exited_us, &end, &end_us);
        if (rule->until_mark && state->marked)
                consider(START_ENDED_MARK, state->marked_us, &end, &end_us);
        if (state->now_us >= out_us)
                consider(reason, out_us, &end, &end_us);
        if (end == START_GOES_ON)
                return end;
        /* A start that never read a page and is quiet ended at once; it still took some time. */
        if (end == START_ENDED_QUIET && state->last_new_page_us)
                end_us = state->last_new_page_us;
        *ret_end_us = end_us;
        return end;
}

guint64
start_end_wait_us(const StartEndRule *rule, const StartState *state)
{
        StartEnd reason;
        guint64 out_us = time_out(rule, state, &reason);

        return out_us > state->now_us ? out_us - state->now_us : 0;
}

const char *
start_end_name(StartEnd end)
{
        switch (end) {
        case START_GOES_ON: return "goes on";
        case START_ENDED_EXIT: return "exit";
        case START_ENDED_MARK: return "mark";
        case START_ENDED_DURATION: return "duration";
        case START_ENDED_QUIET: return "quiet";
        case START_ENDED_LIMIT: return "limit";
        }
        return "?";
}
