// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A single-threaded program with a start of its own kind: it wanders through files, mapping most
 * and reading some, touching clusters of pages here and there; the same way each time.
 *
 *     wander SEED FILE...
 *
 * Its addresses are not randomized: the window that fault-around maps is aligned by address, so
 * that two starts of a program that touches few pages here and there map other neighbours.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
        static char buffer[16384];
        unsigned long long state = argc > 2 ? strtoull(argv[1], NULL, 10) * 2654435761U + 1 : 0;
        volatile unsigned sum = 0;

        if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE)) {
                personality(ADDR_NO_RANDOMIZE);
                execv(argv[0], argv);
        }
        if (argc < 3) {
                fprintf(stderr, "usage: wander SEED FILE...\n");
                return 125;
        }
        for (int step = 0; step < 400; step++) {
                const char *path;
                struct stat st;
                char *map;
                long pages, page;
                int fd;

                state = state * 6364136223846793005ULL + 1442695040888963407ULL;
                path = argv[2 + (state >> 33) % (unsigned)(argc - 2)];
                fd = open(path, O_RDONLY | O_CLOEXEC);
                if (fd < 0 || fstat(fd, &st) < 0 || st.st_size == 0) {
                        perror(path);
                        return 124;
                }
                pages = (st.st_size + 4095) / 4096;
                page = (long)((state >> 17) % (unsigned long)pages);
                if (step % 5 == 0) {
                        if (pread(fd, buffer, sizeof buffer, page * 4096L) < 0)
                                return 124;
                } else {
                        map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
                        if (map == MAP_FAILED)
                                return 124;
                        for (long i = page; i < pages && i < page + 6; i++)
                                sum += (unsigned char)map[i * 4096];
                        munmap(map, (size_t)st.st_size);
                }
                close(fd);
        }
        return 0;
}
