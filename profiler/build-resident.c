// SPDX-License-Identifier: GPL-2.0-or-later
/* Ranges by residency: see build-resident.h. */
#include "profiler/build-resident.h"

#define PAGES_AT_ONCE 512U

static gboolean
was_resident(const OpenedFile *opened, guint64 page)
{
        return page < opened->resident_pages && (opened->resident[page / 8] >> page % 8 & 1);
}

guint64
build_resident_ranges(Profile *profile, guint32 file, const OpenedFile *opened, int fd,
                      Residency *residency)
{
        const ProfileFile *entry = &g_array_index(profile->files, ProfileFile, file);
        guint64 page_bytes = profile->page_bytes, before = 0;
        guint64 n = (entry->size_bytes + page_bytes - 1) / page_bytes;
        ProfileRange range = {.file = file, .first_use_us = entry->first_use_us};
        guint8 vec[PAGES_AT_ONCE];

        if (!residency_open(residency, fd, entry->size_bytes))
                return 0;
        for (guint64 page = 0; page <= n; page++) {
                gboolean now, old = FALSE;
                ProfileCause cause;

                if (page < n && page % PAGES_AT_ONCE == 0)
                        residency_pages(page, PAGES_AT_ONCE, vec, residency);
                now = page < n && vec[page % PAGES_AT_ONCE];
                if (now)
                        before += old = was_resident(opened, page);
                cause = old ? PROFILE_CAUSE_OPEN : PROFILE_CAUSE_READ_IN;
                if (range.length_bytes && (!now || range.cause != cause)) {
                        g_array_append_val(profile->ranges, range);
                        range.length_bytes = 0;
                }
                if (!now)
                        continue;
                if (!range.length_bytes) {
                        range.offset_bytes = page * page_bytes;
                        range.cause = (guint16)cause;
                        range.flags = old ? 0 : PROFILE_RANGE_MISS;
                }
                range.length_bytes += page_bytes;
        }
        residency_close(residency);
        return before;
}
