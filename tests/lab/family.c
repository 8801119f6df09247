// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A parent with two children and a thread that read different files one after the other: who read
 * what is known beforehand.
 *
 *     family A B C D     child-a reads A, child-b reads B, a thread of the parent C, the parent D
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int
read_all(const char *path)
{
        static char buffer[65536];
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = -1;

        while (fd >= 0 && (n = read(fd, buffer, sizeof buffer)) > 0)
                ;
        return n == 0 ? 0 : -1;
}

static int
child_reads(const char *name, const char *path)
{
        int status;
        pid_t pid = fork();

        if (pid == 0) {
                prctl(PR_SET_NAME, name);
                _exit(read_all(path) == 0 ? 0 : 1);
        }
        return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -1;
}

static void *
thread_reads(void *path)
{
        prctl(PR_SET_NAME, "a-thread");
        return read_all(path) == 0 ? NULL : path;
}

int
main(int argc, char **argv)
{
        pthread_t thread;
        void *failed;

        if (argc != 5) {
                fprintf(stderr, "usage: family A B C D\n");
                return 2;
        }
        if (child_reads("child-a", argv[1]) != 0 || child_reads("child-b", argv[2]) != 0 ||
            pthread_create(&thread, NULL, thread_reads, argv[3]) != 0 ||
            pthread_join(thread, &failed) != 0 || failed || read_all(argv[4]) != 0)
                return 1;
        return 0;
}
