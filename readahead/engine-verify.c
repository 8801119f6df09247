// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How much of a range is in the page cache: cachestat(2) (6.5 and later), else mincore(2).
 *
 * Both want write permission or ownership; mincore without them claims that all is resident, so it
 * is believed only after the same check.
 */
#include "readahead/engine-internal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_cachestat
#define SYS_cachestat 451 /* the same on every architecture */
#endif

struct kernel_cachestat_range {
        uint64_t off, len;
};
struct kernel_cachestat {
        uint64_t cache, dirty, writeback, evicted, recently_evicted;
};

static bool
may_ask_mincore(int fd)
{
        struct stat st;
        uid_t uid = geteuid();

        /* owner or privileged; write permission by mode bits alone is left out, which only means
         * that a right answer is sometimes not believed */
        return fstat(fd, &st) == 0 && (uid == 0 || st.st_uid == uid);
}

static bool
resident_by_mincore(int fd, uint64_t offset, uint64_t length, uint64_t page, uint64_t *ret_bytes)
{
        unsigned char vector[256];
        uint64_t pages = (length + page - 1) / page, resident = 0;
        unsigned char *map;

        if (!may_ask_mincore(fd))
                return false;
        map = mmap(NULL, pages * page, PROT_READ, MAP_SHARED, fd, (off_t)offset);
        if (map == MAP_FAILED)
                return false;
        for (uint64_t i = 0; i < pages; i += sizeof vector) {
                uint64_t n = pages - i < sizeof vector ? pages - i : sizeof vector;

                if (mincore(map + i * page, n * page, vector) < 0)
                        break;
                for (uint64_t j = 0; j < n; j++)
                        resident += vector[j] & 1;
        }
        munmap(map, pages * page);
        *ret_bytes = resident * page;
        return true;
}

bool
resident_bytes(int fd, uint64_t offset, uint64_t length, uint64_t *ret_bytes)
{
        struct kernel_cachestat_range range = {.off = offset, .len = length};
        struct kernel_cachestat stat = {0};
        uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), bytes;

        if (length == 0) {
                *ret_bytes = 0;
                return true;
        }
        if (syscall(SYS_cachestat, fd, &range, &stat, 0U) == 0)
                bytes = stat.cache * page;
        else if (!resident_by_mincore(fd, offset, length, page, &bytes))
                return false;
        *ret_bytes = bytes < length ? bytes : length;
        return true;
}
