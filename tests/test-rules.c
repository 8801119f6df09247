// SPDX-License-Identifier: GPL-2.0-or-later
/* Rules on paths: what matches, which line decides, what is wrong with a line. */
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "profiler/rules.h"

static gboolean
matches(const char *pattern, const char *path)
{
        g_autoptr(Rules) rules = rules_new();
        g_autoptr(GPtrArray) problems = g_ptr_array_new_with_free_func(g_free);

        rules_add_text(rules, pattern, strlen(pattern), "t", problems);
        g_assert_cmpuint(problems->len, ==, 0);
        g_assert_cmpuint(rules_count(rules), ==, 1);
        return rules_left_out_by(rules, path) != NULL;
}

static void
test_patterns(void)
{
        static const struct {
                const char *pattern, *path;
                gboolean expected;
        } cases[] = {
                {"/var/log/", "/var/log/syslog", TRUE},
                {"/var/log/", "/var/log/a/b/c", TRUE},
                {"/var/log/", "/var/log", FALSE},
                {"/var/log/", "/srv/var/log/x", FALSE},
                {"/var/log/", "/var/logs/x", FALSE},
                {"log/", "/srv/x/log/y", TRUE},
                {"*.log", "/a.log", TRUE},
                {"*.log", "/x/y/a.log", TRUE},
                {"*.log", "/x/y/.log", TRUE},
                {"*.log", "/x.log/y", FALSE},
                {"*.log", "/a.logs", FALSE},
                {"wtmp", "/var/log/wtmp", TRUE},
                {"wtmp", "/wtmp", TRUE},
                {"wtmp", "/var/xwtmp", FALSE},
                {"/a*b", "/axxb", TRUE},
                {"/a*b", "/ax/xb", FALSE},
                {"/a**b", "/ax/xb", TRUE},
                {"/a/**/b", "/a/b", TRUE},
                {"/a/**/b", "/a/x/y/b", TRUE},
                {"/a/**/b", "/a/xb", FALSE},
                {"/**/b", "/b", TRUE},
                {"a/b", "/x/a/b", TRUE},
                {"a/b", "/xa/b", FALSE},
                {"/a?c", "/abc", TRUE},
                {"/a?c", "/a/c", FALSE},
                {"/[a-c]x", "/bx", TRUE},
                {"/[a-c]x", "/dx", FALSE},
                {"/[!a-c]x", "/dx", TRUE},
                {"/[!a-c]x", "/bx", FALSE},
                {"/a[!b]c", "/a/c", FALSE},
                {"/[]]x", "/]x", TRUE},
                {"/[]-]x", "/-x", TRUE},
                {".*.sw[a-p]", "/home/u/.note.txt.swp", TRUE},
                {".*.sw[a-p]", "/home/u/note.txt.swp", FALSE},
                {"\\*", "/*", TRUE},
                {"\\*", "/x", FALSE},
                {"/a\\nb", "/a\nb", TRUE},
                {"/bad\\xff", "/bad\xff", TRUE},
                {"/bad\xff", "/bad\xff", TRUE},
                {"/bad?", "/bad\xff", TRUE},
                {"/\xc3?", "/\xc3\xa4", TRUE},
                {" x", "/ x", TRUE},
                {"x ", "/x", FALSE},
                {"\\#x#", "/d/#x#", TRUE},
                /* two places to come back to */
                {"/**a*b/c", "/xa/yab/c", TRUE},
                {"/**a*b*c", "/a/aXbYc", TRUE},
                {"/**a*b*c", "/aXb/Yc", FALSE},
                {"/*a/*b", "/aa/ab", TRUE},
                {"/**/x*y/**/z", "/1/xy/2/xay/z", TRUE},
                {"/**/x*y/**/z", "/1/xy/2/xay/zz", FALSE},
                {"/*", "/x", TRUE},
                {"/*", "/x/y", FALSE},
                {"**", "/x/y", TRUE},
        };

        for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
                gboolean got = matches(cases[i].pattern, cases[i].path);

                if (got != cases[i].expected)
                        g_error("%s on %s: %d", cases[i].pattern, cases[i].path, got);
        }
}

/* The same answer as a matcher that tries everything, on patterns and paths of few letters. */
static gboolean
slow_match(const char *p, const char *s)
{
        if (!*p)
                return !*s;
        if (p[0] == '*' && p[1] == '*') {
                for (;; s++) {
                        if (slow_match(p + 2, s))
                                return TRUE;
                        if (!*s)
                                return FALSE;
                }
        }
        if (p[0] == '*') {
                for (;; s++) {
                        if (slow_match(p + 1, s))
                                return TRUE;
                        if (!*s || *s == '/')
                                return FALSE;
                }
        }
        return *s && (*p == *s || (*p == '?' && *s != '/')) && slow_match(p + 1, s + 1);
}

static void
test_against_slow(void)
{
        guint hits = 0;

        for (guint round = 0; round < 30000; round++) {
                static const char *const parts[] = {"a", "b", "/", "*", "**", "?", "a", "b"};
                g_autoptr(GString) pattern = g_string_new("/");
                g_autoptr(GString) path = g_string_new("/");

                for (gint n = g_test_rand_int_range(1, 8); n > 0; n--) {
                        const char *part = parts[g_test_rand_int_range(0, 8)];

                        /* stars before a slash mean more */
                        if (*part == '*' && pattern->str[pattern->len - 1] == '*')
                                continue;
                        if (*part == '/' && strchr("*/", pattern->str[pattern->len - 1]))
                                continue;
                        g_string_append(pattern, part);
                }
                if (pattern->str[pattern->len - 1] == '/')
                        g_string_append_c(pattern, 'a');
                for (gint n = g_test_rand_int_range(1, 9); n > 0; n--)
                        g_string_append_c(path, "aab/"[g_test_rand_int_range(0, 4)]);
                hits += slow_match(pattern->str, path->str);
                if (matches(pattern->str, path->str) != slow_match(pattern->str, path->str))
                        g_error("%s on %s", pattern->str, path->str);
        }
        g_assert_cmpuint(hits, >, 1000);
}

static void
test_last_decides(void)
{
        static const char text[] = "# logs\n*.log\n\n!/keep/**\n/keep/not.log\n";
        g_autoptr(Rules) rules = rules_new();

        rules_add_text(rules, text, strlen(text), "f.conf", NULL);
        g_assert_cmpuint(rules_count(rules), ==, 3);
        g_assert_cmpstr(rules_left_out_by(rules, "/x/y.log"), ==, "f.conf:2");
        g_assert_null(rules_left_out_by(rules, "/keep/y.log"));
        g_assert_cmpstr(rules_left_out_by(rules, "/keep/not.log"), ==, "f.conf:5");
        g_assert_null(rules_left_out_by(rules, "/other"));
}

static void
test_bad_lines(void)
{
        static const char text[] = "good\n[a-\n!\nx\\\n\\xq1\n\\x00\nnul\0byte\nalso";
        static const char *const expected[] = {
                "b.conf:2: a [ without its ], ignoring",
                "b.conf:3: a ! without a pattern, ignoring",
                "b.conf:4: a backslash with nothing behind it, ignoring",
                "b.conf:5: \\x needs two hexadecimal digits, not 00, ignoring",
                "b.conf:6: \\x needs two hexadecimal digits, not 00, ignoring",
                "b.conf:7: a NUL byte, ignoring",
        };
        g_autoptr(Rules) rules = rules_new();
        g_autoptr(GPtrArray) problems = g_ptr_array_new_with_free_func(g_free);
        g_autofree gchar *longest = g_strnfill(5000, 'x');

        rules_add_text(rules, text, sizeof text - 1, "b.conf", problems);
        g_assert_cmpuint(problems->len, ==, G_N_ELEMENTS(expected));
        for (guint i = 0; i < problems->len; i++)
                g_assert_cmpstr(problems->pdata[i], ==, expected[i]);
        g_assert_cmpuint(rules_count(rules), ==, 2);
        g_assert_nonnull(rules_left_out_by(rules, "/good"));
        g_assert_nonnull(rules_left_out_by(rules, "/also"));
        rules_add_text(rules, longest, 5000, "c.conf", problems);
        g_assert_cmpuint(rules_count(rules), ==, 2);
}

/* A hostile pattern takes no more than its length times the path's. */
static void
test_hostile(void)
{
        g_autoptr(GString) pattern = g_string_new("/");
        g_autoptr(GString) path = g_string_new("/");
        gint64 begin = g_get_monotonic_time();

        for (guint i = 0; i < 500; i++)
                g_string_append(pattern, "*a**a/");
        g_string_append(pattern, "b");
        for (guint i = 0; i < 2000; i++)
                g_string_append(path, "a/");
        g_string_append(path, "b");
        matches(pattern->str, path->str);
        g_assert_cmpint(g_get_monotonic_time() - begin, <, 10 * G_USEC_PER_SEC);
}

static void
put(const char *folder, const char *name, const char *text)
{
        g_autofree gchar *path = g_build_filename(folder, name, NULL);

        g_mkdir_with_parents(folder, 0755);
        g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static void
test_folders(void)
{
        g_autofree gchar *dir = g_dir_make_tmp("hs-XXXXXX", NULL);
        g_autofree gchar *first = g_build_filename(dir, "lib", NULL);
        g_autofree gchar *second = g_build_filename(dir, "etc", NULL);
        g_autofree gchar *none = g_build_filename(dir, "none", NULL);
        g_autofree gchar *null = g_build_filename(second, "20-off.conf", NULL);
        const char *folders[] = {first, none, second, NULL};
        g_autoptr(GPtrArray) problems = g_ptr_array_new_with_free_func(g_free);
        g_autoptr(Rules) rules = NULL;
        g_autofree gchar *command = g_strdup_printf("rm -rf '%s'", dir);

        put(first, "00-default.conf", "*.log\n*.pid\n");
        put(first, "20-off.conf", "*.off\n");
        put(first, "30-x.conf", "!kept.log\n*.x\n");
        put(second, "00-default.conf", "*.log\n");
        put(second, "10-own.conf", "*.own\n[\n");
        put(second, "ignored.txt", "*.txt\n");
        g_assert_cmpint(symlink("/dev/null", null), ==, 0);
        rules = rules_load_folders(folders, problems);
        g_assert_nonnull(rules_left_out_by(rules, "/a.log"));
        g_assert_null(rules_left_out_by(rules, "/kept.log"));
        g_assert_null(rules_left_out_by(rules, "/a.pid"));
        g_assert_null(rules_left_out_by(rules, "/a.off"));
        g_assert_null(rules_left_out_by(rules, "/a.txt"));
        g_assert_nonnull(rules_left_out_by(rules, "/a.own"));
        g_assert_nonnull(rules_left_out_by(rules, "/a.x"));
        g_assert_cmpuint(problems->len, ==, 1);
        g_assert_nonnull(strstr(problems->pdata[0], "10-own.conf:2: "));
        g_assert_cmpint(g_spawn_command_line_sync(command, NULL, NULL, NULL, NULL), ==, TRUE);
}

/* The defaults that are installed: no bad line, and what they are for. */
static void
test_defaults(void)
{
        static const char *const out[] = {
                "/var/log/syslog",       "/home/u/app.log",
                "/var/log/wtmp",         "/run/sshd.pid",
                "/opt/x/server.pid",     "/tmp/x",
                "/home/u/.note.swp",     "/home/u/note~",
                "/home/u/.~lock.a.odt#", "/usr/lib/python3/__pycache__/os.cpython-311.pyc.139876"};
        static const char *const in[] = {"/usr/lib/python3/__pycache__/os.cpython-311.pyc",
                                         "/usr/bin/login",
                                         "/usr/lib/libreoffice/program/soffice.bin",
                                         "/usr/share/logo.png",
                                         "/home/u/tmp/notes",
                                         "/etc/ld.so.cache",
                                         "/home/u/src/Cargo.lock"};
        g_autoptr(Rules) rules = rules_new();
        g_autoptr(GPtrArray) problems = g_ptr_array_new_with_free_func(g_free);
        g_autofree gchar *path = g_test_build_filename(G_TEST_DIST, "docs", "exclude.conf", NULL);
        g_autofree gchar *text = NULL;
        gsize length;

        if (!g_file_get_contents("docs/exclude.conf", &text, &length, NULL) &&
            !g_file_get_contents(path, &text, &length, NULL)) {
                g_test_skip("run it from the repository's top: docs/exclude.conf is not here");
                return;
        }
        rules_add_text(rules, text, length, "default", problems);
        g_assert_cmpuint(problems->len, ==, 0);
        for (guint i = 0; i < G_N_ELEMENTS(out); i++)
                if (!rules_left_out_by(rules, out[i]))
                        g_error("%s stays in", out[i]);
        for (guint i = 0; i < G_N_ELEMENTS(in); i++)
                if (rules_left_out_by(rules, in[i]))
                        g_error("%s is left out by %s", in[i], rules_left_out_by(rules, in[i]));
}

int
main(int argc, char **argv)
{
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/rules/patterns", test_patterns);
        g_test_add_func("/rules/against-slow", test_against_slow);
        g_test_add_func("/rules/last-decides", test_last_decides);
        g_test_add_func("/rules/bad-lines", test_bad_lines);
        g_test_add_func("/rules/hostile", test_hostile);
        g_test_add_func("/rules/folders", test_folders);
        g_test_add_func("/rules/defaults", test_defaults);
        return g_test_run();
}
