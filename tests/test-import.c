// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Imports: bytes to accesses. The logs in tests/data were written by strace 6.1 of a shell script
 * and of a program with threads; packs are made here. Every truncation of each must be taken
 * without a crash.
 */
#include <elf.h>
#include <string.h>

#include "common/error.h"
#include "common/json.h"
#include "profiler/export.h"
#include "profiler/import.h"
#include "profiler/page-set.h"
#include "profiler/resolve-open.h"
#include "profiler/strace-line.h"

#define PAGE 4096

static ImportList *
from_strace(const char *text, gsize size, const char *cwd)
{
        ImportList *list = import_list_new(PAGE);
        g_autoptr(StraceImport) strace = strace_import_new(list, cwd);
        g_autoptr(GError) error = NULL;

        strace_import_feed(strace, text, size);
        strace_import_finish(strace, &error);
        return list;
}

static const char *
path_of(const ImportList *list, const ImportAccess *access)
{
        return g_array_index(list->paths, ImportPath, access->path).bytes;
}

/* "O /a; R /a 0+4096; ..." in the order found. */
static gchar *
told(const ImportList *list)
{
        static const char letters[] = "OXMRCL";
        GString *out = g_string_new(NULL);

        for (guint i = 0; i < list->accesses->len; i++) {
                const ImportAccess *access = &g_array_index(list->accesses, ImportAccess, i);

                g_string_append_printf(out, "%s%c %s", out->len ? "; " : "", letters[access->kind],
                                       path_of(list, access));
                if (access->length_bytes == IMPORT_WHOLE)
                        g_string_append_printf(out, " %" G_GUINT64_FORMAT "+",
                                               access->offset_bytes);
                else if (access->kind != IMPORT_OPENED)
                        g_string_append_printf(out, " %" G_GUINT64_FORMAT "+%" G_GUINT64_FORMAT,
                                               access->offset_bytes, access->length_bytes);
        }
        return g_string_free(out, FALSE);
}

static guint64
problems(const ImportList *list, const char *part)
{
        guint64 n = 0;

        for (guint i = 0; i < list->problems->len; i++) {
                const ImportProblem *problem = &g_array_index(list->problems, ImportProblem, i);

                if (!part || strstr(problem->reason, part))
                        n += problem->count;
        }
        return n;
}

/* What the log tells, with nothing left unresolved. */
static void
tells(const char *log, const char *cwd, const char *expected)
{
        g_autoptr(ImportList) list = from_strace(log, strlen(log), cwd);
        g_autofree gchar *got = told(list);

        g_assert_cmpstr(got, ==, expected);
        g_assert_cmpuint(problems(list, NULL), ==, 0);
}

/* What it tells, and one thing it could not resolve. */
static void
leaves(const char *log, const char *reason, const char *expected)
{
        g_autoptr(ImportList) list = from_strace(log, strlen(log), NULL);
        g_autofree gchar *got = told(list);

        g_assert_cmpstr(got, ==, expected);
        g_assert_cmpuint(problems(list, reason), ==, 1);
        g_assert_cmpuint(problems(list, NULL), ==, 1);
}

static void
test_prefixes(void)
{
        const char *const prefixes[] = {
                "",
                "1234  ",
                "1234 12:34:56 ",
                "12:34:56.123456 ",
                "1234 1700000000.123456 ",
                "1700000000 ",
                "     0.000123 ",
                "[pid  1234] ",
                "[pid 1234<a b>] 12:34:56.123456 (+     0.000123) ",
                "1234<sh>  12:34:56 ",
                "12:34:56 [ 257] [00007f0123456789] ",
        };

        for (guint i = 0; i < G_N_ELEMENTS(prefixes); i++) {
                g_autofree gchar *log = g_strconcat(
                        prefixes[i], "openat(AT_FDCWD, \"/a\", O_RDONLY) = 3 <0.000010>", "\n",
                        NULL);

                tells(log, NULL, "O /a");
        }
}

static void
test_names(void)
{
        /* case 1: blanks, newlines, bytes that are not UTF-8, what looks like syntax */
        tells("open(\"/a b\", O_RDONLY) = 3\n"
              "open(\"/a\\nb\", O_RDONLY) = 3\n"
              "open(\"/bad\\377\", O_RDONLY) = 3\n"
              "open(\"/hex\\xff\\x41\", O_RDONLY) = 3\n"
              "open(\"/q\\\"), (\\\\ = 3\", O_RDONLY) = 3\n"
              "open(\"/\\303\\2747\", O_RDONLY) = 3\n"
              "open(\"/\xc3\xbc\", O_RDONLY) = 3\n",
              NULL,
              "O /a b; O /a\nb; O /bad\377; O /hex\377A; O /q\"), (\\ = 3; O /\303\2747; O "
              "/\xc3\xbc");
        /* annotations: '<' and '>' in names are escaped, others are nested */
        tells("openat(AT_FDCWD</d>, \"x\", O_RDONLY) = 3</d/bad\\377\\74x\\76>\n"
              "read(3</d/bad\\377\\74x\\76>, \"\", 10) = 10\n"
              "openat(AT_FDCWD</d->, \"y\", O_RDONLY) = 4</d-/y->\n"
              "openat(AT_FDCWD</d>, \"/dev/tty\", O_RDONLY) = 5</dev/tty<char 5:0>>\n",
              NULL, "O /d/bad\377<x>; R /d/bad\377<x> 0+4096; O /d-/y-; O /dev/tty");
}

static void
test_relative(void)
{
        /* case 25: chdir, fchdir, AT_FDCWD, dirfd, getcwd */
        tells("open(\"a\", O_RDONLY) = 3\n"
              "chdir(\"sub\") = 0\n"
              "openat(AT_FDCWD, \"b\", O_RDONLY) = 4\n"
              "openat(AT_FDCWD, \"/else\", O_RDONLY|O_DIRECTORY|O_CLOEXEC) = 5\n"
              "openat(5, \"c\", O_RDONLY) = 6\n"
              "fchdir(5) = 0\n"
              "open(\"../d\", O_RDONLY) = 7\n"
              "chdir(\"/nowhere\") = -1 ENOENT (No such file or directory)\n"
              "openat2(AT_FDCWD, \"e\", {flags=O_RDONLY, resolve=RESOLVE_NO_SYMLINKS}, 24) = 8\n"
              "openat2(5, \"/f\", {flags=O_RDONLY, resolve=RESOLVE_IN_ROOT}, 24) = 9\n"
              "execveat(6, \"\", [\"x\"], 0x1 /* 3 vars */, AT_EMPTY_PATH) = 0\n",
              "/start",
              "O /start/a; O /start/sub/b; O /else/c; O /else/../d; O /else/e; O /else/f; X "
              "/else/c "
              "0+");
        tells("getcwd(\"/here\", 4096) = 6\n"
              "open(\"a\", O_RDONLY) = 3\n",
              NULL, "O /here/a");
        /* -y tells where the process is, also for what follows without */
        tells("openat(AT_FDCWD</w>, \"nofile\", O_RDONLY) = -1 ENOENT (No such file)\n"
              "openat(AT_FDCWD</w>, \"a\", O_RDONLY) = 3\n"
              "execve(\"./prog\", [\"./prog\"], 0x7 /* 1 var */) = 0\n",
              NULL, "O /w/a; X /w/./prog 0+");
        tells("chroot(\"/jail\") = 0\n"
              "open(\"/a\", O_RDONLY) = 3\n",
              NULL, "O /jail/a");
        leaves("open(\"a\", O_RDONLY) = 3\n", "working directory", "");
        leaves("openat(7, \"a\", O_RDONLY) = 3\n", "descriptor", "");
        leaves("open(\"/cut\"..., O_RDONLY) = 3\n", "cut off", "");
        leaves("open(0x7ffc, O_RDONLY) = 3\n", "could not read", "");
        leaves("open_by_handle_at(3, {handle_bytes=8, handle_type=1, f_handle=0x1}, O_RDONLY) = "
               "4\n",
               "by handle", "");
}

static void
test_processes(void)
{
        /* the child runs before fork returns, inherits directory and descriptors, and has its own
         * directory from then on */
        tells("10 chdir(\"/p\") = 0\n"
              "10 openat(AT_FDCWD, \"d\", O_RDONLY|O_DIRECTORY) = 3\n"
              "10 fork( <unfinished ...>\n"
              "11 openat(3, \"a\", O_RDONLY) = 4\n"
              "11 chdir(\"/q\") = 0\n"
              "10 <... fork resumed>) = 11\n"
              "10 open(\"b\", O_RDONLY) = 4\n"
              "11 open(\"c\", O_RDONLY <unfinished ...>\n"
              "10 close(3) = 0\n"
              "11 <... open resumed> ) = 5\n"
              "11 openat(3, \"d\", O_RDONLY) = 6\n",
              NULL, "O /p/d/a; O /p/b; O /q/c; O /p/d/d");
        /* threads share both */
        tells("10 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD, child_tid=0x1} => "
              "{parent_tid=[0]}, 88) = 11\n"
              "11 chdir(\"/t\") = 0\n"
              "10 open(\"a\", O_RDONLY) = 3\n"
              "11 pread64(3, \"\"..., 10, 8192) = 10\n",
              NULL, "O /t/a; R /t/a 8192+4096");
        /* close-on-exec; an execve of another thread takes the process over */
        tells("10 open(\"/a\", O_RDONLY|O_CLOEXEC) = 3\n"
              "10 open(\"/b\", O_RDONLY) = 4\n"
              "10 clone(child_stack=0x1, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD) = 11\n"
              "11 execve(\"/prog\", [\"/prog\"], 0x1 /* 2 vars */ <unfinished ...>\n"
              "10 +++ superseded by execve in pid 11 +++\n"
              "10 <... execve resumed>) = 0\n"
              "10 read(4, \"\", 10) = 10\n",
              NULL, "O /a; O /b; X /prog 0+; R /b 0+4096");
        /* the number appears with the second process and goes with it */
        tells("chdir(\"/p\") = 0\n"
              "clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLDstrace: Process 11 "
              "attached\n"
              " <unfinished ...>\n"
              "[pid    11] open(\"a\", O_RDONLY) = 3\n"
              "[pid    10] <... clone resumed>, child_tidptr=0x1) = 11\n"
              "[pid    10] open(\"b\", O_RDONLY) = 3\n"
              "[pid    11] chdir(\"/q\") = 0\n"
              "[pid    11] +++ exited with 0 +++\n"
              "open(\"c\", O_RDONLY) = 4\n",
              NULL, "O /p/a; O /p/b; O /p/c");
        /* or the parent goes first */
        tells("chdir(\"/p\") = 0\n"
              "fork() = 11\n"
              "[pid    11] chdir(\"/q\") = 0\n"
              "[pid    10] +++ exited with 0 +++\n"
              "open(\"c\", O_RDONLY) = 4\n",
              NULL, "O /q/c");
        leaves("11 <... open resumed>) = 3\n11 close(3) = 0\n", "without its beginning", "");
}

static void
test_descriptors(void)
{
        tells("open(\"/a\", O_RDONLY) = 3\n"
              "read(3, \"\"..., 4096) = 4096\n"
              "dup(3) = 4\n"
              "read(4, \"\"..., 4096) = 4096\n"
              "lseek(3, 40960, SEEK_SET) = 40960\n"
              "fcntl(4, F_DUPFD_CLOEXEC, 10) = 10\n"
              "readv(10, [{iov_base=\"x\", iov_len=1}], 1) = 1\n"
              "dup2(10, 7) = 7\n"
              "close(3) = 0\n"
              "socket(AF_INET, SOCK_STREAM, IPPROTO_IP) = 3\n"
              "read(3, \"GET /\"..., 100) = 100\n"
              "pipe2([5, 6], O_CLOEXEC) = 0\n"
              "read(5, \"x\", 1) = 1\n"
              "read(0, \"x\", 1) = 1\n"
              "preadv(7, [{iov_base=\"x\", iov_len=1}], 1, 81920) = 1\n"
              "sendfile(1, 7, [122880] => [122881], 1) = 1\n"
              "sendfile(1, 7, NULL, 10000) = 8191\n"
              "close_range(3, 4294967295, 0) = 0\n"
              "open(\"/b\", O_RDONLY) = 3\n"
              "read(3, \"\", 4096) = 0\n",
              NULL,
              "O /a; R /a 0+8192; R /a 40960+4096; R /a 81920+4096; R /a 122880+4096; R /a "
              "45056+4096; O /b");
        leaves("read(9, \"x\", 1) = 1\n", "before the log begins", "");
        /* failing opens, and those that are for something else */
        {
                const char *log =
                        "open(\"/no\", O_RDONLY) = -1 ENOENT (No such file or directory)\n"
                        "open(\"/d\", O_RDONLY|O_DIRECTORY) = 3\n"
                        "open(\"/w\", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 4\n"
                        "write(4, \"x\", 1) = 1\n"
                        "open(\"/rw\", O_RDWR) = 5\n"
                        "write(5, \"x\", 1) = 1\n"
                        "open(\"/p\", O_PATH) = 6\n"
                        "openat(AT_FDCWD</>, \"/dev/pts/ptmx\", O_RDWR) = 7<pipe:[1]>\n";
                g_autoptr(ImportList) list = from_strace(log, strlen(log), NULL);
                g_autofree gchar *got = told(list);

                g_assert_cmpstr(got, ==, "O /rw");
                g_assert_cmpuint(list->opens, ==, 5);
                g_assert_cmpuint(list->failed, ==, 1);
                g_assert_cmpuint(list->directories, ==, 1);
                g_assert_cmpuint(list->write_only, ==, 1);
                g_assert_cmpuint(list->not_files, ==, 1);
                for (guint i = 0; i < list->paths->len; i++) {
                        const ImportPath *path = &g_array_index(list->paths, ImportPath, i);

                        g_assert_cmpint(path->written, ==,
                                        !strcmp(path->bytes, "/w") || !strcmp(path->bytes, "/rw"));
                }
        }
}

static void
test_maps(void)
{
        tells("openat(AT_FDCWD, \"/lib\", O_RDONLY|O_CLOEXEC) = 3\n"
              "mmap(NULL, 5000, PROT_READ, MAP_PRIVATE|MAP_DENYWRITE, 3, 0) = 0x7f00\n"
              "mmap(0x7f00, 4096, PROT_READ|PROT_EXEC, MAP_PRIVATE|MAP_FIXED, 3, 0x26000) = "
              "0x7f00\n"
              "mmap(NULL, 8192, PROT_READ, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f00\n"
              "mmap(NULL, 9, PROT_NONE, MAP_PRIVATE, 3, 0x90000) = 0x7f00\n"
              "mmap(NULL, 9, PROT_READ, MAP_PRIVATE, 3, 0x90000) = -1 ENODEV (No such device)\n",
              NULL, "O /lib; M /lib 0+8192; M /lib 155648+4096");
}

static guint64
time_of(const char *log, const char *path)
{
        g_autoptr(ImportList) list = from_strace(log, strlen(log), NULL);

        for (guint i = 0; i < list->accesses->len; i++) {
                const ImportAccess *access = &g_array_index(list->accesses, ImportAccess, i);

                if (strcmp(path_of(list, access), path) == 0)
                        return access->time_us;
        }
        g_assert_not_reached();
}

static void
test_times(void)
{
#define LOG(a, b) a "open(\"/a\", O_RDONLY) = 3\n" b "open(\"/b\", O_RDONLY) = 4\n"
        g_assert_cmpuint(time_of(LOG("12:00:00 ", "12:00:03 "), "/b"), ==, 3000000);
        g_assert_cmpuint(time_of(LOG("12:00:00.5 ", "12:00:00.500007 "), "/b"), ==, 7);
        g_assert_cmpuint(time_of(LOG("23:59:59.000000 ", "00:00:01.000000 "), "/b"), ==, 2000000);
        g_assert_cmpuint(time_of(LOG("1700000000.000001 ", "1700000000.000003 "), "/b"), ==, 2);
        g_assert_cmpuint(time_of(LOG("     0.000000 ", "     0.000123 "), "/b"), ==, 123);
        g_assert_cmpuint(time_of(LOG("     0.5 ", "     0.000123 "), "/b"), ==, 123);
        g_assert_cmpuint(time_of(LOG("", ""), "/b"), >, time_of(LOG("", ""), "/a"));
#undef LOG
        /* a call begins when it begins */
        g_assert_cmpuint(time_of("1 12:00:00 close(9) = 0\n"
                                 "1 12:00:01 open(\"/b\", O_RDONLY <unfinished ...>\n"
                                 "1 12:00:05 <... open resumed>) = 3\n",
                                 "/b"),
                         ==, 1000000);
}

static void
test_marks(void)
{
        const char *log = "1 12:00:00 access(\"MARK: one\", F_OK) = -1 ENOENT (No such file)\n"
                          "1 12:00:01 faccessat2(AT_FDCWD, \"MARK:two\", F_OK, 0) = -1 ENOENT (x)\n"
                          "1 12:00:02 access(\"/MARK\", F_OK) = 0\n";
        g_autoptr(ImportList) list = from_strace(log, strlen(log), NULL);

        g_assert_cmpuint(list->marks->len, ==, 2);
        g_assert_cmpstr(g_array_index(list->marks, ImportMark, 0).text, ==, "one");
        g_assert_cmpstr(g_array_index(list->marks, ImportMark, 1).text, ==, "two");
        g_assert_cmpuint(g_array_index(list->marks, ImportMark, 1).time_us, ==, 1000000);
}

static gchar *
load(const char *name, gsize *ret_size)
{
        g_autofree gchar *path = g_test_build_filename(G_TEST_DIST, "tests", "data", name, NULL);
        gchar *text = NULL;

        if (!g_file_get_contents(path, &text, ret_size, NULL)) {
                g_free(path);
                path = g_build_filename("tests", "data", name, NULL);
                g_assert_true(g_file_get_contents(path, &text, ret_size, NULL));
        }
        return text;
}

static gboolean
names(const ImportList *list, const char *path)
{
        for (guint i = 0; i < list->accesses->len; i++)
                if (!strcmp(path_of(list, &g_array_index(list->accesses, ImportAccess, i)), path))
                        return TRUE;
        return FALSE;
}

/* The three logs of the same script, each in another of strace's forms. */
static void
test_real_logs(void)
{
        const struct {
                const char *file, *cwd;
                gboolean targets; /* -y: names are those of the targets of links */
        } logs[] = {
                {"strace-y-tt.log", NULL, TRUE},
                {"strace-yy-ttt.log", NULL, TRUE},
                {"strace-terminal-r-T.log", "/tmp/demo", FALSE},
        };

        for (guint i = 0; i < G_N_ELEMENTS(logs); i++) {
                gsize size;
                g_autofree gchar *text = load(logs[i].file, &size);
                g_autoptr(ImportList) list = from_strace(text, size, logs[i].cwd);

                g_test_message("%s", logs[i].file);
                g_assert_cmpuint(problems(list, NULL), ==, 0);
                g_assert_true(list->has_times);
                g_assert_cmpuint(list->end_us, >, 1000);
                g_assert_cmpuint(list->processes->len, ==, 5);
                g_assert_true(names(list, "/usr/bin/sh"));
                g_assert_true(names(list, "/usr/bin/cat"));
                g_assert_true(names(list, logs[i].targets ? "/usr/lib/x86_64-linux-gnu/libc.so.6"
                                                          : "/lib/x86_64-linux-gnu/libc.so.6"));
                g_assert_true(names(list, "/tmp/demo/sub/a b"));
                g_assert_true(names(list, "/tmp/demo/sub/bad\377"));
                g_assert_true(logs[i].targets || names(list, "/tmp/demo/sub/link"));
                g_assert_true(names(list, logs[i].targets ? "/tmp/demo/b" : "/tmp/demo/sub/../b"));
        }
}

static void
test_real_threads(void)
{
        gsize size;
        g_autofree gchar *text = load("strace-threads.log", &size);
        g_autoptr(ImportList) list = from_strace(text, size, "/tmp/demo");

        g_assert_cmpuint(problems(list, NULL), ==, 0);
        /* a thread changed the directory of all; its own is no process */
        g_assert_true(names(list, "/tmp/demo/sub/./a b"));
        g_assert_true(names(list, "/tmp/demo/sub/link"));
        g_assert_cmpuint(list->processes->len, ==, 2);
        g_assert_cmpuint(g_array_index(list->processes, ImportProcess, 1).parent, ==, 1);
}

static void
test_cut_logs(void)
{
        static const char *const files[] = {"strace-y-tt.log", "strace-terminal-r-T.log",
                                            "strace-threads.log"};
        gsize size;

        for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
                g_autofree gchar *text = load(files[i], &size);

                for (gsize cut = 0; cut < size; cut += 1 + cut / 50) {
                        ImportList *list = from_strace(text, cut, NULL);

                        import_list_free(list);
                        /* and without its beginning */
                        list = from_strace(text + cut, size - cut, NULL);
                        import_list_free(list);
                }
        }
}

/* In whatever pieces the bytes come. */
static void
test_pieces(void)
{
        gsize size;
        g_autofree gchar *text = load("strace-terminal-r-T.log", &size), *whole = NULL,
                         *parts = NULL;
        g_autoptr(ImportList) one = from_strace(text, size, "/tmp/demo");
        g_autoptr(ImportList) two = import_list_new(PAGE);
        g_autoptr(StraceImport) strace = strace_import_new(two, "/tmp/demo");

        for (gsize at = 0, n = 1; at < size; at += n, n = n % 97 + 1)
                strace_import_feed(strace, text + at, MIN(n, size - at));
        g_assert_true(strace_import_finish(strace, NULL));
        whole = told(one);
        parts = told(two);
        g_assert_cmpstr(whole, ==, parts);
}

/* Numbers and lengths that no kernel would give. */
static void
test_hostile(void)
{
        g_autoptr(GString) log = g_string_new(NULL);
        g_autoptr(ImportList) many = NULL, longer = NULL;

        tells("open(\"/a\", O_RDONLY) = 3\n"
              "read(3, \"\"..., 4096) = 9223372036854775807\n"
              "read(3, \"\"..., 4096) = 9223372036854775807\n"
              "read(3, \"\"..., 4096) = 99999999999999999999999\n"
              "pread64(3, \"\"..., 4096, 18446744073709551615) = 4096\n"
              "lseek(3, 0, SEEK_SET) = -5\n"
              "dup2(3, 99999999999) = 99999999999\n"
              "close(-1) = 0\n"
              "fork() = 99999999999\n"
              "mmap(NULL, 0, PROT_READ, MAP_PRIVATE, 3, 0) = 0x1\n"
              "read(3, <detached ...>\n"
              "[pid 99999999999] read(3, \"\", 1) = 1\n",
              NULL, "O /a; R /a 0+");
        for (guint i = 0; i < 20000; i++)
                g_string_append_printf(log, "open(\"/f\", O_RDONLY) = %u\n", 3 + i);
        many = from_strace(log->str, log->len, NULL);
        g_assert_cmpuint(problems(many, "descriptors"), >, 3000);
        g_string_truncate(log, 0);
        for (guint i = 0; i < 1100000; i++)
                g_string_append(log, "read(3, \"((((({{{");
        g_string_append(log, "\nopen(\"/b\", O_RDONLY) = 3\n");
        longer = from_strace(log->str, log->len, NULL);
        g_assert_cmpuint(problems(longer, "longer than 16 MiB"), ==, 1);
        g_assert_cmpuint(longer->accesses->len, ==, 1);
}

static void
test_not_strace(void)
{
        g_autoptr(ImportList) list = import_list_new(PAGE);
        g_autoptr(StraceImport) strace = strace_import_new(list, NULL);
        g_autoptr(GError) error = NULL;

        strace_import_feed(strace, "hello\nworld\n", 12);
        g_assert_false(strace_import_finish(strace, &error));
        g_assert_error(error, COMMON_ERROR, COMMON_ERROR_INPUT);
}

static void
test_list(void)
{
        static const char text[] = "# readahead list\n/a b\n\n/c\n/a b\nrelative\n/no newline";
        static const char nul[] = "/a\nb\0#/c\0/d";
        g_autoptr(ImportList) lines = import_list_new(PAGE), with_nul = import_list_new(PAGE);
        g_autofree gchar *a = NULL, *b = NULL;

        import_parse_list(lines, text, sizeof text - 1, FALSE);
        a = told(lines);
        g_assert_cmpstr(a, ==, "L /a b 0+; L /c 0+; L relative 0+; L /no newline 0+");
        import_parse_list(with_nul, nul, sizeof nul - 1, TRUE);
        b = told(with_nul);
        g_assert_cmpstr(b, ==, "L /a\nb 0+; L #/c 0+; L /d 0+");
        /* a list for --null read without */
        import_parse_list(lines, nul, sizeof nul - 1, FALSE);
        g_assert_cmpuint(problems(lines, "NUL"), ==, 1);
}

static void
test_e4rat(void)
{
        static const char text[] = "2049 2223875 /bin/bash\n2049 12 /a b\nrubbish\n65024 7 /c";
        static const char plain[] = "/bin/bash\n/a b\n";
        g_autoptr(ImportList) one = import_list_new(PAGE), two = import_list_new(PAGE);
        g_autoptr(GError) error = NULL;
        g_autofree gchar *a = NULL, *b = NULL;

        g_assert_true(import_parse_e4rat(one, text, sizeof text - 1, NULL));
        a = told(one);
        g_assert_cmpstr(a, ==, "L /bin/bash 0+; L /a b 0+; L /c 0+");
        g_assert_cmpuint(g_array_index(one->paths, ImportPath, 0).inode, ==, 2223875);
        g_assert_cmpuint(problems(one, "DEVICE"), ==, 1);
        g_assert_true(import_parse_e4rat(two, plain, sizeof plain - 1, NULL));
        b = told(two);
        g_assert_cmpstr(b, ==, "L /bin/bash 0+; L /a b 0+");
        g_assert_false(import_parse_e4rat(two, "x /a\n", 5, &error));
        g_assert_error(error, COMMON_ERROR, COMMON_ERROR_INPUT);
}

static void
put(GByteArray *out, guint64 value, guint bytes)
{
        for (guint i = 0; i < bytes; i++, value >>= 8)
                g_byte_array_append(out, (const guint8[]){(guint8)value}, 1);
}

static void
put_text(GByteArray *out, const char *text, guint padded)
{
        gsize n = strlen(text);

        g_byte_array_append(out, (const guint8 *)text, (guint)n);
        for (; n < padded; n++)
                put(out, 0, 1);
}

/* Two files, three blocks, two groups; `word` is of size_t. */
static GByteArray *
ureadahead_pack(guint word)
{
        static const struct {
                guint path, offset, length;
        } blocks[] = {{1, 8192, 4096}, {0, 0, 10000}, {1, 0, 4096}};
        GByteArray *out = g_byte_array_new();

        put_text(out, "ura\2\1", 8);
        put(out, 0x801, 8);
        put(out, 1700000000, word);
        put(out, 2, word);
        put(out, 3, 4);
        put(out, 4, 4);
        put(out, 2, word);
        for (guint i = 0; i < 2; i++) {
                put(out, G_MAXUINT32, 4);
                if (word == 8)
                        put(out, 0, 4);
                put(out, 77 + i, 8);
                put_text(out, i ? "/lib/b c" : "/bin/a", 256);
        }
        put(out, G_N_ELEMENTS(blocks), word);
        for (guint i = 0; i < G_N_ELEMENTS(blocks); i++) {
                put(out, blocks[i].path, word);
                put(out, blocks[i].offset, 8);
                put(out, blocks[i].length, 8);
                put(out, 123456, 8);
        }
        return out;
}

static void
test_ureadahead(void)
{
        static const guint words[] = {8, 4};

        for (guint i = 0; i < G_N_ELEMENTS(words); i++) {
                g_autoptr(GByteArray) pack = ureadahead_pack(words[i]);
                g_autoptr(ImportList) list = import_list_new(PAGE);
                g_autofree gchar *got = NULL;

                g_assert_true(import_parse_ureadahead(list, (char *)pack->data, pack->len, NULL));
                got = told(list);
                g_assert_cmpstr(got, ==,
                                "O /bin/a; O /lib/b c; C /lib/b c 8192+4096; C /bin/a 0+12288; C "
                                "/lib/b c 0+4096");
                g_assert_cmpuint(g_array_index(list->paths, ImportPath, 1).inode, ==, 78);
                for (guint cut = 0; cut < pack->len; cut++) {
                        g_autoptr(ImportList) part = import_list_new(PAGE);
                        g_autoptr(GError) error = NULL;

                        g_assert_false(
                                import_parse_ureadahead(part, (char *)pack->data, cut, &error));
                        g_assert_error(error, COMMON_ERROR, COMMON_ERROR_INPUT);
                }
                pack->data[3] = 3;
                g_assert_false(import_parse_ureadahead(list, (char *)pack->data, pack->len, NULL));
        }
}

static void
test_systemd(void)
{
        g_autoptr(GByteArray) pack = g_byte_array_new();
        g_autoptr(ImportList) list = import_list_new(PAGE);
        g_autofree gchar *got = NULL;
        guint begin;

        put_text(pack, "x86_64-unknown-linux-gnu;VERSION=2\nR", 0);
        begin = pack->len;
        put_text(pack, "/whole\n", 0);
        put(pack, 5, 8);
        put(pack, 0, 8);
        put_text(pack, "/some pages\n", 0);
        put(pack, 6, 8);
        put(pack, 0, 4);
        put(pack, 2, 4);
        put(pack, 10, 4);
        put(pack, 11, 4);
        put(pack, 0, 8);
        g_assert_true(import_parse_systemd(list, (char *)pack->data, pack->len, NULL));
        got = told(list);
        g_assert_cmpstr(got, ==,
                        "O /whole; C /whole 0+; O /some pages; C /some pages 0+8192; C /some pages "
                        "40960+4096");
        for (guint cut = 0; cut < pack->len; cut++) {
                g_autoptr(ImportList) part = import_list_new(PAGE);
                gboolean ends_well = cut == begin || cut == begin + 7 + 16;

                g_assert_cmpint(import_parse_systemd(part, (char *)pack->data, cut, NULL), ==,
                                ends_well);
        }
        pack->data[33] = '1';
        g_assert_false(import_parse_systemd(list, (char *)pack->data, pack->len, NULL));
}

static void
collect(guint64 first, guint64 end, gpointer data)
{
        g_string_append_printf(data, "%" G_GUINT64_FORMAT "-%" G_GUINT64_FORMAT " ", first, end);
}

/* Against a plain array of flags. */
static void
test_page_set(void)
{
        g_autoptr(PageSet) set = page_set_new();
        g_autoptr(GString) got = g_string_new(NULL), expected = g_string_new(NULL);
        gboolean there[512] = {FALSE};

        for (guint i = 0; i < 3000; i++) {
                guint first = (guint)g_test_rand_int_range(0, 500);
                guint end = first + (guint)g_test_rand_int_range(0, i % 3 ? 4 : 12), from = first;

                if (i % 1000 == 0) {
                        memset(there, 0, sizeof there);
                        page_set_free(set);
                        set = page_set_new();
                }
                g_string_truncate(got, 0);
                g_string_truncate(expected, 0);
                page_set_add(set, first, end, collect, got);
                for (guint page = first; page <= end; page++) {
                        if (page < end && !there[page])
                                continue;
                        if (from < page)
                                collect(from, page, expected);
                        from = page + 1;
                }
                for (guint page = first; page < end; page++)
                        there[page] = TRUE;
                g_assert_cmpstr(got->str, ==, expected->str);
        }
}

static void
test_interpreter(void)
{
        static const char script[] = "#! /bin/sh -e\n";
        struct {
                Elf64_Ehdr header;
                Elf64_Phdr segment;
                char name[16];
        } elf = {0};
        g_autofree gchar *sh = resolve_interpreter_parse(script, sizeof script - 1), *ld = NULL;

        g_assert_cmpstr(sh, ==, "/bin/sh");
        memcpy(elf.header.e_ident, ELFMAG, SELFMAG);
        elf.header.e_ident[EI_CLASS] = ELFCLASS64;
        elf.header.e_ident[EI_DATA] = G_BYTE_ORDER == G_LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB;
        elf.header.e_phoff = sizeof elf.header;
        elf.header.e_phentsize = sizeof elf.segment;
        elf.header.e_phnum = 1;
        elf.segment.p_type = PT_INTERP;
        elf.segment.p_offset = sizeof elf.header + sizeof elf.segment;
        elf.segment.p_filesz = 7;
        memcpy(elf.name, "/lib/l", 7);
        ld = resolve_interpreter_parse(&elf, sizeof elf);
        g_assert_cmpstr(ld, ==, "/lib/l");
        for (gsize cut = 0; cut < sizeof elf - 9; cut++)
                g_assert_null(resolve_interpreter_parse(&elf, cut));
        elf.segment.p_filesz = G_MAXUINT64;
        g_assert_null(resolve_interpreter_parse(&elf, sizeof elf));
        elf.header.e_phoff = G_MAXUINT64 - 3;
        g_assert_null(resolve_interpreter_parse(&elf, sizeof elf));
}

static void
test_exports(void)
{
        static const char *const paths[] = {"/a b", "/n\nl", "/bad\377", "/c\\d", "/#e", "/f"};
        g_autoptr(GArray) files = g_array_new(FALSE, FALSE, sizeof(ExportFile));
        g_autoptr(GPtrArray) skipped = g_ptr_array_new_with_free_func(skipped_free);
        g_autoptr(GByteArray) list = NULL, nul = NULL, e4rat = NULL, sort = NULL, nydus = NULL;

        for (guint i = 0; i < G_N_ELEMENTS(paths); i++) {
                ExportFile file = {.path = paths[i], .device = 2049, .inode = 10 + i};

                g_array_append_val(files, file);
        }
#define IS(array, text) g_assert_cmpmem((array)->data, (array)->len, (text), sizeof(text) - 1)
        nul = export_list(files, TRUE, skipped);
        IS(nul, "/a b\0/n\nl\0/bad\377\0/c\\d\0/#e\0/f\0");
        g_assert_cmpuint(skipped->len, ==, 0);
        list = export_list(files, FALSE, skipped);
        IS(list, "/a b\n/bad\377\n/c\\d\n/#e\n/f\n");
        g_assert_cmpuint(skipped->len, ==, 1);
        e4rat = export_e4rat(files, skipped);
        IS(e4rat, "2049 12 /bad\377\n2049 13 /c\\d\n2049 14 /#e\n2049 15 /f\n");
        g_assert_cmpuint(skipped->len, ==, 3);
        sort = export_squashfs_sort(files, skipped);
        IS(sort, "a\\ b 32767\nbad\377 32765\nc\\\\d 32764\n\\#e 32763\nf 32762\n");
        g_assert_cmpuint(skipped->len, ==, 4);
        nydus = export_nydus(files, skipped);
        IS(nydus, "/a b\n/c\\d\n/#e\n/f\n");
        g_assert_cmpuint(skipped->len, ==, 6);
#undef IS
}

/* More files than priorities: never 0, which is that of files not named, and never rising. */
static void
test_many_priorities(void)
{
        g_autoptr(GArray) files = g_array_new(FALSE, FALSE, sizeof(ExportFile));
        g_autoptr(GPtrArray) skipped = g_ptr_array_new_with_free_func(skipped_free);
        g_autoptr(GByteArray) sort = NULL;
        g_auto(GStrv) lines = NULL;
        gint64 last = 32767;

        for (guint i = 0; i < 100000; i++) {
                ExportFile file = {.path = "/f"};

                g_array_append_val(files, file);
        }
        sort = export_squashfs_sort(files, skipped);
        g_byte_array_append(sort, (const guint8 *)"", 1);
        lines = g_strsplit((char *)sort->data, "\n", -1);
        g_assert_cmpuint(g_strv_length(lines), ==, 100001);
        for (guint i = 0; i < 100000; i++) {
                gint64 priority = g_ascii_strtoll(lines[i] + 2, NULL, 10);

                g_assert_true(priority >= 1 && priority <= last);
                last = priority;
        }
}

int
main(int argc, char **argv)
{
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/import/strace/prefixes", test_prefixes);
        g_test_add_func("/import/strace/names", test_names);
        g_test_add_func("/import/strace/relative", test_relative);
        g_test_add_func("/import/strace/processes", test_processes);
        g_test_add_func("/import/strace/descriptors", test_descriptors);
        g_test_add_func("/import/strace/maps", test_maps);
        g_test_add_func("/import/strace/times", test_times);
        g_test_add_func("/import/strace/marks", test_marks);
        g_test_add_func("/import/strace/real-logs", test_real_logs);
        g_test_add_func("/import/strace/real-threads", test_real_threads);
        g_test_add_func("/import/strace/cut-logs", test_cut_logs);
        g_test_add_func("/import/strace/pieces", test_pieces);
        g_test_add_func("/import/strace/hostile", test_hostile);
        g_test_add_func("/import/strace/not-strace", test_not_strace);
        g_test_add_func("/import/list", test_list);
        g_test_add_func("/import/e4rat", test_e4rat);
        g_test_add_func("/import/ureadahead", test_ureadahead);
        g_test_add_func("/import/systemd-readahead", test_systemd);
        g_test_add_func("/import/page-set", test_page_set);
        g_test_add_func("/import/interpreter", test_interpreter);
        g_test_add_func("/export/formats", test_exports);
        g_test_add_func("/export/many-priorities", test_many_priorities);
        return g_test_run();
}
