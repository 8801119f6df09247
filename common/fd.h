// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * File descriptors that close themselves at the end of their scope:
 *
 *         auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
 */
#pragma once

#include <errno.h>
#include <unistd.h>

static inline void
fd_close(int *fd)
{
        if (*fd >= 0) {
                int saved = errno;

                close(*fd);
                errno = saved;
        }
        *fd = -1;
}

/* Gives the descriptor away: returns it and leaves -1 behind. */
static inline int
fd_steal(int *fd)
{
        int taken = *fd;

        *fd = -1;
        return taken;
}

#define auto_fd __attribute__((cleanup(fd_close)))
