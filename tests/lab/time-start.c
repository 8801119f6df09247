// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Times a start as `headstart record` does, from exec to exit, without recording it:
 *
 *     time-start FILE PROGRAM ARG...     microseconds go to FILE; exits as the program did
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long
now_us(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int
main(int argc, char **argv)
{
        int ends[2], status;
        long long begin;
        char byte;
        FILE *out;
        pid_t pid;

        if (argc < 3 || pipe2(ends, O_CLOEXEC) < 0) {
                fprintf(stderr, "usage: time-start FILE PROGRAM ARG...\n");
                return 125;
        }
        pid = fork();
        if (pid == 0) {
                execvp(argv[2], argv + 2);
                perror(argv[2]);
                _exit(127);
        }
        close(ends[1]);
        /* closed by the exec */
        if (pid < 0 || read(ends[0], &byte, 1) != 0)
                return 125;
        begin = now_us();
        if (waitpid(pid, &status, 0) != pid)
                return 125;
        out = fopen(argv[1], "w");
        if (!out || fprintf(out, "%lld\n", now_us() - begin) < 0 || fclose(out) != 0)
                return 125;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
