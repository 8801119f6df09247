// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Starts a program inside a tree: chroot, a fixed environment, exec. Linked statically and kept in
 * the tree itself, so that a start recorded with it reads no file of the machine around the tree:
 *
 *     MNT/srv/headstart/enter MNT PROGRAM ARG...
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
        static char *environment[] = {"HOME=/root",
                                      "USER=root",
                                      "LOGNAME=root",
                                      "LANG=C.UTF-8",
                                      "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                                      NULL};

        if (argc < 3) {
                fprintf(stderr, "usage: enter ROOT PROGRAM ARG...\n");
                return 125;
        }
        if (chroot(argv[1]) < 0 || chdir("/") < 0) {
                fprintf(stderr, "enter: %s: %s\n", argv[1], strerror(errno));
                return 125;
        }
        /* execvpe() looks in the PATH of this process: take the tree's */
        environ = environment;
        execvp(argv[2], argv + 2);
        fprintf(stderr, "enter: %s: %s\n", argv[2], strerror(errno));
        return errno == ENOENT ? 127 : 126;
}
