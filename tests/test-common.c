// SPDX-License-Identifier: GPL-2.0-or-later
/* Quoting, JSON paths, whole files. */
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.h"
#include "common/file.h"
#include "common/json.h"
#include "common/quote.h"

static void
test_quote(void)
{
        static const char *const pairs[][2] = {
                {"/usr/bin/x", "/usr/bin/x"},
                {"a b", "a b"},
                {"a\nb", "a\\nb"},
                {"bad\xff", "bad\\xff"},
                {"\033[31mred", "\\x1b[31mred"},
                {"back\\slash", "back\\\\slash"},
                {"\xc3\xa4", "\xc3\xa4"},
                {"cut\xc3", "cut\\xc3"},
                {"\xe2\x80\xae", "\\xe2\\x80\\xae"}, /* right-to-left override */
        };

        for (guint i = 0; i < G_N_ELEMENTS(pairs); i++) {
                g_autofree gchar *got = path_quote(pairs[i][0]);

                g_assert_cmpstr(got, ==, pairs[i][1]);
        }
}

static void
test_json_path(void)
{
        g_autoptr(JsonBuilder) builder = json_builder_new();
        g_autoptr(JsonNode) root = NULL;
        JsonObject *object;
        g_autofree guchar *bytes = NULL;
        gsize length;

        json_builder_begin_object(builder);
        json_add_path(builder, "path", "bad\xff\n");
        json_add_path(builder, "plain", "\xc3\xa4\n");
        json_builder_end_object(builder);
        root = json_builder_get_root(builder);
        object = json_node_get_object(root);
        g_assert_cmpstr(json_object_get_string_member(object, "path"), ==, "bad\\xff\\n");
        bytes = g_base64_decode(json_object_get_string_member(object, "path_base64"), &length);
        g_assert_cmpmem(bytes, length, "bad\xff\n", 5);
        g_assert_cmpstr(json_object_get_string_member(object, "plain"), ==, "\xc3\xa4\n");
        g_assert_false(json_object_has_member(object, "plain_base64"));
}

static void
test_file(void)
{
        g_autofree gchar *dir = g_dir_make_tmp("hs-XXXXXX", NULL);
        g_autofree gchar *path = g_build_filename(dir, "f", NULL);
        g_autofree gchar *link = g_build_filename(dir, "link", NULL);
        g_autofree gchar *fifo = g_build_filename(dir, "fifo", NULL);
        g_autoptr(GError) error = NULL;
        g_autoptr(GBytes) read = NULL;
        struct stat st;

        g_assert_true(file_replace(path, "one", 3, 0640, NULL));
        g_assert_true(file_replace(path, "three", 5, 0640, NULL));
        read = file_read(path, 5, NULL);
        g_assert_cmpmem(g_bytes_get_data(read, NULL), g_bytes_get_size(read), "three", 5);
        g_assert_cmpint(g_stat(path, &st), ==, 0);
        g_assert_cmpuint(st.st_mode & 0777, ==, 0640);
        g_assert_null(file_read(path, 4, &error));
        g_assert_error(error, COMMON_ERROR, COMMON_ERROR_INPUT);
        g_clear_error(&error);
        /* must return at once, not wait for a writer */
        g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
        g_assert_null(file_read(fifo, 100, &error));
        g_assert_error(error, COMMON_ERROR, COMMON_ERROR_INPUT);
        g_clear_error(&error);
        /* a pipe is written to, not replaced; without a reader that is an error, not a wait */
        g_assert_false(file_replace(fifo, "x", 1, 0600, &error));
        g_assert_error(error, COMMON_ERROR, COMMON_ERROR_FAILED);
        g_clear_error(&error);
        g_assert_cmpint(g_lstat(fifo, &st), ==, 0);
        g_assert_true(S_ISFIFO(st.st_mode));
        g_assert_false(file_replace(dir, "x", 1, 0600, NULL));
        /* through a link */
        g_assert_cmpint(symlink("f", link), ==, 0);
        g_assert_true(file_replace(link, "four", 4, 0600, NULL));
        g_assert_cmpint(g_lstat(link, &st), ==, 0);
        g_assert_true(S_ISLNK(st.st_mode));
        g_assert_cmpint(g_stat(path, &st), ==, 0);
        g_assert_cmpint(st.st_size, ==, 4);
        g_unlink(link);
        g_unlink(fifo);
        g_unlink(path);
        /* the temporary file is gone too, or this fails */
        g_assert_cmpint(g_rmdir(dir), ==, 0);
}

int
main(int argc, char **argv)
{
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/common/quote", test_quote);
        g_test_add_func("/common/json-path", test_json_path);
        g_test_add_func("/common/file", test_file);
        return g_test_run();
}
