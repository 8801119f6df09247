// SPDX-License-Identifier: GPL-2.0-or-later
/* Merging used ranges over gaps, in order of first use. */
#include "common/ranges.h"

static Profile *
make(const guint64 (*ranges)[4], guint n)
{
        Profile *profile = profile_new("x");

        profile_add_fs(profile, "", "ext4", 4096);
        for (guint i = 0; i < 3; i++) {
                ProfileFile file = {.inode = i + 1,
                                    .size_bytes = 40 * 4096 - 100,
                                    .first_use_us = i,
                                    .path = (gchar *)"/x"};

                profile_add_file(profile, &file);
        }
        for (guint i = 0; i < n; i++) {
                ProfileRange r = {.file = ranges[i][0],
                                  .offset_bytes = ranges[i][1] * 4096,
                                  .length_bytes = ranges[i][2] * 4096,
                                  .first_use_us = ranges[i][3]};

                g_array_append_val(profile->ranges, r);
        }
        g_assert_true(profile_validate(profile, NULL));
        return profile;
}

#define AT(i) g_array_index(out, OrderedRange, i)

static void
test_gaps(void)
{
        static const guint64 r[][4] = {
                {0, 10, 2, 1}, {1, 0, 1, 2}, {0, 16, 1, 3}, {0, 22, 1, 4}, {0, 8, 1, 5}};
        g_autoptr(Profile) p = make(r, G_N_ELEMENTS(r));
        g_autoptr(GArray) out = ranges_from_profile(p, NULL);

        /* 8 and 10-11 and 16 join (gaps of 1 and 4 pages), 22 does not (5 pages) */
        g_assert_cmpuint(out->len, ==, 3);
        g_assert_cmpuint(AT(0).offset_bytes, ==, 8 * 4096);
        g_assert_cmpuint(AT(0).length_bytes, ==, 9 * 4096);
        g_assert_cmpuint(AT(0).used_bytes, ==, 4 * 4096);
        g_assert_cmpuint(AT(0).first_use_us, ==, 1);
        g_assert_cmpuint(AT(1).file, ==, 1);
        g_assert_cmpuint(AT(2).offset_bytes, ==, 22 * 4096);
        g_assert_cmpuint(ranges_total_bytes(out), ==, 11 * 4096);
}

static void
test_window(void)
{
        static const guint64 r[][4] = {{0, 0, 1, 1}, {0, 1, 1, 1000}};
        g_autoptr(Profile) p = make(r, G_N_ELEMENTS(r));
        RangesOptions options = {.gap_bytes = 0, .window_us = 500};
        g_autoptr(GArray) out = ranges_from_profile(p, &options);

        g_assert_cmpuint(out->len, ==, 2);
        options.window_us = 0;
        g_array_unref(out);
        out = ranges_from_profile(p, &options);
        g_assert_cmpuint(out->len, ==, 1);
}

static void
test_end_of_file(void)
{
        static const guint64 r[][4] = {{2, 38, 2, 1}};
        g_autoptr(Profile) p = make(r, G_N_ELEMENTS(r));
        g_autoptr(GArray) out = ranges_from_profile(p, NULL);

        g_assert_cmpuint(AT(0).length_bytes, ==, 2 * 4096);
        /* 100 bytes short of the page's end are not used */
        g_assert_cmpuint(profile_used_bytes(p), ==, 2 * 4096 - 100);
}

static void
test_whole(void)
{
        static const guint64 r[][4] = {{1, 3, 2, 7}};
        g_autoptr(Profile) p = make(r, G_N_ELEMENTS(r));
        RangesOptions options = {.whole_files = TRUE};
        g_autoptr(GArray) out = ranges_from_profile(p, &options);

        g_assert_cmpuint(out->len, ==, 3);
        g_assert_cmpuint(AT(1).length_bytes, ==, 40 * 4096);
        g_assert_cmpuint(AT(1).used_bytes, ==, 2 * 4096);
}

int
main(int argc, char **argv)
{
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/ranges/gaps", test_gaps);
        g_test_add_func("/ranges/window", test_window);
        g_test_add_func("/ranges/end-of-file", test_end_of_file);
        g_test_add_func("/ranges/whole", test_whole);
        return g_test_run();
}
