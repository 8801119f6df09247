// SPDX-License-Identifier: GPL-2.0-or-later
/* The mountinfo parser on ordinary, odd and hostile text; paths through mounts; extent clipping. */
#include <glib.h>
#include <glib/gstdio.h>
#include <linux/fiemap.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "measure/device.h"
#include "measure/extents.h"
#include "measure/mounts.h"

static GPtrArray *
parse(const char *text)
{
        return mount_table_parse(text, strlen(text));
}

static Mount *
nth(GPtrArray *mounts, guint i)
{
        g_assert_cmpuint(i, <, mounts->len);
        return g_ptr_array_index(mounts, i);
}

static void
test_ordinary(void)
{
        g_autoptr(GPtrArray) mounts = parse(
                "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,data=journal\n"
                "23 22 8:2 /sub /a\\040b\\134c\\012d ro,noatime - btrfs /dev/sda2 rw,space_cache\n"
                "24 22 259:1048575 / /big rw - xfs /dev/nvme0n1p9 rw\n");

        g_assert_cmpuint(mounts->len, ==, 3);
        g_assert_cmpstr(nth(mounts, 0)->type, ==, "ext4");
        g_assert_true(mount_has_option(nth(mounts, 0), "data=journal"));
        g_assert_false(mount_has_option(nth(mounts, 0), "data"));
        g_assert_false(nth(mounts, 0)->read_only);
        g_assert_cmpstr(nth(mounts, 1)->dir, ==, "/a b\\c\nd");
        g_assert_cmpstr(nth(mounts, 1)->root, ==, "/sub");
        g_assert_true(nth(mounts, 1)->read_only);
        g_assert_true(nth(mounts, 2)->dev == makedev(259, 1048575));
        for (guint i = 0; i < 3; i++)
                g_assert_false(nth(mounts, i)->hidden);
}

static void
test_hostile(void)
{
        static const char *const lines[] = {
                "",
                "\n\n",
                "22",
                "22 1 8:1 / / rw",
                "22 1 8:1 / / rw -",
                "22 1 8 / / rw - ext4 /dev/sda1 rw",
                "-1 1 8:1 / / rw - ext4 /dev/sda1 rw",
                "22 1 8:-1 / / rw - ext4 /dev/sda1 rw",
                "99999999999999999999 1 8:1 / / rw - ext4 /dev/sda1 rw",
                "22 1 8:1 / relative rw - ext4 /dev/sda1 rw",
                "x y z - - - - - -",
        };
        const char nul[] = "22 1 8:1 / / rw - ext4 a rw\0\n23 22 8:2 / /x rw - ext4 b rw";
        g_autoptr(GPtrArray) after_nul = mount_table_parse(nul, sizeof nul - 1);

        for (guint i = 0; i < G_N_ELEMENTS(lines); i++) {
                g_autoptr(GPtrArray) mounts = parse(lines[i]);

                g_assert_cmpuint(mounts->len, ==, 0);
        }
        g_assert_cmpuint(after_nul->len, ==, 2);
        {
                /* An empty source, an escape cut off, an escaped NUL, ten tags. */
                g_autoptr(GPtrArray) mounts =
                        parse("22 1 0:5 / /a\\04 rw - tmpfs  rw\n"
                              "23 1 0:6 / /b\\000c rw a b c d e f g h i j - tmpfs none rw");

                g_assert_cmpuint(mounts->len, ==, 2);
                g_assert_cmpstr(nth(mounts, 0)->dir, ==, "/a\\04");
                g_assert_cmpstr(nth(mounts, 0)->source, ==, "");
                g_assert_cmpstr(nth(mounts, 1)->dir, ==, "/b\\000c");
                g_assert_cmpstr(nth(mounts, 1)->type, ==, "tmpfs");
        }
        {
                /* Parents that form a loop, a mount that is its own parent: ends, finds something
                 * sane. */
                g_autoptr(GPtrArray) mounts = parse("1 2 8:1 / / rw - ext4 a rw\n"
                                                    "2 1 8:2 / / rw - ext4 b rw\n"
                                                    "3 3 8:3 / /x rw - ext4 c rw");

                g_assert_null(mount_find_path(mounts, "/y"));
                g_assert_true(mount_find_path(mounts, "/x/y") == nth(mounts, 2));
        }
}

static void
test_hidden(void)
{
        g_autoptr(GPtrArray) mounts =
                parse("10 1 8:1 / / rw - ext4 root rw\n"
                      "11 10 8:2 / /a/b rw - ext4 under rw\n" /* hidden: /a is mounted over it */
                      "12 10 8:3 / /a rw - ext4 over rw\n"
                      "13 12 8:4 / /a/b/c rw - ext4 deep rw\n" /* below 12, seen */
                      "14 10 8:5 / /s rw - ext4 first rw\n"    /* hidden: 15 lies on top */
                      "15 14 8:6 / /s rw - ext4 second rw\n"
                      "16 10 8:5 / /again rw - ext4 first rw\n"
                      "17 10 8:5 /part /z rw - ext4 first rw\n");
        static const gboolean hidden[] = {FALSE, TRUE, FALSE, FALSE, TRUE, FALSE, FALSE, FALSE};

        for (guint i = 0; i < mounts->len; i++)
                g_assert_cmpint(nth(mounts, i)->hidden, ==, hidden[i]);
        g_assert_true(mount_find_path(mounts, "/") == nth(mounts, 0));
        g_assert_true(mount_find_path(mounts, "/a/b") == nth(mounts, 2));
        g_assert_true(mount_find_path(mounts, "/a/b/c/d") == nth(mounts, 3));
        g_assert_true(mount_find_path(mounts, "/s/x") == nth(mounts, 5));
        g_assert_true(mount_find_path(mounts, "/sx") == nth(mounts, 0));
        g_assert_null(mount_find_path(mounts, "relative"));
        g_assert_null(mount_find_dev(mounts, makedev(8, 2)));
        /* A mount of the whole file system is better than a later one of a part of it. */
        g_assert_true(mount_find_dev(mounts, makedev(8, 5)) == nth(mounts, 6));
}

static void
check_path(const char *root, const char *dir, const char *inside, const char *outside)
{
        Mount mount = {.root = (gchar *)root, .dir = (gchar *)dir};
        g_autofree gchar *out = mount_path_outside(&mount, inside);
        g_autofree gchar *in = NULL;

        g_assert_cmpstr(out, ==, outside);
        if (outside) {
                in = mount_path_inside(&mount, outside);
                g_assert_cmpstr(in, ==, inside);
        }
}

static void
test_paths(void)
{
        check_path("/", "/", "/usr/bin/x", "/usr/bin/x");
        check_path("/", "/", "/", "/");
        check_path("/", "/usr", "/bin/x", "/usr/bin/x");
        check_path("/", "/usr", "/", "/usr");
        check_path("/@", "/", "/@/usr/x", "/usr/x");
        check_path("/@", "/mnt", "/@/x", "/mnt/x");
        check_path("/@", "/mnt", "/@home/x", NULL);
        check_path("/@", "/mnt", "/x", NULL);
        check_path("/@", "/", "/@", "/");
}

static void
test_own_table(void)
{
        g_autoptr(GError) error = NULL;
        g_autoptr(GPtrArray) mounts = mount_table_load(&error);
        Mount *root;

        g_assert_no_error(error);
        root = mount_find_path(mounts, "/");
        if (!root) {
                g_test_skip("no mount holds / here (chroot)");
                return;
        }
        g_assert_false(root->hidden);
        g_assert_nonnull(mount_uuid(root));
}

static void
write_file(const char *dir, const char *name, const char *text)
{
        g_autofree gchar *path = g_build_filename(dir, name, NULL);
        g_autofree gchar *folder = g_path_get_dirname(path);

        g_assert_cmpint(g_mkdir_with_parents(folder, 0755), ==, 0);
        g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static void
remove_tree(const char *path)
{
        g_autoptr(GDir) dir =
                g_file_test(path, G_FILE_TEST_IS_SYMLINK) ? NULL : g_dir_open(path, 0, NULL);
        const gchar *name;

        while (dir && (name = g_dir_read_name(dir))) {
                g_autofree gchar *child = g_build_filename(path, name, NULL);

                remove_tree(child);
        }
        g_remove(path);
}

static void
test_device(void)
{
        g_autofree gchar *sysfs = g_dir_make_tmp("headstart-sysfs-XXXXXX", NULL);
        g_autofree gchar *links = g_build_filename(sysfs, "dev/block", NULL);
        g_autofree gchar *part = g_build_filename(links, "259:1048575", NULL);
        g_autofree gchar *disk = g_build_filename(links, "8:0", NULL);
        g_autofree gchar *raid = g_build_filename(links, "9:0", NULL);
        g_autoptr(GError) error = NULL;
        g_autoptr(Device) device = NULL;

        g_assert_nonnull(sysfs);
        write_file(sysfs, "devices/sda/dev", "8:0\n");
        write_file(sysfs, "devices/sda/size", "16777216\n");
        write_file(sysfs, "devices/sda/device/model", "DISK 1  \n");
        write_file(sysfs, "devices/sda/queue/rotational", "1\n");
        write_file(sysfs, "devices/sda/queue/scheduler", "none [mq-deadline] bfq\n");
        write_file(sysfs, "devices/sda/queue/max_sectors_kb", "1280\n");
        write_file(sysfs, "devices/sda/queue/read_ahead_kb", "128\n");
        write_file(sysfs, "devices/sda/sda1/dev", "259:1048575\n");
        write_file(sysfs, "devices/sda/sda1/partition", "1\n");
        write_file(sysfs, "devices/sda/sda1/start", "8589934592\n"); /* at 4 TiB: 64-bit */
        write_file(sysfs, "devices/sda/sda1/size", "2048\n");
        write_file(sysfs, "devices/sda/sda1/uevent", "MAJOR=259\nDEVNAME=sda1\n");
        write_file(sysfs, "devices/md0/dev", "9:0\n");
        write_file(sysfs, "devices/md0/slaves/sda1", "");
        g_assert_cmpint(g_mkdir_with_parents(links, 0755), ==, 0);
        g_assert_cmpint(symlink("../../devices/sda/sda1", part), ==, 0);
        g_assert_cmpint(symlink("../../devices/sda", disk), ==, 0);
        g_assert_cmpint(symlink("../../devices/md0", raid), ==, 0);

        device = device_load_sysfs(sysfs, makedev(259, 1048575), &error);
        g_assert_no_error(error);
        g_assert_cmpuint(device->offset_bytes, ==, 4ULL << 40);
        g_assert_cmpuint(device->size_bytes, ==, 1 << 20);
        g_assert_cmpuint(device->disk_size_bytes, ==, 8ULL << 30);
        g_assert_cmpstr(device->node, ==, "/dev/sda1");
        g_assert_cmpstr(device->disk_name, ==, "sda");
        g_assert_cmpstr(device->disk_model, ==, "DISK 1");
        g_assert_cmpstr(device->scheduler, ==, "mq-deadline");
        g_assert_cmpuint(device->readahead_bytes, ==, 128 * 1024);
        g_assert_true(device->rotational && device->position_known);
        g_assert_true(device->disk == makedev(8, 0));
        g_clear_pointer(&device, device_free);

        device = device_load_sysfs(sysfs, makedev(9, 0), &error);
        g_assert_no_error(error);
        g_assert_false(device->position_known);
        g_clear_pointer(&device, device_free);

        device = device_load_sysfs(sysfs, makedev(0, 40), &error);
        g_assert_null(device);
        g_assert_error(error, DEVICE_ERROR, DEVICE_ERROR_NOT_A_DISK);
        remove_tree(sysfs);
}

static void
test_clip(void)
{
        static const Extent all[] = {
                {0, 100 << 12, 8 << 12, 0},
                {8 << 12, 0, 4 << 12, FIEMAP_EXTENT_UNWRITTEN},
                {16 << 12, 50 << 12, 4 << 12, 0}, /* after a hole */
                {20 << 12, 0, 4 << 12, FIEMAP_EXTENT_DELALLOC | FIEMAP_EXTENT_UNKNOWN},
        };
        g_autoptr(GArray) extents = g_array_new(FALSE, FALSE, sizeof(Extent));
        g_autoptr(GArray) out = g_array_new(FALSE, FALSE, sizeof(Extent));
        ExtentMap map = {.extents = extents};
        const Extent *part;

        g_array_append_vals(extents, all, G_N_ELEMENTS(all));
        extent_map_clip(&map, 4 << 12, 13 << 12, out);
        g_assert_cmpuint(out->len, ==, 2);
        part = &g_array_index(out, Extent, 0);
        g_assert_cmpuint(part->logical_bytes, ==, 4 << 12);
        g_assert_cmpuint(part->physical_bytes, ==, 104 << 12);
        g_assert_cmpuint(part->length_bytes, ==, 4 << 12);
        part = &g_array_index(out, Extent, 1);
        g_assert_cmpuint(part->physical_bytes, ==, 50 << 12);
        g_assert_cmpuint(part->length_bytes, ==, 1 << 12);
        g_array_set_size(out, 0);
        extent_map_clip(&map, 17 << 12, G_MAXUINT64, out);
        g_assert_cmpuint(out->len, ==, 1);
        extent_map_clip(&map, 1ULL << 60, 1, out);
        g_assert_cmpuint(out->len, ==, 1);
}

int
main(int argc, char **argv)
{
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/mounts/ordinary", test_ordinary);
        g_test_add_func("/mounts/hostile", test_hostile);
        g_test_add_func("/mounts/hidden", test_hidden);
        g_test_add_func("/mounts/paths", test_paths);
        g_test_add_func("/mounts/own-table", test_own_table);
        g_test_add_func("/device/sysfs", test_device);
        g_test_add_func("/extents/clip", test_clip);
        return g_test_run();
}
