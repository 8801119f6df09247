// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Waits for 0.4 s for a known reason, then ends:
 *
 *     wait-for sleep | futex | pipe | socket | poll | terminal | child | cpu
 *     wait-for mark      first says access("MARK: lab: here"), then sleeps
 *
 * "terminal" writes to a pseudo terminal that nobody reads until it blocks. "cpu" computes on one
 * CPU beside a child that does the same, so that each waits for the other.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 400

static volatile sig_atomic_t rung;

static void
on_alarm(int number)
{
        (void)number; /* the call that blocks returns early */
        rung = 1;
}

static void
set_alarm(void)
{
        struct sigaction action = {.sa_handler = on_alarm};
        struct itimerval timer = {.it_value = {.tv_usec = WAIT_MS * 1000}};

        sigaction(SIGALRM, &action, NULL);
        setitimer(ITIMER_REAL, &timer, NULL);
}

static int
wait_terminal(void)
{
        static char text[4096];
        int master = posix_openpt(O_RDWR | O_NOCTTY), slave;

        if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0 ||
            (slave = open(ptsname(master), O_RDWR | O_NOCTTY)) < 0)
                return 1;
        memset(text, 'x', sizeof text);
        set_alarm();
        /* the first alarm may cut a write short */
        while (!rung && write(slave, text, sizeof text) > 0)
                ;
        return 0;
}

static void
spin_ms(long ms)
{
        struct timespec begin, now;

        clock_gettime(CLOCK_MONOTONIC, &begin);
        do
                clock_gettime(CLOCK_MONOTONIC, &now);
        while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
}

static int
wait_cpu(void)
{
        cpu_set_t one;
        pid_t pid;

        CPU_ZERO(&one);
        CPU_SET(0, &one);
        sched_setaffinity(0, sizeof one, &one);
        pid = fork();
        spin_ms(2 * WAIT_MS);
        if (pid == 0)
                _exit(0);
        return waitpid(pid, NULL, 0) == pid ? 0 : 1;
}

int
main(int argc, char **argv)
{
        const char *what = argc == 2 ? argv[1] : "";
        struct timespec span = {.tv_nsec = WAIT_MS * 1000000L};
        int ends[2], word = 0;
        char byte;
        pid_t pid;

        if (strcmp(what, "mark") == 0 && access("MARK: lab: here", F_OK) == 0)
                return 1;
        if (strcmp(what, "sleep") == 0 || strcmp(what, "mark") == 0)
                return nanosleep(&span, NULL);
        if (strcmp(what, "futex") == 0)
                return syscall(SYS_futex, &word, FUTEX_WAIT, 0, &span, NULL, 0) == -1 ? 0 : 1;
        if (strcmp(what, "pipe") == 0 && pipe(ends) == 0) {
                set_alarm();
                return read(ends[0], &byte, 1) < 0 ? 0 : 1;
        }
        if (strcmp(what, "socket") == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0) {
                set_alarm();
                return recv(ends[0], &byte, 1, 0) < 0 ? 0 : 1;
        }
        if (strcmp(what, "poll") == 0 && pipe(ends) == 0) {
                struct pollfd poll_fd = {.fd = ends[0], .events = POLLIN};

                return poll(&poll_fd, 1, WAIT_MS);
        }
        if (strcmp(what, "terminal") == 0)
                return wait_terminal();
        if (strcmp(what, "cpu") == 0)
                return wait_cpu();
        if (strcmp(what, "child") == 0) {
                pid = fork();
                if (pid == 0)
                        _exit(nanosleep(&span, NULL));
                return waitpid(pid, NULL, 0) == pid ? 0 : 1;
        }
        fprintf(stderr, "usage: wait-for sleep|futex|pipe|socket|poll|terminal|child|cpu|mark\n");
        return 2;
}
