// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program whose start reads the files of a list, each to its end:
 *
 *     read-files LIST [STATUS]     LIST: paths, each ended by NUL; exits with STATUS
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
        static char buffer[65536];
        char *path = NULL;
        size_t room = 0;
        FILE *list = argc > 1 ? fopen(argv[1], "r") : NULL;

        if (!list) {
                fprintf(stderr, "usage: read-files LIST [STATUS]\n");
                return 125;
        }
        while (getdelim(&path, &room, '\0', list) > 0) {
                int fd = open(path, O_RDONLY | O_CLOEXEC);

                if (fd < 0) {
                        perror(path);
                        return 124;
                }
                while (read(fd, buffer, sizeof buffer) > 0)
                        ;
                close(fd);
        }
        free(path);
        fclose(list);
        return argc > 2 ? atoi(argv[2]) : 0;
}
