// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What turning events into a saved profile costs: feeds the collector with made-up events, settles,
 * orders, saves; prints CPU time and peak memory.
 *
 *     collect EVENTS FILE
 *
 * The mix is that of a boot: files of 16 to 1,000 pages, most looked up in order by read(2) or
 * mapped by windows of 16 pages after a fault, a third of the pages added before, and files come
 * back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "profiler/collect.h"

#define DEV 0x800001

static double
cpu_s(void)
{
        struct rusage usage;

        getrusage(RUSAGE_SELF, &usage);
        return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static guint64
file_pages(guint64 file)
{
        return 16 + file * 2654435761U % 985;
}

int
main(int argc, char **argv)
{
        guint64 n = argc == 3 ? g_ascii_strtoull(argv[1], NULL, 10) : 0;
        CollectorOptions options = {.source = PROFILE_SOURCE_USED_PAGES, .faults_map_folios = TRUE};
        g_autoptr(Collector) collector = collector_new(&options);
        g_autoptr(Profile) profile = profile_new("bench");
        g_autoptr(GError) error = NULL;
        g_autofree guint32 *profile_file = NULL;
        guint64 n_files = MAX(n / 50, 1), state = 1;
        AccessEvent event = {.dev = DEV, .tid = 100};
        double collected, ranged;
        struct rusage usage;

        if (n == 0) {
                fprintf(stderr, "usage: collect EVENTS FILE\n");
                return 2;
        }
        collector_add_mounted(collector, DEV);
        for (guint64 i = 0; i < n;) {
                guint64 file, pages, first;
                gboolean mapped;

                state = state * 6364136223846793005U + 1442695040888963407U;
                file = (state >> 33) % n_files;
                pages = file_pages(file);
                first = (state >> 20) % pages / 16 * 16;
                mapped = (file & 1) != 0;
                event.inode = 12 + file;
                for (guint k = 0; k < 8 && i < n && first < pages; k++, i++, first += 4) {
                        event.time_ns += 1000;
                        event.first = first;
                        event.last = MIN(first + 3, pages - 1);
                        event.kind = k % 3 == 0   ? ACCESS_ADD
                                     : !mapped    ? ACCESS_READ
                                     : k % 3 == 1 ? ACCESS_FAULT
                                                  : ACCESS_MAP;
                        if (event.kind == ACCESS_FAULT)
                                event.last = event.first;
                        if (event.kind == ACCESS_MAP) {
                                event.first = first / 16 * 16;
                                event.last = MIN(event.first + 15, pages - 1);
                        }
                        collector_add(collector, &event);
                }
        }
        collected = cpu_s();

        profile_add_fs(profile, "0b1e6a4c-0000-4000-8000-000000000001", "ext4", 4096);
        profile_file = g_new(guint32, collector_n_files(collector) + 1);
        for (guint i = 0; i < collector_n_files(collector); i++) {
                guint64 inode = collector_file(collector, i).inode;
                ProfileFile file = {
                        .inode = inode,
                        .size_bytes = file_pages(inode - 12) * 4096,
                        .first_use_us = collector_file(collector, i).first_us,
                        .path = g_strdup_printf("/usr/lib/bench/%" G_GUINT64_FORMAT, inode)};
                CollectorAsk ask = {0};

                collector_settle(collector, i, file.size_bytes, &ask);
                profile_file[i] = profile_add_file(profile, &file);
                g_free(file.path);
        }
        collector_ranges(collector, profile_file, profile);
        collector_causes(collector, profile_file, profile);
        ranged = cpu_s();
        if (!profile_save(profile, argv[2], &error)) {
                fprintf(stderr, "collect: %s\n", error->message);
                return 1;
        }
        getrusage(RUSAGE_SELF, &usage);
        printf("%9" G_GUINT64_FORMAT
               " events: %.2f s of CPU (%.2f collecting, %.2f ordering, %.2f saving), "
               "%ld MiB at most, %u files, %u ranges\n",
               n, cpu_s(), collected, ranged - collected, cpu_s() - ranged, usage.ru_maxrss / 1024,
               profile->files->len, profile->ranges->len);
        return n <= 1000000 && (cpu_s() > 2 || usage.ru_maxrss > 200 * 1024) ? 1 : 0;
}
