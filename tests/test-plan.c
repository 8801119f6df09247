// SPDX-License-Identifier: GPL-2.0-or-later
/* The relocation planner: pieces, alignment, segments, runs. */
#include <glib.h>

#include "relocator/plan.h"

static ExtentMap *
map_new(const Extent *extents, guint n)
{
        ExtentMap *map = g_new0(ExtentMap, 1);

        map->extents = g_array_new(FALSE, FALSE, sizeof(Extent));
        g_array_append_vals(map->extents, extents, n);
        return map;
}

static const Piece *
piece(const Plan *plan, guint i)
{
        g_assert_cmpuint(i, <, plan->pieces->len);
        return &g_array_index(plan->pieces, Piece, i);
}

static void
is_piece(const Plan *plan, guint i, guint32 file, guint64 logical, guint64 blocks, guint64 donor)
{
        g_assert_cmpuint(piece(plan, i)->file, ==, file);
        g_assert_cmpuint(piece(plan, i)->logical_block, ==, logical);
        g_assert_cmpuint(piece(plan, i)->blocks, ==, blocks);
        g_assert_cmpuint(piece(plan, i)->donor_block, ==, donor);
}

static GArray *
segments(const Segment *all, guint n)
{
        GArray *array = g_array_new(FALSE, FALSE, sizeof(Segment));

        g_array_append_vals(array, all, n);
        return array;
}

static void
test_sparse(void)
{
        /* A sparse file: data, hole, data in two places, unwritten, a hole to the end (case 34). */
        static const Extent extents[] = {
                {0, 100 << 12, 2 << 12, 0},
                {1ULL << 30, 900 << 12, 4 << 12, 0},
                {(1ULL << 30) + (4 << 12), 50 << 12, 4 << 12, 0},
                {(1ULL << 30) + (8 << 12), 60 << 12, 4 << 12, 0x800 /* unwritten */},
        };
        static const Segment one[] = {{0, 100, 5000}};
        g_autoptr(ExtentMap) map = map_new(extents, G_N_ELEMENTS(extents));
        g_autoptr(Plan) plan = plan_new(4096, 4096);
        g_autoptr(GArray) in = segments(one, 1);

        plan_add_range(plan, 7, map, 0, 3ULL << 30);
        g_assert_cmpuint(plan->pieces->len, ==, 2);
        g_assert_cmpuint(plan_blocks(plan), ==, 10);
        g_assert_cmpuint(plan_donor_blocks(plan), ==, 10);
        g_assert_true(plan_place(plan, in));
        is_piece(plan, 0, 7, 0, 2, 0);
        is_piece(plan, 1, 7, (1ULL << 30) >> 12, 8, 2);
        g_assert_cmpuint(plan_runs_after(plan, in), ==, 1);
}

static void
test_overlap(void)
{
        static const Extent extents[] = {{0, 100 << 12, 100 << 12, 0}};
        g_autoptr(ExtentMap) map = map_new(extents, 1);
        g_autoptr(Plan) plan = plan_new(4096, 4096);

        plan_add_range(plan, 1, map, 10 << 12, 10 << 12);
        plan_add_range(plan, 2, map, 0, 100 << 12);
        plan_add_range(plan, 1, map, 30 << 12, 10 << 12);
        plan_add_range(plan, 1, map, 0, 100 << 12);
        g_assert_cmpuint(plan_blocks(plan), ==, 200);
        is_piece(plan, 0, 1, 10, 10, 0);
        is_piece(plan, 2, 1, 30, 10, 0);
        is_piece(plan, 3, 1, 0, 10, 0);
        is_piece(plan, 4, 1, 20, 10, 0);
        is_piece(plan, 5, 1, 40, 60, 0);
        plan_drop_file(plan, 1);
        g_assert_cmpuint(plan->pieces->len, ==, 1);
        is_piece(plan, 0, 2, 0, 100, 0);
}

static void
test_small_blocks(void)
{
        /* 1 KiB blocks in 4 KiB pages: offsets agree modulo 4. */
        static const Extent extents[] = {{0, 0x100000, 5 << 10, 0},
                                         {6 << 10, 0x200000, 3 << 10, 0}};
        static const Segment one[] = {{4, 60, 5000}};
        g_autoptr(ExtentMap) map = map_new(extents, 2);
        g_autoptr(Plan) plan = plan_new(1024, 4096);
        g_autoptr(GArray) in = segments(one, 1);

        for (guint32 file = 0; file < 3; file++)
                plan_add_range(plan, file, map, 0, 12 << 10);
        g_assert_true(plan_place(plan, in));
        g_assert_cmpuint(plan->pieces->len, ==, 6);
        for (guint i = 0; i < 6; i++) {
                g_assert_cmpuint(piece(plan, i)->donor_block % 4, ==,
                                 piece(plan, i)->logical_block % 4);
                if (i > 0)
                        g_assert_cmpuint(piece(plan, i)->donor_block, >=,
                                         piece(plan, i - 1)->donor_block +
                                                 piece(plan, i - 1)->blocks);
        }
        g_assert_cmpuint(piece(plan, 5)->donor_block + 3 - 4, <=, plan_donor_blocks(plan));
        g_assert_cmpuint(plan_runs_after(plan, in), ==, 1);
}

static void
test_segments(void)
{
        static const Segment all[] = {{0, 10, 1000}, {10, 50, 9000}, {60, 30, 200}, {90, 40, 5000}};
        static const Extent extents[] = {{0, 100 << 12, 75 << 12, 0}};
        g_autoptr(ExtentMap) map = map_new(extents, 1);
        g_autoptr(Plan) plan = plan_new(4096, 4096);
        g_autoptr(GArray) in = segments(all, 4);
        GArray *chosen = segments_choose(in, 25, 1);

        /* The smallest run that holds all. */
        g_assert_cmpuint(chosen->len, ==, 1);
        g_assert_cmpuint(g_array_index(chosen, Segment, 0).donor_block, ==, 60);
        g_assert_cmpuint(g_array_index(chosen, Segment, 0).blocks, ==, 25);
        g_array_unref(chosen);
        /* Two are needed: the largest two, in order of place. */
        chosen = segments_choose(in, 75, 1);
        g_assert_cmpuint(chosen->len, ==, 2);
        g_assert_cmpuint(g_array_index(chosen, Segment, 0).physical_block, ==, 5000);
        g_assert_cmpuint(g_array_index(chosen, Segment, 1).physical_block, ==, 9000);
        plan_add_range(plan, 0, map, 0, 75 << 12);
        g_assert_true(plan_place(plan, chosen));
        is_piece(plan, 0, 0, 0, 40, 90);
        is_piece(plan, 1, 0, 40, 35, 10);
        g_assert_cmpuint(plan_runs_after(plan, chosen), ==, 2);
        g_array_unref(chosen);
        g_assert_null(segments_choose(in, 131, 1));
        /* Aligned beginnings cost blocks. */
        chosen = segments_choose(in, 40, 4);
        g_assert_cmpuint(chosen->len, ==, 1);
        g_assert_cmpuint(g_array_index(chosen, Segment, 0).donor_block, ==, 12);
        g_assert_cmpuint(g_array_index(chosen, Segment, 0).physical_block, ==, 9002);
        g_array_unref(chosen);
        g_array_set_size(in, 0);
        g_assert_null(segments_choose(in, 1, 1));
        g_assert_false(plan_place(plan, in));
}

static void
test_runs(void)
{
        static const Extent extents[] = {
                {0, 1 << 20, 4096, 0},
                {0, (1 << 20) + 4096, 8192, 0},  /* goes on */
                {0, (1 << 20) + 13312, 4096, 0}, /* a gap of 1 KiB: within a page */
                {0, (1 << 20) + 21504, 4096, 0}, /* a gap of a page */
                {0, 0, 4096, 0},                 /* back */
        };
        g_autoptr(GArray) list = g_array_new(FALSE, FALSE, sizeof(Extent));

        g_assert_cmpuint(layout_runs(list, 4096), ==, 0);
        g_array_append_vals(list, extents, G_N_ELEMENTS(extents));
        g_assert_cmpuint(layout_runs(list, 4096), ==, 3);
}

static void
test_large(void)
{
        /* Blocks beyond 2^32 (case 49). */
        static const Extent extents[] = {{0, 1ULL << 50, 1 << 20, 0}};
        static const Segment one[] = {{1ULL << 33, 256, 1ULL << 40}};
        g_autoptr(ExtentMap) map = map_new(extents, 1);
        g_autoptr(Plan) plan = plan_new(4096, 4096);
        g_autoptr(GArray) in = segments(one, 1);

        plan_add_range(plan, 0, map, 0, 1 << 20);
        g_assert_true(plan_place(plan, in));
        is_piece(plan, 0, 0, 0, 256, 1ULL << 33);
}

int
main(int argc, char **argv)
{
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/plan/sparse", test_sparse);
        g_test_add_func("/plan/overlap", test_overlap);
        g_test_add_func("/plan/small-blocks", test_small_blocks);
        g_test_add_func("/plan/segments", test_segments);
        g_test_add_func("/plan/runs", test_runs);
        g_test_add_func("/plan/large", test_large);
        return g_test_run();
}
