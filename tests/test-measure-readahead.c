// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The readahead windows against what a running Linux 6.18 read, as seen with mincore(2) on ext4
 * after every touch ("[first,end)" in pages), and the bounds of the simulated cache.
 */
#include "measure/readahead-sim.h"

#define KIB 1024

typedef struct {
        guint64 readahead_bytes;
        char kind; /* R: read(2) of one page, r: fault, x: fault in an executable mapping */
        const char *touches;  /* pages */
        const char *resident; /* after the last of them */
} Pattern;

static gchar *
resident_text(const ReadaheadSim *sim, guint32 file, guint64 pages)
{
        GString *text = g_string_new(NULL);
        guint64 end;

        for (guint64 i = 0; i < pages; i = end) {
                for (end = i;
                     end < pages && readahead_sim_lookup(sim, file, end) != READAHEAD_ABSENT; end++)
                        ;
                if (end > i)
                        g_string_append_printf(text,
                                               "%s[%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT ")",
                                               text->len > 0 ? " " : "", i, end);
                else
                        end = i + 1;
        }
        return g_string_free(text, FALSE);
}

static void
check(const Pattern *pattern, guint64 file_pages)
{
        g_autoptr(ReadaheadSim) sim = readahead_sim_new(4096, pattern->readahead_bytes, 1280 * KIB);
        g_autoptr(GArray) spans = g_array_new(FALSE, FALSE, sizeof(PageSpan));
        g_autoptr(GArray) reads = g_array_new(FALSE, FALSE, sizeof(ReadaheadRead));
        g_auto(GStrv) touches = g_strsplit(pattern->touches, " ", 0);
        g_autofree gchar *text = NULL;
        PageSpan span = {0, file_pages};
        guint64 sum = 0;
        guint32 file;

        g_array_append_val(spans, span);
        file = readahead_sim_add_file(sim, file_pages * 4096, pattern->kind == 'x' ? spans : NULL);
        for (gchar **touch = touches; *touch != NULL; touch++) {
                guint64 page = g_ascii_strtoull(*touch, NULL, 10);

                if (pattern->kind == 'R')
                        readahead_sim_read(sim, file, page, 1, reads);
                else
                        readahead_sim_fault(sim, file, page, reads);
                g_assert_cmpuint(readahead_sim_lookup(sim, file, page), !=, READAHEAD_ABSENT);
        }
        text = resident_text(sim, file, file_pages);
        g_assert_cmpstr(text, ==, pattern->resident);
        /* No page is read twice, and every read has its number. */
        for (guint i = 0; i < reads->len; i++) {
                const ReadaheadRead *read = &g_array_index(reads, ReadaheadRead, i);

                g_assert_cmpuint(read->tag, ==, i);
                for (guint64 k = 0; k < read->pages; k++)
                        g_assert_cmpuint(readahead_sim_lookup(sim, file, read->first_page + k), ==,
                                         i);
                sum += read->pages;
        }
        for (guint64 i = 0; i < file_pages; i++)
                sum -= readahead_sim_lookup(sim, file, i) != READAHEAD_ABSENT;
        g_assert_cmpuint(sum, ==, 0);
}

static void
test_kernel_windows(void)
{
        static const Pattern patterns[] = {
                {128 * KIB, 'R', "0", "[0,4)"},
                {128 * KIB, 'R', "0 1", "[0,12)"},
                {128 * KIB, 'R', "0 1 2 3 4", "[0,16)"},
                {128 * KIB, 'R', "0 1 2 3 4 5 6 7 8 9 10 11 12", "[0,24)"},
                {128 * KIB, 'R', "0 1 2 3 4 8 12 16", "[0,32)"},
                {128 * KIB, 'R', "0 1 2 3 4 8 12 16 24 32", "[0,64)"},
                {128 * KIB, 'R', "0 1 2 3 4 8 12 16 24 32 48 64", "[0,128)"},
                {128 * KIB, 'R', "500 501 502 503 520 900", "[500,512) [520,521) [900,901)"},
                {128 * KIB, 'R', "10 11 5 9", "[5,6) [9,15)"},
                {128 * KIB, 'x', "500 501 530 532 600", "[500,564) [600,632)"},
                {128 * KIB, 'r', "500", "[484,516)"},
                {128 * KIB, 'r', "500 516", "[484,532)"},
                {128 * KIB, 'r', "500 516 508", "[484,564)"},
                {128 * KIB, 'r', "500 516 508 509 530 532", "[484,592)"},
                {128 * KIB, 'r', "500 516 508 509 530 532 560 600", "[484,616)"},
                {128 * KIB, 'r', "1000 1001 1010 1020 1023 1030", "[984,1036)"},
                {1024 * KIB, 'R', "0 1", "[0,20)"},
                {1024 * KIB, 'R', "0 1 4", "[0,48)"},
                {1024 * KIB, 'R', "0 1 4 20", "[0,64)"},
                {1024 * KIB, 'R', "0 1 4 20 48 64", "[0,128)"},
                {1024 * KIB, 'R', "0 1 4 20 48 64 96 128", "[0,256)"},
                {1024 * KIB, 'R', "500 501 502", "[500,520)"},
                {1024 * KIB, 'x', "500 501 530 532 600", "[500,756)"},
                {1024 * KIB, 'r', "500 516 508", "[372,628)"},
                {8192 * KIB, 'R', "0 1 2 4 8", "[0,80)"},
                {8192 * KIB, 'R', "500 501 502 900", "[500,520) [900,901)"},
                {8192 * KIB, 'x', "500 600", "[500,2048)"},
                {8192 * KIB, 'r', "500 530", "[0,2048)"},
        };

        for (gsize i = 0; i < G_N_ELEMENTS(patterns); i++)
                check(&patterns[i], 2048);
}

static void
test_end_of_file(void)
{
        static const Pattern patterns[] = {
                {1024 * KIB, 'R', "0 1 2 3 4 5 10", "[0,32)"},
                {1024 * KIB, 'r', "20", "[0,32)"},
                {128 * KIB, 'r', "20", "[4,32)"},
                {8192 * KIB, 'r', "31", "[0,32)"},
                {128 * KIB, 'x', "31", "[31,32)"},
        };

        for (gsize i = 0; i < G_N_ELEMENTS(patterns); i++)
                check(&patterns[i], 32);
}

/* Readahead off: exactly the pages touched. */
static void
test_off(void)
{
        static const Pattern patterns[] = {
                {0, 'R', "0 1 2 9", "[0,3) [9,10)"},
                {0, 'r', "0 5 6", "[0,1) [5,7)"},
                {0, 'x', "7", "[7,8)"},
        };

        for (gsize i = 0; i < G_N_ELEMENTS(patterns); i++)
                check(&patterns[i], 64);
}

/* A file that misses a hundred times more than it hits gets single pages; hits bring it back. */
static void
test_lots_of_misses(void)
{
        g_autoptr(ReadaheadSim) sim = readahead_sim_new(4096, 128 * KIB, 1280 * KIB);
        g_autoptr(GArray) reads = g_array_new(FALSE, FALSE, sizeof(ReadaheadRead));
        guint32 file = readahead_sim_add_file(sim, G_GUINT64_CONSTANT(1) << 30, NULL);

        for (guint64 i = 0; i < 101; i++)
                readahead_sim_fault(sim, file, 20000 + i * 1000, reads);
        g_assert_cmpuint(g_array_index(reads, ReadaheadRead, 99).pages, ==, 32);
        g_assert_cmpuint(g_array_index(reads, ReadaheadRead, 100).pages, ==, 1);
        readahead_sim_fault(sim, file, 20001, reads);
        readahead_sim_fault(sim, file, 200000, reads);
        g_assert_cmpuint(g_array_index(reads, ReadaheadRead, reads->len - 1).pages, ==, 32);
}

/* A large read gets all it asks for in one window; executable windows end with their segment. */
static void
test_large_and_bounded(void)
{
        g_autoptr(ReadaheadSim) sim = readahead_sim_new(4096, 128 * KIB, 1280 * KIB);
        g_autoptr(GArray) spans = g_array_new(FALSE, FALSE, sizeof(PageSpan));
        g_autoptr(GArray) reads = g_array_new(FALSE, FALSE, sizeof(ReadaheadRead));
        PageSpan span = {100, 110};
        guint32 file;

        g_array_append_val(spans, span);
        file = readahead_sim_add_file(sim, 4096 * 4096, spans);
        readahead_sim_fault(sim, file, 104, reads);
        g_assert_cmpuint(g_array_index(reads, ReadaheadRead, 0).first_page, ==, 104);
        g_assert_cmpuint(g_array_index(reads, ReadaheadRead, 0).pages, ==, 6);
        readahead_sim_read(sim, file, 1000, 256, reads);
        g_assert_cmpuint(g_array_index(reads, ReadaheadRead, 1).pages, ==, 256);
}

/* Fetched pages are not fetched again, and windows leave them out. */
static void
test_fetch(void)
{
        g_autoptr(ReadaheadSim) sim = readahead_sim_new(4096, 128 * KIB, 1280 * KIB);
        g_autoptr(GArray) reads = g_array_new(FALSE, FALSE, sizeof(ReadaheadRead));
        guint32 file = readahead_sim_add_file(sim, 1024 * 4096, NULL);

        readahead_sim_fetch(sim, file, 100, 10, reads);
        readahead_sim_fetch(sim, file, 90, 30, reads);
        g_assert_cmpuint(reads->len, ==, 3);
        readahead_sim_fault(sim, file, 120, reads); /* [104, 136) without [104, 120) */
        g_assert_cmpuint(reads->len, ==, 4);
        g_assert_cmpuint(g_array_index(reads, ReadaheadRead, 3).first_page, ==, 120);
        g_assert_cmpuint(g_array_index(reads, ReadaheadRead, 3).pages, ==, 16);
        readahead_sim_read(sim, file, 5000, 1, reads); /* beyond the end */
        g_assert_cmpuint(reads->len, ==, 4);
}

/* A terabyte file costs memory for what is touched only; places beyond 2^31 pages work. */
static void
test_huge_file(void)
{
        g_autoptr(ReadaheadSim) sim = readahead_sim_new(4096, 128 * KIB, 1280 * KIB);
        g_autoptr(GArray) reads = g_array_new(FALSE, FALSE, sizeof(ReadaheadRead));
        guint32 file = readahead_sim_add_file(sim, G_GUINT64_CONSTANT(1) << 44, NULL);
        guint64 far = G_GUINT64_CONSTANT(4000000000);

        readahead_sim_fault(sim, file, far, reads);
        g_assert_cmpuint(g_array_index(reads, ReadaheadRead, 0).first_page, ==, far - 16);
        g_assert_cmpuint(readahead_sim_lookup(sim, file, far), ==, 0);
        g_assert_cmpuint(readahead_sim_lookup(sim, file, 0), ==, READAHEAD_ABSENT);
}

int
main(int argc, char **argv)
{
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/measure/readahead/kernel-windows", test_kernel_windows);
        g_test_add_func("/measure/readahead/end-of-file", test_end_of_file);
        g_test_add_func("/measure/readahead/off", test_off);
        g_test_add_func("/measure/readahead/lots-of-misses", test_lots_of_misses);
        g_test_add_func("/measure/readahead/large-and-bounded", test_large_and_bounded);
        g_test_add_func("/measure/readahead/fetch", test_fetch);
        g_test_add_func("/measure/readahead/huge-file", test_huge_file);
        return g_test_run();
}
