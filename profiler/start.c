// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Starting a command. All that allocates happens before the fork: the child only makes system
 * calls, so that a parent with threads does no harm.
 */
#include "profiler/start.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/quote.h"

G_DEFINE_QUARK(headstart - start - error, start_error)

/* The user behind sudo. */
typedef struct {
        uid_t uid;
        gid_t gid;
        gid_t *groups;
        int n_groups;
} User;

guint64
start_now_us(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (guint64)now.tv_sec * 1000000U + (guint64)now.tv_nsec / 1000U;
}

static gboolean
parse_id(const char *text, guint32 *ret)
{
        guint64 value;

        if (!text || !g_ascii_string_to_unsigned(text, 10, 0, G_MAXUINT32 - 1, &value, NULL))
                return FALSE;
        *ret = (guint32)value;
        return TRUE;
}

/* The session a command of this user expects; what is set already (DISPLAY, WAYLAND_DISPLAY,
 * XAUTHORITY, DBUS_SESSION_BUS_ADDRESS) stays. */
static gchar **
user_environment(const struct passwd *pw)
{
        static const char *const SUDO[] = {"SUDO_UID", "SUDO_GID", "SUDO_USER", "SUDO_COMMAND"};
        gchar **env = g_get_environ();
        g_autofree gchar *runtime = g_strdup_printf("/run/user/%u", (unsigned)pw->pw_uid);
        g_autofree gchar *bus = g_strdup_printf("%s/bus", runtime);

        for (guint i = 0; i < G_N_ELEMENTS(SUDO); i++)
                env = g_environ_unsetenv(env, SUDO[i]);
        env = g_environ_setenv(env, "HOME", pw->pw_dir, TRUE);
        env = g_environ_setenv(env, "USER", pw->pw_name, TRUE);
        env = g_environ_setenv(env, "LOGNAME", pw->pw_name, TRUE);
        if (pw->pw_shell && *pw->pw_shell)
                env = g_environ_setenv(env, "SHELL", pw->pw_shell, TRUE);
        env = g_environ_unsetenv(env, "XDG_RUNTIME_DIR");
        if (g_file_test(runtime, G_FILE_TEST_IS_DIR))
                env = g_environ_setenv(env, "XDG_RUNTIME_DIR", runtime, TRUE);
        if (!g_environ_getenv(env, "DBUS_SESSION_BUS_ADDRESS") &&
            g_file_test(bus, G_FILE_TEST_EXISTS)) {
                g_autofree gchar *address = g_strdup_printf("unix:path=%s", bus);

                env = g_environ_setenv(env, "DBUS_SESSION_BUS_ADDRESS", address, TRUE);
        }
        return env;
}

/* FALSE without an error: there is nobody else to be. */
static gboolean
find_user(User *ret, gchar ***ret_env, GError **error)
{
        guint32 uid, gid;
        const struct passwd *pw;
        int n = 64;

        if (geteuid() != 0 || !parse_id(g_getenv("SUDO_UID"), &uid) || uid == 0)
                return FALSE;
        pw = getpwuid(uid);
        if (!pw) {
                g_set_error(error, START_ERROR, START_ERROR_FAILED,
                            "SUDO_UID names user %u, whom this system does not know", uid);
                return FALSE;
        }
        if (!parse_id(g_getenv("SUDO_GID"), &gid))
                gid = pw->pw_gid;
        ret->uid = uid;
        ret->gid = gid;
        ret->groups = g_new(gid_t, n);
        if (getgrouplist(pw->pw_name, gid, ret->groups, &n) < 0) {
                ret->groups = g_renew(gid_t, ret->groups, n);
                if (getgrouplist(pw->pw_name, gid, ret->groups, &n) < 0)
                        n = 0;
        }
        ret->n_groups = n;
        *ret_env = user_environment(pw);
        return TRUE;
}

static _Noreturn void
report_and_exit(int exec_fd, int errnum)
{
        ssize_t n = write(exec_fd, &errnum, sizeof errnum);

        (void)n;
        _exit(EXIT_FAILURE);
}

/* 0, or an errno. Only system calls: also made in a forked child. */
static int
become_user(const User *user)
{
        if (setgroups((size_t)user->n_groups, user->groups) != 0 ||
            setresgid(user->gid, user->gid, user->gid) != 0 ||
            setresuid(user->uid, user->uid, user->uid) != 0)
                return errno;
        return 0;
}

static _Noreturn void
child(char *const *argv, char *const *env, const User *user, const StartOptions *options,
      int release_fd, int exec_fd, const sigset_t *mask)
{
        char go;
        ssize_t n;

        while ((n = read(release_fd, &go, 1)) < 0 && errno == EINTR)
                ;
        /* The parent died or gave up before the start. */
        if (n != 1)
                _exit(EXIT_FAILURE);
        if (user) {
                int errnum = become_user(user);

                if (errnum != 0)
                        report_and_exit(exec_fd, -errnum);
        }
        if (options && options->stdout_to_stderr)
                dup2(STDERR_FILENO, STDOUT_FILENO);
        sigprocmask(SIG_SETMASK, mask, NULL);
        /* headstart ignores it, and an ignored signal stays so over an exec. */
        signal(SIGPIPE, SIG_DFL);
        execvpe(argv[0], argv, env);
        report_and_exit(exec_fd, errno);
}

static void
hold_signals(Started *s)
{
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGHUP);
        /* whatever else would end this process and leave settings changed, or is meant for the
         * command */
        sigaddset(&set, SIGQUIT);
        sigaddset(&set, SIGUSR1);
        sigaddset(&set, SIGUSR2);
        sigaddset(&set, SIGALRM);
        pthread_sigmask(SIG_BLOCK, &set, &s->old_mask);
        s->mask_saved = TRUE;
        s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

gboolean
start_nothing(Started *ret, GError **error)
{
        Started s = {.pid = -1, .pidfd = -1, .release_fd = -1, .exec_fd = -1, .signal_fd = -1};

        hold_signals(&s);
        if (s.signal_fd < 0) {
                g_set_error(error, START_ERROR, START_ERROR_FAILED, "cannot wait for signals: %s",
                            g_strerror(errno));
                start_clear(&s);
                return FALSE;
        }
        *ret = s;
        return TRUE;
}

gboolean
start_command(char *const *argv, const StartOptions *options, Started *ret, GError **error)
{
        g_auto(GStrv) env = NULL;
        g_autofree gid_t *groups = NULL;
        User user = {0};
        gboolean other_user = FALSE;
        int release[2] = {-1, -1}, report[2] = {-1, -1};
        Started s = {.pid = -1, .pidfd = -1, .release_fd = -1, .exec_fd = -1, .signal_fd = -1};

        if (!options || !options->keep_user) {
                GError *local = NULL;

                other_user = find_user(&user, &env, &local);
                groups = user.groups;
                if (local) {
                        g_propagate_error(error, local);
                        return FALSE;
                }
        }
        if (!env)
                env = g_get_environ();
        if (pipe2(release, O_CLOEXEC) != 0 || pipe2(report, O_CLOEXEC) != 0) {
                g_set_error(error, START_ERROR, START_ERROR_FAILED, "cannot make a pipe: %s",
                            g_strerror(errno));
                fd_close(&release[0]);
                fd_close(&release[1]);
                return FALSE;
        }

        hold_signals(&s);
        s.pid = fork();
        if (s.pid == 0) {
                close(release[1]);
                close(report[0]);
                child(argv, env, other_user ? &user : NULL, options, release[0], report[1],
                      &s.old_mask);
        }
        close(release[0]);
        close(report[1]);
        s.release_fd = release[1];
        s.exec_fd = report[0];
        if (s.pid > 0)
                s.pidfd = (int)syscall(SYS_pidfd_open, s.pid, 0);
        if (s.pid < 0 || s.pidfd < 0 || s.signal_fd < 0) {
                g_set_error(error, START_ERROR, START_ERROR_FAILED, "cannot start a process: %s",
                            g_strerror(errno));
                start_clear(&s);
                return FALSE;
        }
        s.command = g_strdup(argv[0]);
        *ret = s;
        return TRUE;
}

void
start_release(Started *s)
{
        ssize_t n = write(s->release_fd, "", 1);

        (void)n;
        fd_close(&s->release_fd);
}

static void
reap(Started *s)
{
        pid_t pid;

        if (s->exited)
                return;
        while ((pid = wait4(s->pid, &s->wait_status, 0, &s->usage)) < 0 && errno == EINTR)
                ;
        s->exited = TRUE;
        s->exited_us = start_now_us();
}

/* errnum < 0: the user could not be changed. */
static void
set_exec_error(GError **error, const char *name, int errnum)
{
        g_autofree gchar *command = path_quote(name);

        if (errnum < 0)
                g_set_error(error, START_ERROR, START_ERROR_FAILED,
                            "cannot become the invoking user: %s", g_strerror(-errnum));
        else if (errnum == ENOENT || errnum == ENOTDIR)
                g_set_error(error, START_ERROR, START_ERROR_NOT_FOUND, "%s: command not found",
                            command);
        else
                g_set_error(error, START_ERROR, START_ERROR_NOT_EXECUTABLE, "cannot execute %s: %s",
                            command, g_strerror(errnum));
}

gboolean
start_exec_result(Started *s, GError **error)
{
        int errnum = 0;
        ssize_t n;

        while ((n = read(s->exec_fd, &errnum, sizeof errnum)) < 0 && errno == EINTR)
                ;
        fd_close(&s->exec_fd);
        s->exec_us = start_now_us();
        if (n == 0)
                return TRUE;
        reap(s);
        set_exec_error(error, s->command, errnum);
        return FALSE;
}

static void
pass_signals_on(Started *s)
{
        struct signalfd_siginfo info;

        while (read(s->signal_fd, &info, sizeof info) == sizeof info) {
                s->interrupted = (int)info.ssi_signo;
                if (s->pidfd < 0)
                        continue;
                /* What the terminal sends goes to the whole foreground group, the command too. */
                if (info.ssi_code != SI_KERNEL)
                        syscall(SYS_pidfd_send_signal, s->pidfd, (int)info.ssi_signo, NULL, 0);
        }
}

gboolean
start_wait(Started *s, int timeout_ms)
{
        struct pollfd fds[] = {
                {.fd = s->pidfd, .events = POLLIN},
                {.fd = s->signal_fd, .events = POLLIN},
        };

        if (s->exited)
                return TRUE;
        if (poll(fds, G_N_ELEMENTS(fds), timeout_ms) <= 0)
                return FALSE;
        if (fds[1].revents)
                pass_signals_on(s);
        if (fds[0].revents)
                reap(s);
        return s->exited;
}

int
start_exit_status(const Started *s)
{
        if (WIFSIGNALED(s->wait_status))
                return 128 + WTERMSIG(s->wait_status);
        return WEXITSTATUS(s->wait_status);
}

static guint64
timeval_us(struct timeval time)
{
        return (guint64)time.tv_sec * 1000000U + (guint64)time.tv_usec;
}

guint64
start_cpu_us(const Started *s)
{
        g_autofree gchar *path = NULL, *text = NULL;
        unsigned long long user, system, children_user, children_system;
        const gchar *after_name;
        long ticks = sysconf(_SC_CLK_TCK);

        if (s->exited)
                return timeval_us(s->usage.ru_utime) + timeval_us(s->usage.ru_stime);
        path = g_strdup_printf("/proc/%d/stat", (int)s->pid);
        /* The name may hold spaces and brackets; the last bracket ends it. */
        if (!g_file_get_contents(path, &text, NULL, NULL) || !(after_name = strrchr(text, ')')) ||
            ticks <= 0 ||
            sscanf(after_name + 1,
                   " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu", &user,
                   &system, &children_user, &children_system) != 4)
                return 0;
        return (user + system + children_user + children_system) * 1000000U / (guint64)ticks;
}

void
start_clear(Started *s)
{
        gboolean held = s->release_fd >= 0;

        fd_close(&s->release_fd);
        /* Closing the pipe makes a command that was never released go away by itself. */
        if (held && s->pid > 0)
                reap(s);
        if (s->signal_fd >= 0)
                pass_signals_on(s);
        fd_close(&s->exec_fd);
        fd_close(&s->pidfd);
        fd_close(&s->signal_fd);
        if (s->mask_saved)
                pthread_sigmask(SIG_SETMASK, &s->old_mask, NULL);
        s->mask_saved = FALSE;
        g_clear_pointer(&s->command, g_free);
}

void
start_replace(char *const *argv, const StartOptions *options, GError **error)
{
        g_auto(GStrv) env = NULL;
        User user = {0};
        GError *local = NULL;
        int errnum;

        if ((!options || !options->keep_user) && find_user(&user, &env, &local)) {
                errnum = become_user(&user);
                if (errnum != 0) {
                        set_exec_error(error, argv[0], -errnum);
                        g_free(user.groups);
                        return;
                }
        }
        g_free(user.groups);
        if (local) {
                g_propagate_error(error, local);
                return;
        }
        if (!env)
                env = g_get_environ();
        execvpe(argv[0], argv, env);
        set_exec_error(error, argv[0], errno);
}

int
start_error_exit_status(const GError *error)
{
        if (g_error_matches(error, START_ERROR, START_ERROR_NOT_FOUND))
                return 127;
        if (g_error_matches(error, START_ERROR, START_ERROR_NOT_EXECUTABLE))
                return 126;
        return 125;
}
