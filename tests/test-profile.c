// SPDX-License-Identifier: GPL-2.0-or-later
/* The profile's file: what is saved is loaded, what is damaged is refused. */
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "common/error.h"
#include "common/file.h"
#include "common/profile.h"

static Profile *
sample(void)
{
        Profile *profile = profile_new("sample");
        static const char *const paths[] = {"/a b", "/a\nb", "/bad\xff", "/usr/lib/x"};

        g_ptr_array_add(profile->argv, g_strdup("cat"));
        g_ptr_array_add(profile->argv, g_strdup("bad\xff"));
        profile->created_us = 1234567;
        profile->elapsed_us = 99;
        profile->cpu_us = 42;
        profile->warm_us = 0;
        profile->exact = TRUE;
        profile->complete = FALSE;
        profile->lost_events = 7;
        profile_add_fs(profile, "0b1e6a4c-0000-4000-8000-000000000001", "ext4", 4096);
        for (guint i = 0; i < G_N_ELEMENTS(paths); i++) {
                ProfileFile file = {.inode = 12 + i,
                                    .generation = 5,
                                    .size_bytes = 100000,
                                    .mtime_ns = -5,
                                    .first_use_us = i * 10,
                                    .path = (gchar *)paths[i]};
                ProfileRange range = {.file = i,
                                      .cause = PROFILE_CAUSE_FAULT,
                                      .offset_bytes = 4096 * i,
                                      .length_bytes = 8192,
                                      .first_use_us = i * 10};

                profile_add_file(profile, &file);
                g_array_append_val(profile->ranges, range);
        }
        {
                ProfileProcess first = {.pid = 100, .comm = (gchar *)"sh", .start_us = 1};
                ProfileProcess second = {.pid = 101, .parent = 1, .exit_us = 90};
                ProfileMark mark = {.time_us = 50, .process = 2, .text = (gchar *)"shown\xff"};
                ProfileWait wait = {.process = 2,
                                    .tid = 101,
                                    .reason = PROFILE_WAIT_TERMINAL,
                                    .syscall = -1,
                                    .file = 4,
                                    .start_us = 3,
                                    .length_us = 9};

                g_assert_cmpuint(profile_add_process(profile, &first), ==, 1);
                g_assert_cmpuint(profile_add_process(profile, &second), ==, 2);
                profile_add_mark(profile, &mark);
                g_array_append_val(profile->waits, wait);
                g_array_index(profile->ranges, ProfileRange, 3).process = 2;
                g_array_index(profile->ranges, ProfileRange, 3).stall_us = 77;
                g_array_index(profile->ranges, ProfileRange, 3).flags = PROFILE_RANGE_MISS;
        }
        {
                ProfileFile cache = {.inode = 99, .mtime_ns = 7, .path = (gchar *)"/c\xff"};

                cache.path = g_strdup(cache.path);
                g_array_append_val(profile->changing, cache);
        }
        {
                ProfileMeta meta = {.kind = PROFILE_META_DIR_BLOCK,
                                    .flags = PROFILE_META_SEEN,
                                    .inode = 2,
                                    .index = 3,
                                    .first_use_us = 1};

                g_array_append_val(profile->meta, meta);
        }
        return profile;
}

static void
test_round_trip(void)
{
        g_autofree gchar *dir = g_dir_make_tmp("hs-XXXXXX", NULL);
        g_autofree gchar *path = g_build_filename(dir, "p", NULL);
        g_autoptr(Profile) a = sample(), b = NULL;
        g_autoptr(GError) error = NULL;

        g_assert_true(profile_save(a, path, &error));
        g_assert_no_error(error);
        b = profile_load(path, &error);
        g_assert_no_error(error);
        g_assert_cmpstr(b->name, ==, "sample");
        g_assert_cmpuint(b->argv->len, ==, 2);
        g_assert_cmpstr(b->argv->pdata[1], ==, "bad\xff");
        g_assert_cmpint(b->created_us, ==, 1234567);
        g_assert_true(b->exact);
        g_assert_false(b->complete);
        g_assert_cmpuint(b->lost_events, ==, 7);
        g_assert_cmpuint(b->cpu_us, ==, 42);
        g_assert_cmpuint(b->files->len, ==, a->files->len);
        for (guint i = 0; i < a->files->len; i++) {
                const ProfileFile *x = &g_array_index(a->files, ProfileFile, i);
                const ProfileFile *y = &g_array_index(b->files, ProfileFile, i);

                g_assert_cmpstr(x->path, ==, y->path);
                g_assert_cmpint(x->mtime_ns, ==, y->mtime_ns);
                g_assert_cmpuint(x->inode, ==, y->inode);
        }
        g_assert_cmpmem(a->ranges->data, a->ranges->len * sizeof(ProfileRange), b->ranges->data,
                        b->ranges->len * sizeof(ProfileRange));
        g_assert_cmpmem(a->meta->data, a->meta->len * sizeof(ProfileMeta), b->meta->data,
                        b->meta->len * sizeof(ProfileMeta));
        g_assert_cmpmem(a->waits->data, a->waits->len * sizeof(ProfileWait), b->waits->data,
                        b->waits->len * sizeof(ProfileWait));
        g_assert_cmpuint(b->processes->len, ==, 2);
        g_assert_cmpint(g_array_index(b->processes, ProfileProcess, 1).pid, ==, 101);
        g_assert_cmpuint(g_array_index(b->processes, ProfileProcess, 1).parent, ==, 1);
        g_assert_cmpstr(g_array_index(b->processes, ProfileProcess, 0).comm, ==, "sh");
        g_assert_cmpstr(g_array_index(b->marks, ProfileMark, 0).text, ==, "shown\xff");
        g_assert_cmpuint(b->changing->len, ==, 1);
        g_assert_cmpstr(g_array_index(b->changing, ProfileFile, 0).path, ==, "/c\xff");
        g_assert_cmpuint(g_array_index(b->changing, ProfileFile, 0).inode, ==, 99);
        g_assert_cmpuint(profile_used_bytes(b), ==, 4 * 8192);
        g_unlink(path);
        g_rmdir(dir);
}

static void
test_hostile(void)
{
        g_autofree gchar *dir = g_dir_make_tmp("hs-XXXXXX", NULL);
        g_autofree gchar *path = g_build_filename(dir, "p", NULL);
        g_autoptr(Profile) a = sample();
        g_autofree gchar *bytes = NULL;
        gsize size;

        g_assert_true(profile_save(a, path, NULL));
        g_assert_true(g_file_get_contents(path, &bytes, &size, NULL));
        for (gsize cut = 0; cut < size; cut++) {
                g_autoptr(GError) error = NULL;

                g_assert_true(g_file_set_contents(path, bytes, cut, NULL));
                g_assert_null(profile_load(path, &error));
                g_assert_error(error, COMMON_ERROR, COMMON_ERROR_INPUT);
        }
        for (gsize at = 0; at < size; at++) {
                g_autofree gchar *copy = g_memdup2(bytes, size);
                g_autoptr(GError) error = NULL;
                g_autoptr(Profile) loaded = NULL;

                copy[at] ^= 0x41;
                g_assert_true(g_file_set_contents(path, copy, size, NULL));
                loaded = profile_load(path, &error);
                /* the reserved word is not looked at */
                g_assert_true((at >= 12 && at < 16) == (loaded != NULL));
        }
        g_unlink(path);
        g_rmdir(dir);
}

/* The digest proves the bytes, not their sense: bodies with a right digest are checked as well. */
static void
test_invariants(void)
{
#define SPOILED(statement)                                                                         \
        do {                                                                                       \
                g_autoptr(Profile) p = sample();                                                   \
                g_autoptr(GError) error = NULL;                                                    \
                                                                                                   \
                statement;                                                                         \
                g_assert_false(profile_validate(p, &error));                                       \
                g_assert_error(error, COMMON_ERROR, COMMON_ERROR_INPUT);                           \
        } while (0)
#define RANGE(i) g_array_index(p->ranges, ProfileRange, i)
#define FILE_(i) g_array_index(p->files, ProfileFile, i)
        SPOILED(RANGE(0).file = 99);
        SPOILED(RANGE(0).length_bytes = 0);
        SPOILED(RANGE(0).offset_bytes = 1);
        SPOILED(RANGE(0).offset_bytes = G_MAXUINT64 - 4095);
        SPOILED(RANGE(0).length_bytes = G_MAXINT64 - 4095);
        SPOILED(RANGE(3).length_bytes = 1 << 20);
        SPOILED(RANGE(1).first_use_us = 1000);
        SPOILED(RANGE(1).file = 0);
        SPOILED(FILE_(0).fs = 9);
        SPOILED(FILE_(0).first_use_us = 1000);
        SPOILED(strcpy(FILE_(3).path, "usr/lib/x"));
        SPOILED(strcpy(FILE_(3).path, "/usr/../x"));
        SPOILED(strcpy(FILE_(3).path, "/usr//x"));
        SPOILED(strcpy(FILE_(3).path, "/usr/./x"));
        SPOILED(strcpy(FILE_(3).path, "/"));
        SPOILED(g_array_index(p->meta, ProfileMeta, 0).fs = 1);
        SPOILED(g_array_index(p->changing, ProfileFile, 0).fs = 1);
        SPOILED(g_array_index(p->changing, ProfileFile, 0).path[0] = 'c');
        SPOILED(RANGE(0).process = 3);
        SPOILED(g_array_index(p->processes, ProfileProcess, 1).parent = 2);
        SPOILED(g_array_index(p->waits, ProfileWait, 0).file = 5);
        SPOILED(g_array_index(p->waits, ProfileWait, 0).reason = 99);
        SPOILED(g_array_index(p->marks, ProfileMark, 0).process = 3);
        SPOILED(p->page_bytes = 3000);
        SPOILED(strcpy(p->name, "../x"));
}

static void
test_keep_warm(void)
{
        g_autoptr(Profile) warm = sample(), cold = sample(), other = sample();

        warm->warm_us = 100;
        profile_keep_warm(cold, warm);
        g_assert_cmpuint(cold->warm_us, ==, 100);
        cold->warm_us = 140;
        profile_keep_warm(cold, warm);
        g_assert_cmpuint(cold->warm_us, ==, 110);
        g_ptr_array_add(other->argv, g_strdup("more"));
        profile_keep_warm(other, warm);
        g_assert_cmpuint(other->warm_us, ==, 0);
        warm->warm_us = 0;
        cold->warm_us = 140;
        profile_keep_warm(cold, warm);
        g_assert_cmpuint(cold->warm_us, ==, 140);
}

static void
test_names(void)
{
        g_autofree gchar *name = profile_name_from_command("/usr/bin/so ffice");
        g_autofree gchar *dot = profile_name_from_command("..");
        g_autofree gchar *longest = g_strnfill(101, 'x');

        g_assert_cmpstr(name, ==, "so_ffice");
        g_assert_true(profile_name_valid(dot));
        g_assert_true(profile_name_valid("a.b+c@d:e-f_0"));
        g_assert_false(profile_name_valid(""));
        g_assert_false(profile_name_valid("a/b"));
        g_assert_false(profile_name_valid(".x"));
        g_assert_false(profile_name_valid("-x"));
        g_assert_false(profile_name_valid("\xff"));
        g_assert_false(profile_name_valid(longest));
}

static void
test_newer_version(void)
{
        g_autofree gchar *dir = g_dir_make_tmp("hs-XXXXXX", NULL);
        g_autofree gchar *path = g_build_filename(dir, "p", NULL);
        g_autoptr(Profile) a = sample();
        g_autofree gchar *bytes = NULL;
        g_autoptr(GError) error = NULL;
        gsize size;

        g_assert_true(profile_save(a, path, NULL));
        g_assert_true(g_file_get_contents(path, &bytes, &size, NULL));
        bytes[8] = 2;
        g_assert_true(g_file_set_contents(path, bytes, size, NULL));
        g_assert_null(profile_load(path, &error));
        g_assert_nonnull(strstr(error->message, "newer"));
        g_unlink(path);
        g_rmdir(dir);
}

int
main(int argc, char **argv)
{
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/profile/round-trip", test_round_trip);
        g_test_add_func("/profile/hostile", test_hostile);
        g_test_add_func("/profile/invariants", test_invariants);
        g_test_add_func("/profile/keep-warm", test_keep_warm);
        g_test_add_func("/profile/names", test_names);
        g_test_add_func("/profile/newer-version", test_newer_version);
        return g_test_run();
}
