// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Starting a command for `record` and `run`: held until released, as the invoking user under sudo,
 * with its own exit status and signals passed on.
 *
 *         start_command(argv, &options, &started, &error)   the process exists and waits
 *         start_release(&started)                           it executes the command
 *         start_exec_result(&started, &error)               waits until that has worked or failed
 *         start_wait(&started, timeout_ms)                  TRUE once it has exited
 *         start_exit_status(&started)                       as a shell reports it
 *         start_clear(&started)
 *
 * From start_command() to start_clear() SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 and
 * SIGALRM are blocked in this process and start_wait() hands them on to the command (a SIGINT of
 * the terminal reaches it anyway and is not doubled); started.interrupted then tells which came
 * last. The command gets the signal mask and dispositions this process had.
 */
#pragma once

#include <glib.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#define START_ERROR (start_error_quark())
GQuark start_error_quark(void);
typedef enum {
        START_ERROR_NOT_FOUND,      /* exit 127 */
        START_ERROR_NOT_EXECUTABLE, /* exit 126 */
        START_ERROR_FAILED,         /* our own: exit 125 */
} StartError;

typedef struct {
        gboolean keep_user;        /* stay root under sudo */
        gboolean stdout_to_stderr; /* keep our standard output for our own result */
} StartOptions;

typedef struct {
        pid_t pid;
        int pidfd;
        int release_fd;
        int exec_fd; /* readable at exec or at its failure */
        int signal_fd;
        sigset_t old_mask;
        gboolean mask_saved;
        gboolean exited;
        int wait_status;
        struct rusage usage; /* of the command and the children it waited for, once exited */
        guint64 exec_us;     /* monotonic: when exec worked; 0 before */
        guint64 exited_us;
        int interrupted; /* the last signal handed on, 0 = none */
        gchar *command;
} Started;

gboolean start_command(char *const *argv, const StartOptions *options, Started *ret,
                       GError **error);
/* No command: only the signals are held back, and start_wait() waits for one or for the time. */
gboolean start_nothing(Started *ret, GError **error);
void start_release(Started *started);
gboolean start_exec_result(Started *started, GError **error);
/* timeout_ms -1 = no limit. Returns at once when the command has exited; may return early after a
 * signal was handed on. */
gboolean start_wait(Started *started, int timeout_ms);
/* Exit status, or 128 + signal. Only once exited. */
int start_exit_status(const Started *started);
/* User + system time so far, in microseconds: of the command and the children it has waited for. 0
 * = unknown. */
guint64 start_cpu_us(const Started *started);
/* Never kills the command. */
void start_clear(Started *started);

/* Executes the command in the place of this process, as the invoking user under sudo, with the
 * signal dispositions at their defaults where this process catches them. Returns only when that
 * failed, with START_ERROR; the user may have been changed by then. */
void start_replace(char *const *argv, const StartOptions *options, GError **error);

/* 127, 126 or 125. */
int start_error_exit_status(const GError *error);

guint64 start_now_us(void); /* CLOCK_MONOTONIC */
