// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Extent maps of real files against filefrag(8) and against each other (FIEMAP, FIBMAP): scattered
 * files, more extents than one call returns, holes, unwritten and delayed blocks, a block-mapped
 * ext2. What needs root is skipped without.
 */
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <linux/fiemap.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.h"
#include "common/fd.h"
#include "measure/extents.h"

#define BLOCK 4096

static gchar *
run(const char *format, const char *argument)
{
        g_autofree gchar *command = g_strdup_printf(format, argument);
        gchar *argv[] = {"/bin/sh", "-c", command, NULL};
        gchar *out = NULL;

        g_spawn_sync(NULL, argv, NULL, G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL, &out, NULL, NULL,
                     NULL);
        return out;
}

/* A folder on the file system of the build directory; NULL, and the test skipped, when that has no
 * FIEMAP. */
static gchar *
make_dir(void)
{
        const char *build = g_getenv("BUILD") ? g_getenv("BUILD") : "build";
        g_autofree gchar *template = g_build_filename(build, "tmp", "extents-XXXXXX", NULL);
        g_autofree gchar *parent = g_path_get_dirname(template);
        g_autofree gchar *probe = NULL;
        g_autofree gchar *filefrag = run("PATH=$PATH:/sbin:/usr/sbin; command -v %s", "filefrag");
        gchar *dir;
        int fd;

        if (!filefrag || !*filefrag) {
                g_test_skip("filefrag is not installed (e2fsprogs)");
                return NULL;
        }
        g_mkdir_with_parents(parent, 0755);
        dir = g_mkdtemp(g_strdup(template));
        g_assert_nonnull(dir);
        probe = g_build_filename(dir, "probe", NULL);
        fd = open(probe, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        {
                g_autoptr(ExtentMap) loaded = NULL;

                g_assert_cmpint(write(fd, "x", 1), ==, 1);
                g_assert_cmpint(fsync(fd), ==, 0);
                loaded = extent_map_load(fd, NULL);
                close(fd);
                if (!loaded || loaded->fibmap || loaded->logical_addresses ||
                    loaded->extents->len != 1) {
                        g_test_skip("the file system of the build directory has no plain extents");
                        g_unlink(probe);
                        g_rmdir(dir);
                        g_free(dir);
                        return NULL;
                }
        }
        return dir;
}

static void
remove_dir(gchar *dir)
{
        g_autofree gchar *out = run("rm -rf '%s'", dir);

        g_free(dir);
}

static int
make_file(const char *dir, const char *name, gchar **ret_path)
{
        int fd;

        *ret_path = g_build_filename(dir, name, NULL);
        fd = open(*ret_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        g_assert_cmpint(fd, >=, 0);
        return fd;
}

static void
put(int fd, guint64 offset, gsize length)
{
        g_autofree gchar *data = g_malloc(length);

        memset(data, (int)(offset / BLOCK) | 1, length);
        g_assert_cmpint(pwrite(fd, data, length, (off_t)offset), ==, (gssize)length);
}

static void
same_extent(const Extent *got, const Extent *want, gboolean flags)
{
        g_assert_cmpuint(got->logical_bytes, ==, want->logical_bytes);
        g_assert_cmpuint(got->physical_bytes, ==, want->physical_bytes);
        g_assert_cmpuint(got->length_bytes, ==, want->length_bytes);
        if (flags)
                g_assert_cmpuint(got->flags, ==, want->flags);
}

/* "   0:        0..    4095:  123456..  127551:   4096:   ...:  flags" in bytes (-b1). Joins as the
 * map does. */
static void
compare_filefrag(const char *path, const ExtentMap *map)
{
        g_autofree gchar *out = run("PATH=$PATH:/sbin:/usr/sbin; filefrag -b1 -v '%s'", path);
        g_auto(GStrv) lines = g_strsplit(out, "\n", -1);
        g_autoptr(GArray) want = g_array_new(FALSE, FALSE, sizeof(Extent));

        for (guint i = 0; lines[i]; i++) {
                guint64 n, logical, logical_end, physical, physical_end, length;
                Extent extent = {0}, *last;

                if (sscanf(lines[i],
                           "%" G_GUINT64_FORMAT ":%" G_GUINT64_FORMAT "..%" G_GUINT64_FORMAT
                           ":%" G_GUINT64_FORMAT "..%" G_GUINT64_FORMAT ":%" G_GUINT64_FORMAT ":",
                           &n, &logical, &logical_end, &physical, &physical_end, &length) != 6)
                        continue;
                extent.logical_bytes = logical;
                extent.physical_bytes = physical;
                extent.length_bytes = length;
                extent.flags = strstr(lines[i], "unwritten") ? FIEMAP_EXTENT_UNWRITTEN : 0;
                last = want->len ? &g_array_index(want, Extent, want->len - 1) : NULL;
                if (last && last->flags == extent.flags &&
                    last->logical_bytes + last->length_bytes == logical &&
                    last->physical_bytes + last->length_bytes == physical)
                        last->length_bytes += length;
                else
                        g_array_append_val(want, extent);
        }
        g_assert_cmpuint(want->len, >, 0);
        g_assert_cmpuint(map->extents->len, ==, want->len);
        for (guint i = 0; i < want->len; i++)
                same_extent(&g_array_index(map->extents, Extent, i),
                            &g_array_index(want, Extent, i), TRUE);
}

/* FIBMAP's map is FIEMAP's, as far as blocks have a place and are within the file's size. */
static void
compare_fibmap(int fd, const ExtentMap *map)
{
        g_autoptr(GError) error = NULL;
        g_autoptr(ExtentMap) fibmap = extent_map_load_fibmap(fd, &error);
        g_autoptr(GArray) a = g_array_new(FALSE, FALSE, sizeof(Extent));
        g_autoptr(GArray) b = g_array_new(FALSE, FALSE, sizeof(Extent));

        if (geteuid() != 0) {
                g_assert_null(fibmap);
                g_assert_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED);
                return;
        }
        g_assert_no_error(error);
        g_assert_true(fibmap->fibmap);
        extent_map_clip(map, 0, G_MAXUINT64, a);
        extent_map_clip(fibmap, 0, G_MAXUINT64, b);
        g_assert_cmpuint(a->len, ==, b->len);
        for (guint i = 0; i < a->len; i++)
                same_extent(&g_array_index(a, Extent, i), &g_array_index(b, Extent, i), FALSE);
}

static void
check(int fd, const char *path)
{
        g_autoptr(GError) error = NULL;
        g_autoptr(ExtentMap) map = extent_map_load(fd, &error);

        g_assert_no_error(error);
        compare_filefrag(path, map);
        compare_fibmap(fd, map);
}

static void
test_scattered(void)
{
        g_autofree gchar *paths[12] = {NULL};
        gchar *dir = make_dir();
        int fds[12];

        if (!dir)
                return;
        for (guint i = 0; i < 12; i++) {
                g_autofree gchar *name = g_strdup_printf("scattered %u", i);

                fds[i] = make_file(dir, name, &paths[i]);
        }
        for (guint turn = 0; turn < 5; turn++)
                for (guint i = 0; i < 12; i++) {
                        put(fds[i], turn * 16384, i == 3 ? 100 : 16384);
                        g_assert_cmpint(fdatasync(fds[i]), ==, 0);
                }
        for (guint i = 0; i < 12; i++) {
                check(fds[i], paths[i]);
                close(fds[i]);
                g_clear_pointer(&paths[i], g_free);
        }
        remove_dir(dir);
}

static void
test_many(void)
{
        g_autofree gchar *path = NULL;
        g_autoptr(ExtentMap) map = NULL;
        gchar *dir = make_dir();
        auto_fd int fd = -1;

        if (!dir)
                return;
        fd = make_file(dir, "many", &path);
        for (guint64 i = 0; i < 1501; i++)
                put(fd, i * 2 * BLOCK, BLOCK);
        g_assert_cmpint(fsync(fd), ==, 0);
        map = extent_map_load(fd, NULL);
        g_assert_nonnull(map);
        g_assert_cmpuint(map->extents->len, ==, 1501);
        check(fd, path);
        remove_dir(dir);
}

static void
test_unreadable(void)
{
        g_autofree gchar *path = NULL;
        g_autoptr(GArray) out = g_array_new(FALSE, FALSE, sizeof(Extent));
        g_autoptr(ExtentMap) delayed = NULL, map = NULL;
        gchar *dir = make_dir();
        auto_fd int fd = -1;

        if (!dir)
                return;
        fd = make_file(dir, "unreadable", &path);
        put(fd, 0, 4 * BLOCK);
        delayed = extent_map_load(fd, NULL);
        g_assert_nonnull(delayed);
        /* Waiting for its place, or written out already: never readable at place 0. */
        for (guint i = 0; i < delayed->extents->len; i++) {
                const Extent *extent = &g_array_index(delayed->extents, Extent, i);

                if (extent_is_readable(extent))
                        g_assert_cmpuint(extent->physical_bytes, >, 0);
        }
        g_assert_cmpint(ftruncate(fd, 64 * BLOCK), ==, 0);
        if (fallocate(fd, 0, 16 * BLOCK, 8 * BLOCK) < 0) {
                g_test_skip("the file system has no fallocate");
                remove_dir(dir);
                return;
        }
        put(fd, 40 * BLOCK, 2 * BLOCK);
        g_assert_cmpint(fsync(fd), ==, 0);
        check(fd, path);
        map = extent_map_load(fd, NULL);
        extent_map_clip(map, 0, 64 * BLOCK, out);
        {
                guint64 bytes = 0;

                for (guint i = 0; i < out->len; i++) {
                        g_assert_true(extent_is_readable(&g_array_index(out, Extent, i)));
                        bytes += g_array_index(out, Extent, i).length_bytes;
                }
                g_assert_cmpuint(bytes, ==, 6 * BLOCK);
        }
        remove_dir(dir);
}

static void
test_none(void)
{
        g_autoptr(GError) error = NULL;
        g_autoptr(ExtentMap) map = NULL;
        auto_fd int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

        map = extent_map_load(fd, &error);
        g_assert_null(map);
        g_assert_nonnull(error);
}

/* Indirect blocks: FIEMAP, FIBMAP and filefrag agree on ext2 too. In a child, whose mounts end with
 * it. */
static void
test_ext2(void)
{
        if (g_test_subprocess()) {
                g_autofree gchar *path = NULL;
                const char *dir = g_getenv("EXTENTS_MOUNT");
                auto_fd int fd = make_file(dir, "file", &path);

                for (guint64 i = 0; i < 400; i++)
                        put(fd, i * 1024 * (i % 3 ? 1 : 7), 1024);
                g_assert_cmpint(fsync(fd), ==, 0);
                check(fd, path);
                return;
        }
        {
                gchar *dir = NULL;
                g_autofree gchar *out = NULL;
                g_autofree gchar *mounted = NULL;

                if (geteuid() != 0) {
                        g_test_skip("needs root (a loop mount)");
                        return;
                }
                dir = make_dir();
                if (!dir)
                        return;
                if (unshare(CLONE_NEWNS) < 0 ||
                    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
                        g_test_skip("needs a mount namespace of its own");
                        remove_dir(dir);
                        return;
                }
                out = run(
                        "PATH=$PATH:/sbin:/usr/sbin; cd '%s' && truncate -s 16M image && mkdir mnt "
                        "&& "
                        "mke2fs -q -F -t ext2 -b 1024 image && mount -o loop image mnt && echo yes",
                        dir);
                if (!out || !g_str_has_suffix(out, "yes\n")) {
                        g_test_skip("cannot make or mount an ext2 image here");
                        remove_dir(dir);
                        return;
                }
                mounted = g_build_filename(dir, "mnt", NULL);
                g_setenv("EXTENTS_MOUNT", mounted, TRUE);
                g_test_trap_subprocess(NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
                umount2(mounted, 0);
                remove_dir(dir);
                g_test_trap_assert_passed();
        }
}

int
main(int argc, char **argv)
{
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/extents/scattered", test_scattered);
        g_test_add_func("/extents/many", test_many);
        g_test_add_func("/extents/unreadable", test_unreadable);
        g_test_add_func("/extents/none", test_none);
        g_test_add_func("/extents/ext2", test_ext2);
        return g_test_run();
}
