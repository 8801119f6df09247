// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Waits until nobody has a block device mounted any more, in whatever mount namespace: an exclusive
 * open fails as long as one has. A file system that lives on is not cold after the next mount.
 *
 *     wait-free DEVICE     exit 0; 1 when it is still in use after ten seconds
 *
 * There is no event to wait for: the kernel tells nobody when a superblock is gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
        const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};

        if (argc != 2) {
                fprintf(stderr, "usage: wait-free DEVICE\n");
                return 2;
        }
        for (int i = 0; i < 500; i++) {
                int fd = open(argv[1], O_RDONLY | O_EXCL | O_CLOEXEC);

                if (fd >= 0) {
                        close(fd);
                        return 0;
                }
                if (errno != EBUSY) {
                        fprintf(stderr, "wait-free: %s: %s\n", argv[1], strerror(errno));
                        return 2;
                }
                nanosleep(&pause, NULL);
        }
        fprintf(stderr, "wait-free: %s is still mounted somewhere\n", argv[1]);
        return 1;
}
