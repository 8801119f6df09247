// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whether the boot has reached its goal: systemd's default.target is active.
 *
 * Asked through systemctl in a process of its own at most once a second, which is never waited for
 * and ended when it hangs: nothing of the boot depends on the answer. Where systemd does not run
 * there is no goal.
 */
#pragma once

#include <glib.h>
#include <sys/types.h>

typedef struct Goal Goal;

/* NULL when systemd is not the init system. */
Goal *goal_new(void);
void goal_free(Goal *goal);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Goal, goal_free)

/* TRUE once it has been reached, or when it cannot be asked for. Never blocks. *ret_helper is the
 * process that was started meanwhile, 0 = none. */
gboolean goal_reached(Goal *goal, guint64 now_us, pid_t *ret_helper);
