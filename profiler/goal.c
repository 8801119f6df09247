// SPDX-License-Identifier: GPL-2.0-or-later
/* The goal of a boot: see goal.h. */
#include "profiler/goal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"

#define GOAL "default.target"
#define ASK_INTERVAL_US 1000000U
#define ASK_LIMIT_US 5000000U
#define ANSWER_MAX 64

struct Goal {
        gboolean reached;
        guint64 asked_us; /* when the last question was put */
        pid_t pid;        /* of the helper, 0 = none */
        int fd;           /* its output */
        gchar answer[ANSWER_MAX];
        gsize length;
};

Goal *
goal_new(void)
{
        struct stat st;
        Goal *goal;

        if (lstat("/run/systemd/system", &st) != 0 || !S_ISDIR(st.st_mode))
                return NULL;
        goal = g_new0(Goal, 1);
        goal->fd = -1;
        return goal;
}

static void
end_helper(Goal *goal, gboolean kill_it)
{
        if (goal->pid > 0) {
                if (kill_it)
                        kill(goal->pid, SIGKILL);
                while (waitpid(goal->pid, NULL, 0) < 0 && errno == EINTR)
                        ;
        }
        goal->pid = 0;
        goal->length = 0;
        fd_close(&goal->fd);
}

void
goal_free(Goal *goal)
{
        if (!goal)
                return;
        end_helper(goal, TRUE);
        g_free(goal);
}

/* FALSE when there is no systemctl. */
static gboolean
ask(Goal *goal)
{
        static char *const ARGV[] = {
                "systemctl", "show", "--property=ActiveState", "--value", "--quiet", GOAL, NULL};
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        sigset_t none;
        int out[2], failed;

        if (pipe2(out, O_CLOEXEC | O_NONBLOCK) != 0)
                return FALSE;
        sigemptyset(&none);
        posix_spawnattr_init(&attributes);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);
        posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDERR_FILENO);
        failed = posix_spawnp(&goal->pid, ARGV[0], &actions, &attributes, ARGV, environ);
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
        close(out[1]);
        goal->fd = out[0];
        if (failed) {
                goal->pid = 0;
                fd_close(&goal->fd);
        }
        return !failed;
}

/* TRUE when the helper has said all it had to say. */
static gboolean
read_answer(Goal *goal)
{
        ssize_t n;

        while ((n = read(goal->fd, goal->answer + goal->length, ANSWER_MAX - 1 - goal->length)) > 0)
                goal->length += (gsize)n;
        goal->answer[goal->length] = '\0';
        return n == 0 || errno != EAGAIN;
}

gboolean
goal_reached(Goal *goal, guint64 now_us, pid_t *ret_helper)
{
        *ret_helper = 0;
        if (goal->reached)
                return TRUE;
        if (goal->pid > 0) {
                if (read_answer(goal)) {
                        goal->reached = g_str_has_prefix(goal->answer, "active\n");
                        end_helper(goal, TRUE);
                } else if (now_us - goal->asked_us > ASK_LIMIT_US) {
                        end_helper(goal, TRUE);
                }
                return goal->reached;
        }
        if (now_us - goal->asked_us < ASK_INTERVAL_US)
                return FALSE;
        goal->asked_us = now_us;
        if (!ask(goal))
                goal->reached = TRUE;
        *ret_helper = goal->pid;
        return goal->reached;
}
