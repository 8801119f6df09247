// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Touches known pages of a file in a mapping, or reads them: what a recording must find.
 *
 *     touch-pages FILE PAGE...         one byte of each page, through a mapping
 *     touch-pages -r FILE PAGE...      one byte of each page, with pread
 *     touch-pages -n COUNT FILE        every page of the file in turn, COUNT times, with pread
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
        int by_read = argc > 1 && strcmp(argv[1], "-r") == 0;
        long rounds = argc > 2 && strcmp(argv[1], "-n") == 0 ? atol(argv[2]) : 0;
        int at = 1 + by_read + 2 * (rounds > 0);
        long page = sysconf(_SC_PAGESIZE);
        volatile const char *map;
        struct stat st;
        char byte;
        int fd;

        if (at >= argc || (fd = open(argv[at], O_RDONLY | O_CLOEXEC)) < 0 || fstat(fd, &st) != 0) {
                fprintf(stderr, "usage: touch-pages [-r | -n COUNT] FILE PAGE...\n");
                return 2;
        }
        for (; rounds > 0; rounds--)
                for (off_t offset = 0; offset < st.st_size; offset += page)
                        if (pread(fd, &byte, 1, offset) != 1)
                                return 1;
        map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED)
                return 1;
        for (int i = at + 1; i < argc; i++) {
                off_t offset = strtoll(argv[i], NULL, 10) * page;

                if (by_read && pread(fd, &byte, 1, offset) != 1)
                        return 1;
                if (!by_read)
                        byte = map[offset];
        }
        (void)byte;
        return 0;
}
