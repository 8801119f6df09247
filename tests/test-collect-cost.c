// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What it costs to make a saved profile of many events: CPU time, memory, and that both grow with
 * the number of events at most. Files are known without a disk here; what naming them costs is
 * measured in record-storm.test.
 */
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "profiler/collect.h"

#define MILLION 1000000U
#define FILES 20000U
#define PAGES_A_FILE 64U

static double
cpu_s(void)
{
        struct timespec now;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
        return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static guint64
peak_mib(void)
{
        struct rusage usage;

        getrusage(RUSAGE_SELF, &usage);
        return (guint64)usage.ru_maxrss / 1024;
}

/* A read, an addition and a window in turn, over all files, in a fixed order without pattern. */
static void
feed(Collector *collector, guint n)
{
        guint64 state = 42;

        for (guint i = 0; i < n; i++) {
                AccessEvent event = {.time_ns = (guint64)i * 1000, .dev = makedev(8, 1), .tid = 7};

                state = state * G_GUINT64_CONSTANT(6364136223846793005) + 1442695040888963407U;
                event.inode = 100 + (state >> 33) % FILES;
                event.first = (state >> 20) % PAGES_A_FILE;
                event.last = event.first;
                event.kind = i % 3 == 0 ? ACCESS_ADD : i % 3 == 1 ? ACCESS_READ : ACCESS_MAP;
                if (event.kind == ACCESS_MAP) {
                        event.first &= ~(guint64)15;
                        event.last = event.first + 15;
                }
                collector_add(collector, &event);
        }
}

/* CPU seconds from the first event to the saved file. */
static double
make_profile(guint n, guint64 *ret_ranges)
{
        CollectorOptions options = {.source = PROFILE_SOURCE_USED_PAGES};
        g_autoptr(Collector) collector = collector_new(&options);
        g_autoptr(Profile) profile = profile_new("cost");
        g_autofree guint32 *files = NULL;
        g_autofree gchar *path = NULL;
        g_autoptr(GError) error = NULL;
        double begin = cpu_s();
        int fd = g_file_open_tmp("headstart-XXXXXX.profile", &path, NULL);

        g_assert_cmpint(fd, >=, 0);
        close(fd);
        profile->page_bytes = (guint32)sysconf(_SC_PAGESIZE);
        profile_add_fs(profile, "0a", "ext4", 4096);
        feed(collector, n);
        files = g_new(guint32, collector_n_files(collector));
        for (guint i = 0; i < collector_n_files(collector); i++) {
                CollectedFile collected = collector_file(collector, i);
                g_autofree gchar *name = g_strdup_printf(
                        "/usr/share/some/folder/%" G_GUINT64_FORMAT, collected.inode);
                ProfileFile file = {.inode = collected.inode,
                                    .size_bytes = PAGES_A_FILE * profile->page_bytes,
                                    .first_use_us = collected.first_us,
                                    .path = name};
                CollectorAsk ask = {0};

                collector_settle(collector, i, file.size_bytes, &ask);
                files[i] = profile_add_file(profile, &file);
        }
        collector_ranges(collector, files, profile);
        collector_causes(collector, files, profile);
        *ret_ranges = profile->ranges->len;
        profile_save(profile, path, &error);
        g_assert_no_error(error);
        unlink(path);
        return cpu_s() - begin;
}

static void
test_million(void)
{
        guint64 ranges;
        double seconds = make_profile(MILLION, &ranges);

        g_test_message("1 million events: %.2f s of CPU, peak %" G_GUINT64_FORMAT
                       " MiB, %" G_GUINT64_FORMAT " ranges",
                       seconds, peak_mib(), ranges);
        g_assert_cmpuint(ranges, >, FILES);
#ifndef __SANITIZE_ADDRESS__
        g_assert_cmpfloat(seconds, <=, 2.0);
        g_assert_cmpuint(peak_mib(), <=, 200);
#endif
}

static void
test_linear(void)
{
        guint64 ranges;
        double one = make_profile(MILLION, &ranges), ten = make_profile(10 * MILLION, &ranges);

        g_test_message("10 million events: %.2f s of CPU, 1 million %.2f s; peak %" G_GUINT64_FORMAT
                       " MiB",
                       ten, one, peak_mib());
        /* More pages are distinct at first; 1.5 for a machine with others on it. */
        g_assert_cmpfloat(ten, <=, one * 10 * 1.5);
}

int
main(int argc, char **argv)
{
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/collect-cost/million", test_million);
        g_test_add_func("/collect-cost/linear", test_linear);
        return g_test_run();
}
