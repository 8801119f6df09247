// SPDX-License-Identifier: GPL-2.0-or-later
/* Which system calls matter to names, and what their arguments are. Used by the import of strace
 * logs only. */
#pragma once

#include "profiler/strace-line.h"

typedef enum {
        AT_OPEN,     /* open(path, flags) */
        AT_CREAT,    /* creat(path) */
        AT_OPENAT,   /* openat(dirfd, path, flags) */
        AT_OPENAT2,  /* openat2(dirfd, path, {flags, mode, resolve}) */
        AT_HANDLE,   /* open_by_handle_at */
        AT_EXECVE,   /* execve(path, ...) */
        AT_EXECVEAT, /* execveat(dirfd, path, argv, envp, flags) */
        AT_READ,     /* read, readv */
        AT_PREAD,    /* pread64, preadv, preadv2: offset is argument 3 */
        AT_MMAP,     /* mmap, mmap2 */
        AT_SENDFILE, /* sendfile(out, in, offset, count) */
        AT_SPLICE,   /* splice, copy_file_range(in, offset, out, ...) */
        AT_WRITE,    /* write, writev, ftruncate, fallocate, pwrite64, ... */
        AT_LSEEK,    /* lseek */
        AT_LLSEEK,   /* _llseek(fd, high, low, [result], whence) */
        AT_CLOSE,    /* close */
        AT_CLOSE_RANGE,
        AT_DUP,      /* dup(old) */
        AT_DUP2,     /* dup2, dup3(old, new) */
        AT_FCNTL,    /* fcntl, fcntl64 */
        AT_PAIR,     /* pipe, pipe2, socketpair: two descriptors in the last argument or first */
        AT_OTHER_FD, /* returns a descriptor of something that is no file */
        AT_CHDIR,    /* chdir(path) */
        AT_FCHDIR,   /* fchdir(fd) */
        AT_GETCWD,   /* getcwd("path", size) */
        AT_CHROOT,   /* chroot(path) */
        AT_PIVOT,    /* pivot_root */
        AT_UNSHARE,  /* unshare(flags) */
        AT_FORK,     /* clone, clone3, fork, vfork */
        AT_ACCESS,   /* access(path): marks */
        AT_ACCESSAT, /* faccessat, faccessat2(dirfd, path): marks */
        AT_URING,    /* io_uring_enter: reads that no trace shows */
} Meaning;

/* FALSE when the call of this name does not matter. */
gboolean trace_meaning(Slice name, Meaning *ret);
