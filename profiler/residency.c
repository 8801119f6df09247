// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Page cache residency through mincore(2); folios through the page's frame number (pagemap) and the
 * compound flags of the frames beside it (kpageflags): a folio's frames and pages both lie in a
 * row.
 */
#include "profiler/residency.h"

#include <fcntl.h>
#include <linux/kernel-page-flags.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/fd.h"

#define PAGEMAP_PRESENT ((guint64)1 << 63)
#define PAGEMAP_FRAME (((guint64)1 << 55) - 1)
#define FRAMES_AT_ONCE 32U
#define FOLIO_PAGES_MAX 8192U
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

struct Residency {
        guint64 page_bytes;
        int pagemap, kpageflags;
        guint8 *map;
        guint64 length_bytes;
};

Residency *
residency_new(void)
{
        Residency *residency = g_new0(Residency, 1);

        residency->page_bytes = (guint64)sysconf(_SC_PAGESIZE);
        residency->pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
        residency->kpageflags = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
        return residency;
}

void
residency_free(Residency *residency)
{
        if (!residency)
                return;
        residency_close(residency);
        fd_close(&residency->pagemap);
        fd_close(&residency->kpageflags);
        g_free(residency);
}

gboolean
residency_open(Residency *residency, int fd, guint64 size_bytes)
{
        void *map;

        residency_close(residency);
        if (fd < 0 || size_bytes == 0 || size_bytes > G_MAXSIZE)
                return FALSE;
        map = mmap(NULL, size_bytes, PROT_READ, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED)
                return FALSE;
        residency->map = map;
        residency->length_bytes = size_bytes;
        return TRUE;
}

void
residency_close(Residency *residency)
{
        if (residency->map)
                munmap(residency->map, residency->length_bytes);
        residency->map = NULL;
        residency->length_bytes = 0;
}

void
residency_pages(guint64 first, guint n, guint8 *vec, gpointer data)
{
        const Residency *residency = data;
        guint64 from = first * residency->page_bytes;
        guint64 to = MIN((first + n) * residency->page_bytes, residency->length_bytes);

        memset(vec, 0, n);
        if (from >= to || mincore(residency->map + from, to - from, vec) != 0)
                return;
        for (guint i = 0; i < n; i++)
                vec[i] &= 1;
}

/* How many frames from `frame` on, step by step in one direction, have the flag. */
static guint64
frames_with_flag(const Residency *residency, guint64 frame, gboolean forward, guint flag)
{
        guint64 flags[FRAMES_AT_ONCE];
        guint64 n = 0;

        while (n < FOLIO_PAGES_MAX) {
                guint64 at = forward ? frame + n : frame - n - FRAMES_AT_ONCE + 1;

                if ((!forward && frame < n + FRAMES_AT_ONCE - 1) ||
                    pread(residency->kpageflags, flags, sizeof flags,
                          (off_t)(at * sizeof flags[0])) != sizeof flags)
                        return n;
                for (guint i = 0; i < FRAMES_AT_ONCE; i++, n++)
                        if (!(flags[forward ? i : FRAMES_AT_ONCE - 1 - i] >> flag & 1))
                                return n;
        }
        return n;
}

void
residency_folio(guint64 page, guint64 *ret_first, guint64 *ret_last, gpointer data)
{
        const Residency *residency = data;
        guint8 *address = residency->map + page * residency->page_bytes;
        guint64 entry = 0, frame, before, after;

        *ret_first = *ret_last = page;
        if (residency->pagemap < 0 || residency->kpageflags < 0 ||
            page * residency->page_bytes >= residency->length_bytes)
                return;
        /* Maps the page without a signal should the file have been cut off. */
        if (madvise(address, residency->page_bytes, MADV_POPULATE_READ) != 0 ||
            pread(residency->pagemap, &entry, sizeof entry,
                  (off_t)((guint64)(gsize)address / residency->page_bytes * sizeof entry)) !=
                    sizeof entry ||
            !(entry & PAGEMAP_PRESENT) || !(frame = entry & PAGEMAP_FRAME))
                return;
        after = frames_with_flag(residency, frame + 1, TRUE, KPF_COMPOUND_TAIL);
        before = frames_with_flag(residency, frame, FALSE, KPF_COMPOUND_TAIL);
        *ret_first = page - MIN(before, page);
        *ret_last = page + after;
}
