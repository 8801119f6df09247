// SPDX-License-Identifier: GPL-2.0-or-later
/* System calls by name. */
#include "profiler/strace-meaning.h"

#include <stdlib.h>
#include <string.h>

#include "profiler/strace-calls.h"

typedef struct {
        const char *name;
        Meaning meaning;
} Known;

static const Known meanings[] = {
        /* sorted by name */
        {"_llseek", AT_LLSEEK},
        {"accept", AT_OTHER_FD},
        {"accept4", AT_OTHER_FD},
        {"access", AT_ACCESS},
        {"bpf", AT_OTHER_FD},
        {"chdir", AT_CHDIR},
        {"chroot", AT_CHROOT},
        {"clone", AT_FORK},
        {"clone3", AT_FORK},
        {"close", AT_CLOSE},
        {"close_range", AT_CLOSE_RANGE},
        {"copy_file_range", AT_SPLICE},
        {"creat", AT_CREAT},
        {"dup", AT_DUP},
        {"dup2", AT_DUP2},
        {"dup3", AT_DUP2},
        {"epoll_create", AT_OTHER_FD},
        {"epoll_create1", AT_OTHER_FD},
        {"eventfd", AT_OTHER_FD},
        {"eventfd2", AT_OTHER_FD},
        {"execve", AT_EXECVE},
        {"execveat", AT_EXECVEAT},
        {"faccessat", AT_ACCESSAT},
        {"faccessat2", AT_ACCESSAT},
        {"fallocate", AT_WRITE},
        {"fanotify_init", AT_OTHER_FD},
        {"fchdir", AT_FCHDIR},
        {"fcntl", AT_FCNTL},
        {"fcntl64", AT_FCNTL},
        {"fork", AT_FORK},
        {"ftruncate", AT_WRITE},
        {"ftruncate64", AT_WRITE},
        {"getcwd", AT_GETCWD},
        {"inotify_init", AT_OTHER_FD},
        {"inotify_init1", AT_OTHER_FD},
        {"io_uring_enter", AT_URING},
        {"io_uring_setup", AT_OTHER_FD},
        {"lseek", AT_LSEEK},
        {"memfd_create", AT_OTHER_FD},
        {"mmap", AT_MMAP},
        {"mmap2", AT_MMAP},
        {"mq_open", AT_OTHER_FD},
        {"open", AT_OPEN},
        {"open_by_handle_at", AT_HANDLE},
        {"openat", AT_OPENAT},
        {"openat2", AT_OPENAT2},
        {"perf_event_open", AT_OTHER_FD},
        {"pidfd_getfd", AT_OTHER_FD},
        {"pidfd_open", AT_OTHER_FD},
        {"pipe", AT_PAIR},
        {"pipe2", AT_PAIR},
        {"pivot_root", AT_PIVOT},
        {"pread", AT_PREAD},
        {"pread64", AT_PREAD},
        {"preadv", AT_PREAD},
        {"preadv2", AT_PREAD},
        {"pwrite64", AT_WRITE},
        {"pwritev", AT_WRITE},
        {"pwritev2", AT_WRITE},
        {"read", AT_READ},
        {"readv", AT_READ},
        {"sendfile", AT_SENDFILE},
        {"sendfile64", AT_SENDFILE},
        {"signalfd", AT_OTHER_FD},
        {"signalfd4", AT_OTHER_FD},
        {"socket", AT_OTHER_FD},
        {"socketpair", AT_PAIR},
        {"splice", AT_SPLICE},
        {"timerfd_create", AT_OTHER_FD},
        {"unshare", AT_UNSHARE},
        {"userfaultfd", AT_OTHER_FD},
        {"vfork", AT_FORK},
        {"write", AT_WRITE},
        {"writev", AT_WRITE},
};

static int
compare_name(const void *key, const void *member)
{
        const Slice *name = key;
        const char *other = ((const Known *)member)->name;
        int order = strncmp(name->p, other, name->n);

        return order ? order : other[name->n] ? -1 : 0;
}

gboolean
trace_meaning(Slice name, Meaning *ret)
{
        const Known *found =
                bsearch(&name, meanings, G_N_ELEMENTS(meanings), sizeof meanings[0], compare_name);

        if (!found)
                return FALSE;
        *ret = found->meaning;
        return TRUE;
}

gboolean
trace_call_matters(Slice name)
{
        Meaning meaning;

        return trace_meaning(name, &meaning);
}
