// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * export: the files of a profile for other tools, in order of first use, named as they are mounted
 * here, or below --root.
 */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/json.h"
#include "measure/mounts.h"
#include "profiler/export.h"

typedef enum { FORMAT_LIST, FORMAT_E4RAT, FORMAT_SQUASHFS, FORMAT_NYDUS, N_FORMATS } Format;

static const char *const format_names[] = {"list", "e4rat", "squashfs-sort", "nydus-prefetch"};

typedef struct {
        const Cli *cli;
        const Profile *profile;
        GPtrArray *mounts, *skipped;
        GPtrArray *names; /* gchar *: owns ExportFile.path */
        GArray *files;    /* ExportFile */
        gchar *root;      /* without links and a '/' at the end; NULL = / */
} Export;

/* `path` as seen from the root; NULL when it lies outside. */
static const char *
below_root(const Export *export, const char *path)
{
        gsize n;

        if (!export->root)
                return path;
        n = strlen(export->root);
        return strncmp(path, export->root, n) == 0 && path[n] == '/' ? path + n : NULL;
}

/* A place where the file system is mounted and the name leads to the file; if it leads to it
 * nowhere (it was deleted or replaced), a place where it would. */
static gchar *
find_name(const Export *export, const ProfileFile *file, const ProfileFs *fs, guint64 *ret_device,
          gboolean *ret_mounted)
{
        gchar *best = NULL;

        *ret_mounted = FALSE;
        for (guint i = 0; i < export->mounts->len; i++) {
                Mount *mount = g_ptr_array_index(export->mounts, i);
                g_autofree gchar *outside = NULL;
                struct stat st;

                if (mount->hidden || strcmp(mount->type, fs->type) != 0 ||
                    g_ascii_strcasecmp(mount_uuid(mount), fs->uuid) != 0)
                        continue;
                *ret_mounted = TRUE;
                outside = mount_path_outside(mount, file->path);
                if (!outside || !below_root(export, outside))
                        continue;
                if (lstat(outside, &st) == 0 && st.st_ino == file->inode) {
                        g_free(best);
                        *ret_device = st.st_dev;
                        return g_steal_pointer(&outside);
                }
                if (!best) {
                        *ret_device = mount->dev;
                        best = g_steal_pointer(&outside);
                }
        }
        return best;
}

static void
add_files(Export *export)
{
        for (guint i = 0; i < export->profile->files->len; i++) {
                const ProfileFile *file = &g_array_index(export->profile->files, ProfileFile, i);
                const ProfileFs *fs = &g_array_index(export->profile->fs, ProfileFs, file->fs);
                ExportFile entry = {.inode = file->inode};
                gboolean mounted;
                gchar *name = find_name(export, file, fs, &entry.device, &mounted);

                if (!name) {
                        g_ptr_array_add(export->skipped,
                                        skipped_new(file->path, "%s",
                                                    mounted ? "not below the root"
                                                            : "its file system is not mounted"));
                        continue;
                }
                g_ptr_array_add(export->names, name);
                entry.path = below_root(export, name);
                g_array_append_val(export->files, entry);
        }
}

static GByteArray *
make(Export *export, Format format)
{
        switch (format) {
        case FORMAT_E4RAT: return export_e4rat(export->files, export->skipped);
        case FORMAT_SQUASHFS: return export_squashfs_sort(export->files, export->skipped);
        case FORMAT_NYDUS: return export_nydus(export->files, export->skipped);
        default: return export_list(export->files, export->cli->null, export->skipped);
        }
}

static gboolean
print_json(const Export *export, Format format, guint written, GError **error)
{
        g_autoptr(JsonBuilder) builder = json_builder_new();

        json_builder_begin_object(builder);
        json_add_string(builder, "name", export->profile->name);
        json_add_string(builder, "format", format_names[format]);
        json_add_int(builder, "files", written);
        json_add_skipped(builder, "skipped", export->skipped);
        json_builder_end_object(builder);
        return json_print(builder, error);
}

static gboolean
run(Export *export, Format format, const char *output, GError **error)
{
        g_autoptr(GByteArray) out = NULL;
        guint before, written;
        int result;

        export->mounts = mount_table_load(error);
        if (!export->mounts)
                return FALSE;
        add_files(export);
        before = export->skipped->len;
        out = make(export, format);
        written = export->files->len - (export->skipped->len - before);
        if (output) {
                if (!file_replace(output, out->data ? (gconstpointer)out->data : "", out->len, 0666,
                                  error))
                        return FALSE;
        } else {
                result = file_write_all(STDOUT_FILENO, out->data, out->len);
                if (result < 0) {
                        error_set_errno(error, COMMON_ERROR_FAILED, -result,
                                        "cannot write to standard output", NULL);
                        return FALSE;
                }
        }
        if (export->cli->json)
                return print_json(export, format, written, error);
        cli_print_skipped(export->cli, export->skipped);
        if (output)
                cli_note(export->cli, "%u files written", written);
        return TRUE;
}

int
cmd_export(Cli *cli, int argc, char **argv)
{
        g_autofree gchar *format_name = NULL, *output = NULL;
        g_autoptr(GError) error = NULL;
        g_autoptr(Profile) profile = NULL;
        Export export = {.cli = cli};
        Format format = N_FORMATS;
        const GOptionEntry entries[] = {
                {"format", 0, 0, G_OPTION_ARG_STRING, &format_name,
                 "list, e4rat, squashfs-sort or nydus-prefetch", "F"},
                {"output", 'o', 0, G_OPTION_ARG_FILENAME, &output,
                 "Write to FILE instead of standard output", "FILE"},
                {NULL, 0, 0, 0, NULL, NULL, NULL},
        };
        int status;

        if (!cli_parse(cli, &argc, &argv, entries, "NAME", FALSE, &error))
                return cli_fail(cli, error);
        for (guint i = 0; format_name && i < N_FORMATS; i++)
                if (strcmp(format_name, format_names[i]) == 0)
                        format = (Format)i;
        if (format == N_FORMATS)
                return cli_usage(cli, "--format wants list, e4rat, squashfs-sort or "
                                      "nydus-prefetch");
        if (cli->null && format != FORMAT_LIST)
                return cli_usage(cli, "--null is for --format list");
        if (cli->json && !output)
                return cli_usage(cli, "--json needs -o FILE: one of them gets standard output");
        if (argc != 2)
                return cli_usage(cli, "which profile? headstart export --format F NAME");
        profile = cli_load_profile(cli, argv[1], &error);
        if (!profile)
                return cli_fail(cli, error);
        if (cli->root) {
                export.root = realpath(cli->root, NULL);
                if (!export.root) {
                        error_set_errno(&error, COMMON_ERROR_USAGE, errno, "cannot open",
                                        cli->root);
                        return cli_fail(cli, error);
                }
                if (strcmp(export.root, "/") == 0)
                        g_clear_pointer(&export.root, free);
        }
        export.profile = profile;
        export.skipped = g_ptr_array_new_with_free_func(skipped_free);
        export.names = g_ptr_array_new_with_free_func(g_free);
        export.files = g_array_new(FALSE, FALSE, sizeof(ExportFile));
        if (run(&export, format, output, &error))
                status = export.skipped->len > 0 ? EXIT_STATUS_PARTIAL : EXIT_STATUS_DONE;
        else
                status = cli_fail(cli, error);
        g_ptr_array_unref(export.skipped);
        g_array_unref(export.files);
        g_ptr_array_unref(export.names);
        g_clear_pointer(&export.mounts, g_ptr_array_unref);
        free(export.root);
        return status;
}
