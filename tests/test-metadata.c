// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The metadata reader against mke2fs, e2fsck -D and debugfs, on images that need no mount: objects
 * computed for files are resolved, read from the image and compared with what debugfs says; and
 * found again from their block numbers. Hashed directories of one and two levels, linear and inline
 * ones, extent trees and indirect blocks, slow symbolic links.
 */
#include <glib.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/error.h"
#include "measure/metadata.h"

#define MANY 3000

static gchar *
run(const char *command)
{
        gchar *argv[] = {"/bin/sh", "-c", (gchar *)command, NULL};
        gchar *out = NULL;
        gint status = -1;

        if (!g_spawn_sync(NULL, argv, NULL, G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL, &out, NULL,
                          &status, NULL))
                return NULL;
        return out;
}

static gboolean
have_tools(void)
{
        g_autofree gchar *out =
                run("PATH=$PATH:/sbin:/usr/sbin; command -v mke2fs && command -v debugfs && "
                    "command -v e2fsck && echo yes");

        return out && g_str_has_suffix(out, "yes\n");
}

typedef struct {
        gchar *dir, *image;
        guint64 block_bytes;
        MetadataReader *reader;
        Profile *profile;
        guint32 fs;
} Fixture;

/* The same tree in every image: a directory of MANY long names, a link path, files with many holes.
 */
static void
make_tree(const char *dir)
{
        g_autofree gchar *script =
                g_strdup_printf("cd '%s' && mkdir -p tree/many tree/few/deep && cd tree && "
                                "i=0; while [ $i -lt %d ]; do : > "
                                "many/a_rather_long_file_name_number_$i; i=$((i+1)); done; "
                                "echo x > few/deep/one; "
                                "ln -s few/deep short; "
                                "l=few/; i=0; while [ $i -lt 40 ]; do l=$l./././; i=$((i+1)); "
                                "done; ln -s ${l}deep slow; ",
                                dir, MANY);
        g_autofree gchar *out = run(script);
        g_autofree gchar *holes = g_build_filename(dir, "tree/holes", NULL);
        int fd = open(holes, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        g_assert_cmpint(fd, >=, 0);
        for (gint64 i = 0; i < 600; i++)
                g_assert_cmpint(pwrite(fd, "data", 4, i * 16384), ==, 4);
        close(fd);
}

static void
setup(Fixture *fixture, const char *options)
{
        g_autofree gchar *command = NULL, *out = NULL;
        g_autoptr(GError) error = NULL;

        fixture->dir = g_dir_make_tmp("headstart-metadata-XXXXXX", NULL);
        fixture->image = g_build_filename(fixture->dir, "image", NULL);
        make_tree(fixture->dir);
        command = g_strdup_printf("PATH=$PATH:/sbin:/usr/sbin; cd '%s' && truncate -s 64M image && "
                                  "mke2fs -q -F -t ext4 -N 8000 %s -d tree image && "
                                  "e2fsck -fyD image; e2fsck -fn image && echo yes",
                                  fixture->dir, options);
        out = run(command);
        g_assert_true(out && g_str_has_suffix(out, "yes\n"));
        fixture->reader = metadata_reader_open(fixture->image, &error);
        g_assert_no_error(error);
        fixture->block_bytes = metadata_reader_block_bytes(fixture->reader);
        fixture->profile = profile_new("test");
        fixture->fs = profile_add_fs(fixture->profile, "", "ext4", 0);
}

static void
teardown(Fixture *fixture)
{
        g_autofree gchar *command = g_strdup_printf("rm -rf '%s'", fixture->dir);
        g_autofree gchar *out = NULL;

        metadata_reader_free(fixture->reader);
        profile_free(fixture->profile);
        out = run(command);
        g_free(fixture->dir);
        g_free(fixture->image);
}

static gchar *
debugfs(const Fixture *fixture, const char *format, const char *argument)
{
        g_autofree gchar *request = g_strdup_printf(format, argument);
        g_autofree gchar *command = g_strdup_printf(
                "PATH=$PATH:/sbin:/usr/sbin; debugfs -R '%s' '%s'", request, fixture->image);

        return run(command);
}

static guint32
add_file(Fixture *fixture, const char *path, guint64 offset, guint64 length)
{
        g_autofree gchar *out = debugfs(fixture, "stat %s", path);
        ProfileFile file = {
                .fs = fixture->fs, .path = (gchar *)path, .size_bytes = offset + length};
        ProfileRange range = {.offset_bytes = offset, .length_bytes = length};

        if (out && g_str_has_prefix(out, "Inode: "))
                file.inode = g_ascii_strtoull(out + 7, NULL, 10);
        range.file = profile_add_file(fixture->profile, &file);
        if (length)
                g_array_append_val(fixture->profile->ranges, range);
        return (guint32)file.inode;
}

static void
compute(Fixture *fixture)
{
        g_autoptr(GError) error = NULL;

        g_assert_true(metadata_compute(fixture->reader, fixture->profile, fixture->fs, &error));
        g_assert_no_error(error);
}

static guint
count(const Fixture *fixture, ProfileMetaKind kind, guint64 inode)
{
        guint n = 0;

        for (guint i = 0; i < fixture->profile->meta->len; i++) {
                const ProfileMeta *meta = &g_array_index(fixture->profile->meta, ProfileMeta, i);

                n += meta->kind == kind && (inode == 0 || meta->inode == inode);
        }
        return n;
}

static gboolean
dir_block_holds(const Fixture *fixture, guint64 dir, const char *name)
{
        g_autofree gchar *block = g_malloc(fixture->block_bytes);
        int fd = open(fixture->image, O_RDONLY | O_CLOEXEC);
        gboolean found = FALSE;

        for (guint i = 0; i < fixture->profile->meta->len && !found; i++) {
                const ProfileMeta *meta = &g_array_index(fixture->profile->meta, ProfileMeta, i);
                guint64 offset;

                if (meta->kind != PROFILE_META_DIR_BLOCK || meta->inode != dir)
                        continue;
                g_assert_true(metadata_resolve(fixture->reader, meta, &offset));
                g_assert_cmpint(pread(fd, block, fixture->block_bytes, (off_t)offset), ==,
                                (gssize)fixture->block_bytes);
                found = memmem(block, fixture->block_bytes, name, strlen(name)) != NULL;
        }
        close(fd);
        return found;
}

/* "Inode 12 is part of block group 0\n\tlocated at block 37, offset 0x0b00" */
static void
check_inode_blocks(const Fixture *fixture)
{
        for (guint i = 0; i < fixture->profile->files->len; i++) {
                const ProfileFile *file = &g_array_index(fixture->profile->files, ProfileFile, i);
                g_autofree gchar *out = debugfs(fixture, "imap %s", file->path);
                const char *at = out ? strstr(out, "located at block ") : NULL;
                ProfileMeta meta = {.kind = PROFILE_META_INODE, .inode = file->inode};
                gboolean found = FALSE;
                guint64 offset, want;

                g_assert_nonnull(at);
                want = g_ascii_strtoull(at + strlen("located at block "), NULL, 10);
                g_assert_true(metadata_resolve(fixture->reader, &meta, &offset));
                g_assert_cmpuint(offset, ==, want * fixture->block_bytes);
                for (guint k = 0; k < fixture->profile->meta->len && !found; k++) {
                        const ProfileMeta *have =
                                &g_array_index(fixture->profile->meta, ProfileMeta, k);

                        found = have->kind == PROFILE_META_INODE &&
                                metadata_resolve(fixture->reader, have, &offset) &&
                                offset == want * fixture->block_bytes;
                }
                g_assert_true(found);
        }
}

/* Every object is found again from its block, and nothing else is; known other blocks count for
 * none. */
static void
check_identify(Fixture *fixture)
{
        g_autoptr(GArray) seen = g_array_new(FALSE, FALSE, sizeof(MetadataSeen));
        g_autofree gchar *journal = debugfs(fixture, "blocks %s", "<8>");
        guint before = fixture->profile->meta->len;
        MetadataSeen one = {.first_use_us = 5};

        for (guint i = 0; i < before; i++) {
                const ProfileMeta *meta = &g_array_index(fixture->profile->meta, ProfileMeta, i);
                guint64 offset;

                g_assert_true(metadata_resolve(fixture->reader, meta, &offset));
                one.block = offset / fixture->block_bytes;
                g_array_append_val(seen, one);
        }
        one.block = fixture->block_bytes == 1024 ? 1 : 0; /* superblock */
        g_array_append_val(seen, one);
        one.block++; /* group descriptors */
        g_array_append_val(seen, one);
        if (journal && g_ascii_isdigit(*journal)) {
                one.block = g_ascii_strtoull(journal, NULL, 10);
                g_array_append_val(seen, one);
        }
        g_assert_cmpuint(metadata_identify(fixture->reader, fixture->profile, fixture->fs, seen),
                         ==, 0);
        g_assert_cmpuint(fixture->profile->meta->len, ==, before);
        for (guint i = 0; i < before; i++)
                g_assert_cmpuint(g_array_index(fixture->profile->meta, ProfileMeta, i).flags, ==,
                                 PROFILE_META_SEEN | PROFILE_META_COMPUTED);
}

static void
check_many(Fixture *fixture, guint dir_blocks_each)
{
        guint32 dir;

        for (guint i = 0; i < MANY; i += 97) {
                g_autofree gchar *name = g_strdup_printf("a_rather_long_file_name_number_%u", i);
                g_autofree gchar *path = g_strdup_printf("/many/%s", name);
                g_autofree gchar *out = debugfs(fixture, "stat %s", "/many");

                dir = (guint32)g_ascii_strtoull(out + 7, NULL, 10);
                g_array_set_size(fixture->profile->files, 0);
                g_array_set_size(fixture->profile->meta, 0);
                add_file(fixture, path, 0, 0);
                compute(fixture);
                g_assert_true(dir_block_holds(fixture, dir, name));
                if (dir_blocks_each)
                        g_assert_cmpuint(count(fixture, PROFILE_META_DIR_BLOCK, dir), ==,
                                         dir_blocks_each);
        }
        check_inode_blocks(fixture);
        check_identify(fixture);
}

static void
check_links(Fixture *fixture)
{
        guint32 one;

        g_array_set_size(fixture->profile->files, 0);
        g_array_set_size(fixture->profile->meta, 0);
        one = add_file(fixture, "/few/deep/one", 0, 0);
        compute(fixture);
        g_assert_cmpuint(count(fixture, PROFILE_META_SYMLINK_BLOCK, 0), ==, 0);
        /* Through a link of each kind: the same file. */
        g_array_index(fixture->profile->files, ProfileFile, 0).path[0] = '\0';
        g_free(g_array_index(fixture->profile->files, ProfileFile, 0).path);
        g_array_index(fixture->profile->files, ProfileFile, 0).path = g_strdup("/slow/one");
        compute(fixture);
        g_assert_cmpuint(count(fixture, PROFILE_META_SYMLINK_BLOCK, 0), ==, 1);
        g_assert_cmpuint(one, >, 0);
        check_identify(fixture);
        g_free(g_array_index(fixture->profile->files, ProfileFile, 0).path);
        g_array_index(fixture->profile->files, ProfileFile, 0).path = g_strdup("/short/one/../no");
        compute(fixture); /* through a file, to nothing: ends */
}

/* Interior lines of debugfs "ex": "level/levels entry/entries first - last physical length". */
static void
check_tree(Fixture *fixture)
{
        guint32 ino;
        g_autofree gchar *out = debugfs(fixture, "ex %s", "/holes");
        g_auto(GStrv) lines = g_strsplit(out, "\n", -1);
        guint nodes = 0;

        g_array_set_size(fixture->profile->files, 0);
        g_array_set_size(fixture->profile->ranges, 0);
        g_array_set_size(fixture->profile->meta, 0);
        ino = add_file(fixture, "/holes", 0, 600 * 16384);
        compute(fixture);
        for (guint i = 0; lines[i]; i++) {
                int level, levels, entry, entries;
                unsigned long first, last, physical;
                ProfileMeta meta = {.kind = PROFILE_META_EXTENT_NODE, .inode = ino, .index = nodes};
                guint64 offset;

                if (sscanf(lines[i], " %d/ %d %d/ %d %lu - %lu %lu", &level, &levels, &entry,
                           &entries, &first, &last, &physical) != 7 ||
                    level >= levels)
                        continue;
                g_assert_true(metadata_resolve(fixture->reader, &meta, &offset));
                g_assert_cmpuint(offset, ==, physical * fixture->block_bytes);
                nodes++;
        }
        g_assert_cmpuint(nodes, >, 1);
        g_assert_cmpuint(count(fixture, PROFILE_META_EXTENT_NODE, ino), ==, nodes);
        check_identify(fixture);
        /* One page at the beginning needs the nodes above it only. */
        g_array_set_size(fixture->profile->meta, 0);
        g_array_index(fixture->profile->ranges, ProfileRange, 0).length_bytes = 4096;
        compute(fixture);
        g_assert_cmpuint(count(fixture, PROFILE_META_EXTENT_NODE, ino), <, nodes);
        g_assert_cmpuint(count(fixture, PROFILE_META_EXTENT_NODE, ino), >=, 1);
}

/* "(IND):123, (DIND):456" in the order of debugfs "stat". */
static void
check_indirect(Fixture *fixture)
{
        guint32 ino;
        g_autofree gchar *out = debugfs(fixture, "stat %s", "/holes");
        const char *at = out;
        guint nodes = 0;

        g_array_set_size(fixture->profile->files, 0);
        g_array_set_size(fixture->profile->ranges, 0);
        g_array_set_size(fixture->profile->meta, 0);
        ino = add_file(fixture, "/holes", 0, 600 * 16384);
        compute(fixture);
        while ((at = strstr(at, "IND):"))) {
                ProfileMeta meta = {.kind = PROFILE_META_EXTENT_NODE, .inode = ino, .index = nodes};
                guint64 offset;

                at += strlen("IND):");
                g_assert_true(metadata_resolve(fixture->reader, &meta, &offset));
                g_assert_cmpuint(offset, ==, g_ascii_strtoull(at, NULL, 10) * fixture->block_bytes);
                nodes++;
        }
        g_assert_cmpuint(nodes, >, 3);
        g_assert_cmpuint(count(fixture, PROFILE_META_EXTENT_NODE, ino), ==, nodes);
        check_identify(fixture);
}

static void
test_image(gconstpointer data)
{
        const char *const *options = data; /* mke2fs options, directory blocks for one name */
        Fixture fixture = {0};

        if (!have_tools()) {
                g_test_skip("mke2fs, e2fsck or debugfs is not installed (e2fsprogs)");
                return;
        }
        setup(&fixture, options[0]);
        check_many(&fixture, (guint)g_ascii_strtoull(options[1], NULL, 10));
        check_links(&fixture);
        if (strstr(options[0], "^extent"))
                check_indirect(&fixture);
        else
                check_tree(&fixture);
        teardown(&fixture);
}

static void
test_not_ext4(void)
{
        g_autoptr(GError) error = NULL;
        g_autoptr(MetadataReader) reader = metadata_reader_open("/proc/self/exe", &error);

        g_assert_null(reader);
        g_assert_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED);
}

int
main(int argc, char **argv)
{
        static const char *const plain[] = {"-b 4096", "2"};
        static const char *const deep[] = {"-b 1024", "3"};
        static const char *const linear[] = {"-b 4096 -O ^dir_index", "0"};
        static const char *const indirect[] = {"-b 1024 -O ^extent,^64bit,^flex_bg", "3"};
        static const char *const in_inode[] = {"-b 4096 -I 256 -O inline_data", "2"};
        static const char *const meta_bg[] = {"-b 1024 -O meta_bg,^resize_inode", "3"};

        g_test_init(&argc, &argv, NULL);
        g_test_add_data_func("/metadata/plain", plain, test_image);
        g_test_add_data_func("/metadata/two-levels", deep, test_image);
        g_test_add_data_func("/metadata/linear", linear, test_image);
        g_test_add_data_func("/metadata/block-mapped", indirect, test_image);
        g_test_add_data_func("/metadata/inline", in_inode, test_image);
        g_test_add_data_func("/metadata/meta-bg", meta_bg, test_image);
        g_test_add_func("/metadata/not-ext4", test_not_ext4);
        return g_test_run();
}
