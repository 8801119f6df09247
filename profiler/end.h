// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where a start ends: one rule for record, run, bench, the watcher and scoring. Pure.
 *
 * A start ends when the command exits; after the duration that was asked for; at the mark that was
 * asked for; or when `quiet_us` pass without a new page, `limit_us` at most. Who names a duration
 * or a mark says when the start ends: then a quiet spell does not end it (a mark is waited for up
 * to the duration, or to the limit when there is none).
 *
 * The quiet spell itself is no part of the start: it then ended with its last new page.
 */
#pragma once

#include <glib.h>

#define START_QUIET_US_DEFAULT (2 * G_USEC_PER_SEC)
#define START_LIMIT_US_DEFAULT (60 * G_USEC_PER_SEC)

typedef struct {
        guint64 duration_us; /* 0 = none given */
        gboolean until_mark; /* a mark was asked for */
        guint64 quiet_us;
        guint64 limit_us;
} StartEndRule;

/* Times are microseconds since the start. */
typedef struct {
        guint64 now_us;
        guint64 last_new_page_us; /* 0 = none yet */
        gboolean exited;
        guint64 exited_us;
        gboolean marked;
        guint64 marked_us;
} StartState;

typedef enum {
        START_GOES_ON,
        START_ENDED_EXIT,
        START_ENDED_MARK,
        START_ENDED_DURATION,
        START_ENDED_QUIET,
        START_ENDED_LIMIT,
} StartEnd;

/* Of several reasons the earliest. *ret_end_us is set unless the start goes on. */
StartEnd start_end_check(const StartEndRule *rule, const StartState *state, guint64 *ret_end_us);

/* Microseconds from now until the answer can change by the passing of time alone. */
guint64 start_end_wait_us(const StartEndRule *rule, const StartState *state);

const char *start_end_name(StartEnd end);
