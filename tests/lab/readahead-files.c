// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whole-file readahead in order of access, as the readahead tools before 2008 did it: for
 * comparison in the demonstration and in benchmarks. Reads a list of paths, each ended by NUL, on
 * standard input and reads every file from beginning to end.
 *
 *     readahead-files ROOT < LIST
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
        static char buffer[1 << 20];
        char *path = NULL;
        size_t room = 0;
        int root;

        if (argc != 2 || (root = open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0) {
                fprintf(stderr, "usage: readahead-files ROOT < LIST\n");
                return 2;
        }
        while (getdelim(&path, &room, '\0', stdin) > 0) {
                int fd = openat(root, path + (path[0] == '/'),
                                O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);

                if (fd < 0)
                        continue;
                while (read(fd, buffer, sizeof buffer) > 0)
                        ;
                close(fd);
        }
        free(path);
        return 0;
}
