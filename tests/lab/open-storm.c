// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Opens, reads and closes files as fast as the machine can, on every CPU:
 *
 *     open-storm FOLDER FILES SECONDS [THREADS]
 *
 * FOLDER holds files named 0 to FILES-1. Prints the opens in all and per second.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int folder, n_files, seconds;

static double
now_s(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void *
storm(void *seed)
{
        unsigned at = (unsigned)(size_t)seed * 7919;
        double end = now_s() + seconds;
        size_t opens = 0;
        char buffer[4096], name[16];

        do {
                for (int i = 0; i < 100; i++, at++) {
                        int fd;

                        snprintf(name, sizeof name, "%u", at % (unsigned)n_files);
                        fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
                        if (fd < 0 || read(fd, buffer, sizeof buffer) < 0) {
                                perror(name);
                                exit(1);
                        }
                        close(fd);
                        opens++;
                }
        } while (now_s() < end);
        return (void *)opens;
}

int
main(int argc, char **argv)
{
        long n_threads = argc > 4 ? atol(argv[4]) : sysconf(_SC_NPROCESSORS_ONLN);
        pthread_t *threads;
        size_t total = 0;
        double begin = now_s();

        if (argc < 4 || (folder = open(argv[1], O_RDONLY | O_DIRECTORY)) < 0 ||
            (n_files = atoi(argv[2])) <= 0 || (seconds = atoi(argv[3])) <= 0 || n_threads <= 0 ||
            !(threads = calloc((size_t)n_threads, sizeof *threads))) {
                fprintf(stderr, "usage: open-storm FOLDER FILES SECONDS [THREADS]\n");
                return 2;
        }
        for (long i = 0; i < n_threads; i++)
                if (pthread_create(&threads[i], NULL, storm, (void *)(size_t)i) != 0)
                        return 1;
        for (long i = 0; i < n_threads; i++) {
                void *opens;

                pthread_join(threads[i], &opens);
                total += (size_t)opens;
        }
        printf("%zu opens, %.0f a second\n", total, (double)total / (now_s() - begin));
        free(threads);
        return 0;
}
