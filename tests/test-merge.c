// SPDX-License-Identifier: GPL-2.0-or-later
/* Recording again under a name: what the last start decides, what is kept of the two before. */
#include <string.h>

#include "profiler/merge.h"

#define PAGE 4096
#define T0 1000000000LL /* created, microseconds */

/* Words: "PATH:FIRST+PAGES[,FIRST+PAGES...][@MTIME]" in order of use, one every 10 us. The inode
 * follows from the path. */
static Profile *
start(gint64 created_us, const char *text)
{
        Profile *profile = profile_new("p");
        g_auto(GStrv) words = g_strsplit(text, " ", -1);
        guint64 now_us = 10;

        profile->created_us = created_us;
        profile->elapsed_us = 5000;
        g_ptr_array_add(profile->argv, g_strdup("prog"));
        profile_add_fs(profile, "uuid-1", "ext4", 4096);
        for (guint w = 0; words[w]; w++) {
                g_auto(GStrv) time = g_strsplit(words[w], "@", 2);
                g_auto(GStrv) parts = g_strsplit(time[0], ":", 2);
                g_auto(GStrv) ranges = NULL;
                ProfileFile file = {.inode = g_str_hash(parts[0]),
                                    .size_bytes = 1000 * PAGE,
                                    .mtime_ns = time[1] ? g_ascii_strtoll(time[1], NULL, 10) * 1000
                                                        : 77,
                                    .first_use_us = now_us,
                                    .path = parts[0]};
                ProfileMeta meta = {.kind = PROFILE_META_INODE,
                                    .flags = PROFILE_META_COMPUTED,
                                    .inode = file.inode,
                                    .first_use_us = now_us};
                guint32 index;

                if (!*words[w])
                        continue;
                index = profile_add_file(profile, &file);
                g_array_append_val(profile->meta, meta);
                ranges = g_strsplit(parts[1] ? parts[1] : "0+1", ",", -1);
                for (guint i = 0; ranges[i]; i++) {
                        ProfileRange range = {
                                .file = index, .cause = PROFILE_CAUSE_MAP, .first_use_us = now_us};
                        char *end;

                        if (*ranges[i] == 'r') /* looked up by read(2) */
                                range.cause = PROFILE_CAUSE_READ;
                        range.offset_bytes =
                                g_ascii_strtoull(ranges[i] + (*ranges[i] == 'r'), &end, 10) * PAGE;
                        range.length_bytes = g_ascii_strtoull(end + 1, NULL, 10) * PAGE;
                        g_array_append_val(profile->ranges, range);
                        now_us += 10;
                }
        }
        g_assert_true(profile_validate(profile, NULL));
        return profile;
}

/* The paths in order, LOW ones in brackets. */
static gchar *
paths(const Profile *profile)
{
        GString *out = g_string_new(NULL);

        for (guint i = 0; i < profile->files->len; i++) {
                const ProfileFile *file = &g_array_index(profile->files, ProfileFile, i);
                gboolean low = (file->flags & PROFILE_FILE_LOW) != 0;

                g_string_append_printf(out, "%s%s%s%s", out->len ? " " : "", low ? "(" : "",
                                       file->path, low ? ")" : "");
        }
        return g_string_free(out, FALSE);
}

/* The ranges in order: "PATH:FIRST+PAGES"; '!' behind exact ones. */
static gchar *
ranges(const Profile *profile)
{
        GString *out = g_string_new(NULL);

        for (guint i = 0; i < profile->ranges->len; i++) {
                const ProfileRange *range = &g_array_index(profile->ranges, ProfileRange, i);

                g_string_append_printf(out, "%s%s:%" G_GUINT64_FORMAT "+%" G_GUINT64_FORMAT "%s",
                                       out->len ? " " : "",
                                       g_array_index(profile->files, ProfileFile, range->file).path,
                                       range->offset_bytes / PAGE, range->length_bytes / PAGE,
                                       range->flags & PROFILE_RANGE_EXACT ? "!" : "");
        }
        return g_string_free(out, FALSE);
}

static void
merge(Profile *last, const Profile *earlier, const MergeOptions *options, MergeResult *ret)
{
        g_autoptr(GError) error = NULL;

        merge_profile(last, earlier, options, ret);
        profile_validate(last, &error);
        g_assert_no_error(error);
}

#define IS(function, profile, expected)                                                            \
        do {                                                                                       \
                g_autofree gchar *got = function(profile);                                         \
                                                                                                   \
                g_assert_cmpstr(got, ==, expected);                                                \
        } while (0)

/* Merges the starts one after another, a second apart; returns the last. */
static Profile *
merged(const char *const *texts)
{
        g_autoptr(Profile) profile = NULL;

        for (guint i = 0; texts[i]; i++) {
                g_autoptr(Profile) last = start(T0 + i * 1000000, texts[i]);
                g_auto(MergeResult) result = {0};

                merge(last, profile, NULL, &result);
                profile_free(profile);
                profile = g_steal_pointer(&last);
        }
        return g_steal_pointer(&profile);
}

static void
test_with_itself(void)
{
        g_autoptr(Profile) once = merged((const char *const[]){"/a:0+2,9+1 /b:5+5 /c", NULL});
        g_autoptr(Profile) more =
                merged((const char *const[]){"/a:0+2,9+1 /b:5+5 /c", "/a:0+2,9+1 /b:5+5 /c",
                                             "/a:0+2,9+1 /b:5+5 /c", "/a:0+2,9+1 /b:5+5 /c", NULL});

        IS(paths, more, "/a /b /c");
        IS(ranges, more, "/a:0+2 /a:9+1 /b:5+5 /c:0+1");
        g_assert_cmpmem(once->ranges->data, once->ranges->len * sizeof(ProfileRange),
                        more->ranges->data, more->ranges->len * sizeof(ProfileRange));
        g_assert_cmpuint(more->meta->len, ==, 3);
        g_assert_cmpuint(more->changing->len, ==, 0);
        g_assert_cmpuint(g_array_index(once->files, ProfileFile, 0).flags, ==,
                         1U << PROFILE_SEEN_SHIFT);
        g_assert_cmpuint(g_array_index(more->files, ProfileFile, 0).flags, ==, PROFILE_SEEN_MASK);
}

static void
test_last_wins(void)
{
        g_autoptr(Profile) p =
                merged((const char *const[]){"/a:0+2 /b:5+5 /c", "/c /b:6+1,0+1", NULL});
        g_autoptr(Profile) q = merged((const char *const[]){"/a /b", "/b /c", "/c /d", NULL});
        g_autoptr(Profile) r =
                merged((const char *const[]){"/a /b", "/b /c", "/c /d", "/a /e", NULL});

        IS(paths, p, "/c /b (/a)");
        IS(ranges, p, "/c:0+1 /b:6+1 /b:0+1 /a:0+2");
        IS(paths, q, "/c /d (/b) (/a)");
        IS(paths, r, "/a /e (/c) (/d) (/b)");
        g_assert_cmpuint(r->meta->len, ==, 5);
}

static void
test_dropped(void)
{
        g_autoptr(Profile) two = merged((const char *const[]){"/a /b", "/a", "/a", NULL});
        g_autoptr(Profile) three = merged((const char *const[]){"/a /b", "/a", "/a", "/a", NULL});

        IS(paths, two, "/a (/b)");
        IS(paths, three, "/a");
        g_assert_cmpuint(three->meta->len, ==, 1);
}

static gboolean
is_bin(const Profile *profile, const ProfileFile *file, gpointer data)
{
        (void)profile;
        (void)data;
        return g_str_has_prefix(file->path, "/bin/");
}

static void
test_changing(void)
{
        /* written after the first recording had begun; an upgrade brings an old time; a program
         * that was built anew stays */
        g_autoptr(Profile) first = start(T0, "/cache@5 /lib@5 /bin/x@5 /a");
        g_autoptr(Profile) second =
                start(T0 + 1000000, "/cache@1000000500 /lib@6 /bin/x@1000000500 /a");
        g_autoptr(Profile) third = start(T0 + 2000000, "/a /cache@1001500000");
        g_autoptr(Profile) fourth = start(T0 + 3000000, "/cache@1001500000 /a");
        g_autoptr(Profile) fifth = start(T0 + 4000000, "/a");
        MergeOptions options = {.is_program = is_bin};
        g_auto(MergeResult) r1 = {0}, r2 = {0}, r3 = {0}, r4 = {0}, r5 = {0};

        merge(first, NULL, &options, &r1);
        merge(second, first, &options, &r2);
        IS(paths, second, "/lib /bin/x /a");
        g_assert_cmpuint(r2.changing->len, ==, 1);
        g_assert_nonnull(strstr(r2.changing->pdata[0], "another modification time"));
        g_assert_cmpstr(g_array_index(second->changing, ProfileFile, 0).path, ==, "/cache");
        merge(third, second, &options, &r3);
        IS(paths, third, "/a (/lib) (/bin/x)");
        g_assert_cmpuint(r3.changing->len, ==, 1);
        g_assert_cmpuint(third->changing->len, ==, 1);
        /* it stayed as it was: taken in again */
        merge(fourth, third, &options, &r4);
        IS(paths, fourth, "/cache /a (/lib) (/bin/x)");
        g_assert_cmpuint(fourth->changing->len, ==, 0);
        merge(fifth, fourth, &options, &r5);
        IS(paths, fifth, "/a (/cache)");
}

static void
test_changing_is_forgotten(void)
{
        static const char *const texts[] = {"/c@5 /a", "/c@1000000500 /a", "/a", "/a", "/a", NULL};
        g_autoptr(Profile) p = merged(texts);

        g_assert_cmpuint(p->changing->len, ==, 0);
        IS(paths, p, "/a");
}

static void
test_left_out(void)
{
        g_autoptr(Profile) first = start(T0, "/a /log /b"), second = start(T0 + 1, "/a");
        g_autoptr(GPtrArray) left_out = g_ptr_array_new();
        MergeOptions options = {.left_out = left_out};
        g_auto(MergeResult) result = {0};

        g_ptr_array_add(left_out, (gpointer) "uuid-1:/log");
        merge(second, first, &options, &result);
        IS(paths, second, "/a (/b)");
        g_assert_cmpuint(result.dropped, ==, 1);
        g_assert_cmpuint(result.kept_low, ==, 1);
}

/* One inode never stands under two names: a relocation would move it twice. */
static void
test_renamed(void)
{
        g_autoptr(Profile) first = start(T0, "/old /a"), second = start(T0 + 1, "/new /a");
        g_auto(MergeResult) result = {0};

        g_array_index(second->files, ProfileFile, 0).inode =
                g_array_index(first->files, ProfileFile, 0).inode;
        merge(second, first, NULL, &result);
        IS(paths, second, "/new /a");
}

static void
test_exact_wins(void)
{
        g_autoptr(Profile) exact = start(T0, "/a:5+1,0+1,100+1 /b:3+1");
        g_autoptr(Profile) warm =
                start(T0 + 1, "/b:0+16 /a:0+16,r200+2,r20+1,32+16,r400+1,401+15 /n:0+4");
        g_autoptr(Profile) again = start(T0 + 2, "/a:0+16,r300+1 /b:0+16");
        g_autoptr(Profile) exact_again = start(T0 + 3, "/a:7+1");
        g_auto(MergeResult) r1 = {0}, r2 = {0}, r3 = {0}, r4 = {0};

        exact->exact = exact_again->exact = TRUE;
        merge(exact, NULL, NULL, &r1);
        merge(warm, exact, NULL, &r2);
        g_assert_cmpuint(r2.kept_ranges, ==, 2);
        /* a window of fault-around is not taken but where no page known explains it, what was
         * looked up is; page 100 follows page 0, as it did */
        IS(ranges, warm,
           "/b:3+1! /a:0+1! /a:5+1! /a:100+1! /a:200+2 /a:20+1 /a:32+16 /a:400+1 /n:0+4");
        g_assert_false(warm->exact);
        /* what was looked up once is not kept for ever */
        merge(again, warm, NULL, &r3);
        IS(ranges, again, "/a:0+1! /a:5+1! /a:100+1! /a:300+1 /b:3+1! /n:0+4");
        merge(exact_again, again, NULL, &r4);
        IS(ranges, exact_again, "/a:7+1! /b:3+1! /n:0+4");
}

static void
test_exact_of_changed_file(void)
{
        g_autoptr(Profile) exact = start(T0, "/a:5+1@5"), warm = start(T0 + 1, "/a:0+16@6");
        g_auto(MergeResult) result = {0};

        exact->exact = TRUE;
        merge(warm, exact, NULL, &result);
        IS(ranges, warm, "/a:0+16");
        g_assert_cmpuint(result.kept_ranges, ==, 0);
}

static void
test_worse_source(void)
{
        g_autoptr(Profile) used = start(T0, "/a:5+1 /b:0+1");
        g_autoptr(Profile) opens = start(T0 + 1, "/c:0+9 /a:0+1000");
        g_auto(MergeResult) result = {0};

        opens->source = PROFILE_SOURCE_OPENS;
        merge(opens, used, NULL, &result);
        IS(ranges, opens, "/c:0+9 /a:5+1 /b:0+1");
        g_assert_cmpint(opens->source, ==, PROFILE_SOURCE_USED_PAGES);
}

static void
test_incomplete(void)
{
        g_autoptr(Profile) whole = start(T0, "/a:0+3,9+1 /b /c"), holes = NULL;

        for (guint i = 1; i < 6; i++) {
                g_auto(MergeResult) result = {0};

                g_clear_pointer(&holes, profile_free);
                holes = start(T0 + i, "/a:2+2");
                holes->complete = FALSE;
                merge(holes, whole, NULL, &result);
                profile_free(whole);
                whole = g_steal_pointer(&holes);
                whole->complete = TRUE; /* each time onto something complete */
        }
        IS(paths, whole, "/a (/b) (/c)");
        IS(ranges, whole, "/a:0+3 /a:3+1 /a:9+1 /b:0+1 /c:0+1");
}

static void
test_fs(void)
{
        g_autoptr(Profile) first = start(T0, "/a /b"), second = start(T0 + 1, "/a");
        g_auto(MergeResult) result = {0};
        ProfileFs *fs = &g_array_index(second->fs, ProfileFs, 0);

        g_free(fs->uuid);
        fs->uuid = g_strdup("uuid-2");
        merge(second, first, NULL, &result);
        IS(paths, second, "/a (/a) (/b)");
        g_assert_cmpuint(second->fs->len, ==, 2);
        g_assert_cmpuint(g_array_index(second->files, ProfileFile, 1).fs, ==, 1);
        g_assert_cmpuint(g_array_index(second->meta, ProfileMeta, 2).fs, ==, 1);
}

static void
test_waits_and_processes(void)
{
        g_autoptr(Profile) first = start(T0, "/c@5 /a"), second = start(T0 + 1, "/c@1000000500 /a");
        ProfileWait waits[2] = {{.file = 1, .start_us = 1}, {.file = 2, .start_us = 2}};
        g_auto(MergeResult) result = {0};

        g_array_append_vals(second->waits, waits, 2);
        merge(second, first, NULL, &result);
        IS(paths, second, "/a");
        g_assert_cmpuint(g_array_index(second->waits, ProfileWait, 0).file, ==, 0);
        g_assert_cmpuint(g_array_index(second->waits, ProfileWait, 1).file, ==, 1);
}

/* Random starts: never more than three starts' worth, the last one's files first and in its order,
 * no page twice (merge() checks), and no page of an unused file lost before its time. */
static void
test_growth(void)
{
        g_autoptr(Profile) profile = NULL;
        guint most = 0;

        for (guint round = 0; round < 100; round++) {
                g_autoptr(GString) text = g_string_new(NULL);
                g_autoptr(GHashTable) used = g_hash_table_new(g_direct_hash, g_direct_equal);
                g_autoptr(Profile) last = NULL;
                g_autofree gchar *before = NULL, *after = NULL;
                g_auto(MergeResult) result = {0};

                for (guint i = 0; i < 40; i++) {
                        guint n = (guint)g_test_rand_int_range(0, 2000);

                        if (!g_hash_table_add(used, GUINT_TO_POINTER(n + 1)))
                                continue;
                        g_string_append_printf(text, "%s/f%u:r%d+%d,r500+%d", text->len ? " " : "",
                                               n, g_test_rand_int_range(0, 200),
                                               g_test_rand_int_range(1, 90),
                                               g_test_rand_int_range(1, 90));
                }
                last = start(T0 + round * 1000, text->str);
                last->exact = g_test_rand_int_range(0, 4) == 0;
                last->complete = g_test_rand_int_range(0, 10) != 0 || round % 3 == 0;
                before = paths(last);
                merge(last, profile, NULL, &result);
                after = paths(last);
                g_assert_true(g_str_has_prefix(after, before));
                most = MAX(most, last->files->len);
                g_assert_cmpuint(last->meta->len, ==, last->files->len);
                profile_free(profile);
                profile = g_steal_pointer(&last);
        }
        /* incomplete starts age nothing: up to three of them lie between complete ones */
        g_assert_cmpuint(most, <=, 40 * 9);
        g_assert_cmpuint(most, >, 80);
}

static void
test_same_program(void)
{
        g_autoptr(Profile) a = start(T0, "/a"), b = start(T0, "/a"), boot = start(T0, "/a");

        g_ptr_array_add(b->argv, g_strdup("--other"));
        g_assert_true(merge_same_program(a, b));
        g_ptr_array_set_size(boot->argv, 0);
        g_assert_false(merge_same_program(a, boot));
        g_assert_true(merge_same_program(boot, boot));
}

int
main(int argc, char **argv)
{
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/merge/with-itself", test_with_itself);
        g_test_add_func("/merge/last-wins", test_last_wins);
        g_test_add_func("/merge/dropped", test_dropped);
        g_test_add_func("/merge/changing", test_changing);
        g_test_add_func("/merge/changing-is-forgotten", test_changing_is_forgotten);
        g_test_add_func("/merge/left-out", test_left_out);
        g_test_add_func("/merge/renamed", test_renamed);
        g_test_add_func("/merge/exact-wins", test_exact_wins);
        g_test_add_func("/merge/exact-of-changed-file", test_exact_of_changed_file);
        g_test_add_func("/merge/worse-source", test_worse_source);
        g_test_add_func("/merge/incomplete", test_incomplete);
        g_test_add_func("/merge/file-systems", test_fs);
        g_test_add_func("/merge/waits", test_waits_and_processes);
        g_test_add_func("/merge/growth", test_growth);
        g_test_add_func("/merge/same-program", test_same_program);
        return g_test_run();
}
