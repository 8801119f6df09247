// SPDX-License-Identifier: GPL-2.0-or-later
/* From page-cache events to pages used: what counts, in which order, at what cost. */
#include <string.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "profiler/collect.h"

#define DEV makedev(8, 1)

static guint64 now_us;

static void
event(Collector *c, AccessKind kind, guint64 inode, guint64 first, guint64 last)
{
        AccessEvent e = {.time_ns = now_us++ * 1000,
                         .inode = inode,
                         .first = first,
                         .last = last,
                         .dev = DEV,
                         .tid = 7,
                         .kind = kind};

        collector_add(c, &e);
}

static Collector *
collector(ProfileSource source, gboolean exact)
{
        CollectorOptions options = {.source = source, .exact = exact, .faults_map_folios = TRUE};

        now_us = 1;
        return collector_new(&options);
}

static CollectedUse
settle(Collector *c, guint index, guint64 pages, ResidentFunc resident, FolioFunc folio)
{
        CollectorAsk ask = {.resident = resident, .folio = folio};

        return collector_settle(c, index, pages * (guint64)sysconf(_SC_PAGESIZE), &ask);
}

/* The ranges as "file:first+n cause" words, in order. All files must be settled. */
static gchar *
ranges(Collector *c)
{
        g_autoptr(Profile) profile = profile_new("x");
        g_autofree guint32 *map = g_new(guint32, MAX(collector_n_files(c), 1));
        GString *text = g_string_new(NULL);

        profile->page_bytes = (guint32)sysconf(_SC_PAGESIZE);
        for (guint i = 0; i < collector_n_files(c); i++)
                map[i] = i;
        collector_ranges(c, map, profile);
        for (guint i = 0; i < profile->ranges->len; i++) {
                const ProfileRange *r = &g_array_index(profile->ranges, ProfileRange, i);

                g_string_append_printf(
                        text, "%s%u:%" G_GUINT64_FORMAT "+%" G_GUINT64_FORMAT " %s", i ? ", " : "",
                        r->file, r->offset_bytes / profile->page_bytes,
                        r->length_bytes / profile->page_bytes, profile_cause_name(r->cause));
        }
        return g_string_free(text, FALSE);
}

static void
assert_ranges(Collector *c, const char *expected)
{
        g_autofree gchar *got = ranges(c);

        g_assert_cmpstr(got, ==, expected);
}

/* Pages below 8 are resident. */
static void
first_eight(guint64 first, guint n, guint8 *vec, gpointer data)
{
        (void)data;
        for (guint i = 0; i < n; i++)
                vec[i] = first + i < 8;
}

/* Folios of 32 pages. */
static void
folios_of_32(guint64 page, guint64 *ret_first, guint64 *ret_last, gpointer data)
{
        (void)data;
        *ret_first = page & ~(guint64)31;
        *ret_last = *ret_first + 31;
}

static void
all(guint64 first, guint n, guint8 *vec, gpointer data)
{
        (void)first;
        (void)data;
        memset(vec, 1, n);
}

static void
test_reads_and_faults(void)
{
        g_autoptr(Collector) c = collector(PROFILE_SOURCE_USED_PAGES, FALSE);

        event(c, ACCESS_READ, 10, 3, 4);
        event(c, ACCESS_FAULT, 11, 9, 9);
        event(c, ACCESS_READ, 10, 5, 5);    /* adjacent, but another file was used in between */
        event(c, ACCESS_READ, 10, 6, 40);   /* goes on: one range over chunk borders */
        event(c, ACCESS_FAULT, 10, 5, 5);   /* used already */
        event(c, ACCESS_FAULT, 10, 41, 41); /* other cause */
        g_assert_cmpuint(collector_n_files(c), ==, 2);
        g_assert_cmpuint(settle(c, 0, 100, NULL, NULL).used_pages, ==, 39);
        settle(c, 1, 100, NULL, NULL);
        assert_ranges(c, "0:3+2 read, 1:9+1 fault, 0:5+36 read, 0:41+1 fault");
        g_assert_cmpuint(collector_last_new_us(c), ==, 6);
}

static void
test_readahead_is_not_use(void)
{
        g_autoptr(Collector) c = collector(PROFILE_SOURCE_USED_PAGES, FALSE);

        event(c, ACCESS_ADD, 10, 0, 31);
        event(c, ACCESS_READ, 10, 2, 2);
        settle(c, 0, 100, NULL, NULL);
        assert_ranges(c, "0:2+1 read");
}

static void
test_window_cold(void)
{
        g_autoptr(Collector) c = collector(PROFILE_SOURCE_USED_PAGES, FALSE);

        /* single-page folios 4-7 are there when the window is mapped, 8 comes in later, 9 never */
        for (guint64 page = 4; page < 8; page++)
                event(c, ACCESS_ADD, 10, page, page);
        event(c, ACCESS_MAP, 10, 0, 15);
        event(c, ACCESS_ADD, 10, 8, 8);
        settle(c, 0, 100, first_eight, NULL);
        /* 0-3 were never added and are resident at the end: they had been there before */
        assert_ranges(c, "0:0+4 map, 0:4+4 map");
}

static void
test_window_warm(void)
{
        g_autoptr(Collector) c = collector(PROFILE_SOURCE_USED_PAGES, FALSE);
        CollectedUse use;

        event(c, ACCESS_MAP, 10, 0, 15);
        event(c, ACCESS_MAP, 11, 16, 31);
        use = settle(c, 0, 100, first_eight, NULL);
        g_assert_cmpuint(use.used_pages, ==, 8);
        g_assert_cmpuint(use.cached_before_pages, ==, 8);
        /* nothing can be asked: all of the window inside the file */
        g_assert_cmpuint(settle(c, 1, 20, NULL, NULL).used_pages, ==, 4);
        assert_ranges(c, "0:0+8 map, 1:16+4 map");
}

static void
test_folios(void)
{
        g_autoptr(Collector) c = collector(PROFILE_SOURCE_USED_PAGES, FALSE);

        event(c, ACCESS_ADD, 10, 32, 63);
        event(c, ACCESS_FAULT, 10, 40, 40);
        settle(c, 0, 50, NULL, NULL); /* cut to the file */
        assert_ranges(c, "0:32+8 map, 0:40+1 fault, 0:41+9 map");
}

static void
test_folios_warm(void)
{
        g_autoptr(Collector) c = collector(PROFILE_SOURCE_USED_PAGES, FALSE);

        event(c, ACCESS_MAP, 10, 0, 15);
        g_assert_cmpuint(settle(c, 0, 30, all, folios_of_32).used_pages, ==, 30);
        assert_ranges(c, "0:0+30 map");
}

static void
none(guint64 first, guint n, guint8 *vec, gpointer data)
{
        (void)first;
        (void)data;
        memset(vec, 0, n);
}

static void
test_exact(void)
{
        g_autoptr(Collector) c = collector(PROFILE_SOURCE_USED_PAGES, TRUE);

        event(c, ACCESS_ADD, 10, 5, 5);
        event(c, ACCESS_MAP, 10, 0, 15);
        event(c, ACCESS_ADD, 10, 9, 9);
        event(c, ACCESS_FAULT, 10, 20, 20); /* the fault first, then the addition */
        event(c, ACCESS_ADD, 10, 20, 20);
        event(c, ACCESS_ADD, 10, 30, 30); /* or the other way round */
        event(c, ACCESS_READ, 10, 30, 30);
        settle(c, 0, 100, none, NULL);
        assert_ranges(c, "0:5+1 read-in, 0:9+1 read-in, 0:20+1 fault, 0:30+1 read");
}

static void
test_read_in(void)
{
        g_autoptr(Collector) c = collector(PROFILE_SOURCE_READ_IN, FALSE);

        event(c, ACCESS_ADD, 10, 0, 3);
        event(c, ACCESS_ADD, 10, 4, 7);
        settle(c, 0, 6, NULL, NULL);
        assert_ranges(c, "0:0+6 read-in");
}

static void
test_big_read(void)
{
        g_autoptr(Collector) c = collector(PROFILE_SOURCE_USED_PAGES, FALSE);

        /* a buffer of 2 GiB on a file of 3 pages, looked up again after each batch */
        for (guint64 page = 0; page < 1000; page++)
                event(c, ACCESS_READ, 10, page, 524287);
        event(c, ACCESS_READ, 11, 0, 0);
        g_assert_cmpuint(settle(c, 0, 3, NULL, NULL).used_pages, ==, 3);
        settle(c, 1, 1, NULL, NULL);
        assert_ranges(c, "0:0+3 read, 1:0+1 read");
}

static void
test_sparse_offsets(void)
{
        g_autoptr(Collector) c = collector(PROFILE_SOURCE_USED_PAGES, FALSE);
        guint64 far = G_GUINT64_CONSTANT(1) << 40;

        event(c, ACCESS_READ, 10, far, far + 1);
        g_assert_cmpuint(settle(c, 0, far + 10, NULL, NULL).used_pages, ==, 2);
}

static void
test_gate(void)
{
        CollectorOptions options = {.source = PROFILE_SOURCE_USED_PAGES, .gate_tid = 7};
        g_autoptr(Collector) c = collector_new(&options);

        now_us = 1;
        event(c, ACCESS_FAULT, 10, 1, 1);
        event(c, ACCESS_MAP, 10, 0, 15);
        g_assert_false(collector_saw_pages(c));
        event(c, ACCESS_READ, 10, 0, 0); /* the kernel reads the program's head before the exec */
        event(c, ACCESS_EXEC, 0, 0, 0);
        event(c, ACCESS_FAULT, 10, 2, 2);
        g_assert_true(collector_saw_pages(c));
        settle(c, 0, 100, NULL, NULL);
        assert_ranges(c, "0:0+1 read, 0:2+1 fault");
}

static void
test_block_device(void)
{
        g_autoptr(Collector) c = collector(PROFILE_SOURCE_USED_PAGES, FALSE);
        AccessEvent e = {.time_ns = 5000,
                         .inode = ((guint64)259 << 20) | 300,
                         .first = 70,
                         .last = 71,
                         .dev = makedev(0, 3),
                         .kind = ACCESS_ADD};
        const GArray *reads;

        collector_add_block_device(c, makedev(259, 300)); /* minor over 255 */
        collector_add_mounted(c, makedev(0, 30));
        collector_add(c, &e);
        collector_add(c, &e);
        /* the same inode number on a mounted file system is a file */
        e.dev = makedev(0, 30);
        collector_add(c, &e);
        reads = collector_block_reads(c, makedev(259, 300));
        g_assert_nonnull(reads);
        g_assert_cmpuint(reads->len, ==, 2);
        g_assert_cmpuint(g_array_index(reads, CollectedBlockRead, 1).page, ==, 71);
        g_assert_cmpuint(collector_n_files(c), ==, 1);
        g_assert_null(collector_block_reads(c, makedev(8, 1)));
}

static void
test_inode_readahead(void)
{
        /* page, time, thread, follower? Windows of 8. */
        static const struct {
                guint64 page, time_us;
                gint32 tid;
                gboolean follower;
        } r[] = {
                {13, 10, 1, FALSE},  {8, 11, 1, TRUE},     {9, 12, 1, TRUE},
                {100, 12, 2, FALSE}, {10, 13, 1, TRUE},    {15, 14, 1, TRUE},
                {40, 20, 1, FALSE},  {41, 9000, 1, FALSE}, {42, 9001, 1, TRUE},
        };
        g_autoptr(GArray) reads = g_array_new(FALSE, FALSE, sizeof(CollectedBlockRead));
        gboolean follower[G_N_ELEMENTS(r)];

        for (guint i = 0; i < G_N_ELEMENTS(r); i++) {
                CollectedBlockRead read = {r[i].page, r[i].time_us, r[i].tid};

                g_array_append_val(reads, read);
        }
        collector_mark_readahead(reads, 8, follower);
        for (guint i = 0; i < G_N_ELEMENTS(r); i++)
                g_assert_cmpint(follower[i], ==, r[i].follower);
        collector_mark_readahead(reads, 0, follower);
        g_assert_false(follower[1]);
}

static double
cpu_s(void)
{
        struct rusage usage;

        getrusage(RUSAGE_SELF, &usage);
        return (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6 +
               (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec / 1e6;
}

static long
max_rss_kb(void)
{
        struct rusage usage;

        getrusage(RUSAGE_SELF, &usage);
        return usage.ru_maxrss;
}

/* A million events of every kind on 4,000 files, no two of them on the same window. */
static void
test_million(void)
{
        g_autoptr(Collector) c = collector(PROFILE_SOURCE_USED_PAGES, FALSE);
        double before_s = cpu_s();
        guint64 used = 0;

        for (guint i = 0; i < 1000000; i++)
                event(c, i % 2 ? ACCESS_FAULT : ACCESS_READ, 1 + i % 4000, i / 4000 * 17,
                      i / 4000 * 17);
        for (guint i = 0; i < collector_n_files(c); i++)
                used += settle(c, i, 100000, NULL, NULL).used_pages;
        g_assert_cmpuint(used, ==, 1000000);
        {
                g_autoptr(Profile) profile = profile_new("x");
                g_autofree guint32 *map = g_new(guint32, collector_n_files(c));

                profile->page_bytes = 4096;
                for (guint i = 0; i < collector_n_files(c); i++)
                        map[i] = i;
                collector_ranges(c, map, profile);
                g_assert_cmpuint(profile->ranges->len, >, 900000);
        }
        g_test_message("1,000,000 events: %.2f s of CPU, %ld MiB at most", cpu_s() - before_s,
                       max_rss_kb() / 1024);
        g_assert_cmpfloat(cpu_s() - before_s, <, 2.0);
#ifndef __SANITIZE_ADDRESS__
        g_assert_cmpint(max_rss_kb(), <, 300 * 1024); /* the profile's own ranges are in it */
#endif
}

int
main(int argc, char **argv)
{
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/collect/reads-and-faults", test_reads_and_faults);
        g_test_add_func("/collect/readahead-is-not-use", test_readahead_is_not_use);
        g_test_add_func("/collect/window-cold", test_window_cold);
        g_test_add_func("/collect/window-warm", test_window_warm);
        g_test_add_func("/collect/folios", test_folios);
        g_test_add_func("/collect/folios-warm", test_folios_warm);
        g_test_add_func("/collect/exact", test_exact);
        g_test_add_func("/collect/read-in", test_read_in);
        g_test_add_func("/collect/big-read", test_big_read);
        g_test_add_func("/collect/sparse-offsets", test_sparse_offsets);
        g_test_add_func("/collect/gate", test_gate);
        g_test_add_func("/collect/block-device", test_block_device);
        g_test_add_func("/collect/inode-readahead", test_inode_readahead);
        g_test_add_func("/collect/million", test_million);
        return g_test_run();
}
