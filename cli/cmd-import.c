// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * import: make a profile from somebody else's list. Format "list": one path a line ('#' and empty
 * lines are comments), or with --null each ended by NUL.
 *
 * Symbolic links are followed (inside --root) and their target is recorded, once. Each entry is
 * looked at through an O_PATH descriptor before anything is opened, so that no FIFO, socket or
 * device in a list can hold it up. What cannot be taken is counted and named; the rest goes on.
 */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/file.h"
#include "common/json.h"
#include "common/quote.h"
#include "common/state.h"
#include "measure/device.h"
#include "measure/metadata.h"
#include "measure/mounts.h"

#define LIST_BYTES_MAX (1ULL << 30)

typedef struct {
        const Cli *cli;
        Profile *profile;
        GPtrArray *mounts, *skipped;
        GHashTable *fs_of_mount; /* Mount * -> index + 1 */
        GHashTable *seen;        /* "dev:inode" */
        int root_fd;
} Import;

/* Reading one of these costs no disk, or is no reading at all. */
static gboolean
is_memory(const char *type)
{
        static const char *const types[] = {"tmpfs",     "ramfs",    "devtmpfs",   "proc",
                                            "sysfs",     "devpts",   "cgroup2",    "cgroup",
                                            "debugfs",   "tracefs",  "securityfs", "mqueue",
                                            "hugetlbfs", "configfs", "efivarfs",   "bpf"};

        for (guint i = 0; i < G_N_ELEMENTS(types); i++)
                if (strcmp(type, types[i]) == 0)
                        return TRUE;
        return FALSE;
}

static void
skip(Import *import, const char *path, const char *reason)
{
        g_ptr_array_add(import->skipped, skipped_new(path, "%s", reason));
}

/* Follows links, below --root where there is one. */
static int
resolve(const Import *import, const char *path)
{
        struct open_how how = {
                .flags = O_PATH | O_CLOEXEC,
                .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
        };
        int fd;

        if (import->root_fd < 0)
                return open(path, O_PATH | O_CLOEXEC);
        do
                fd = (int)syscall(SYS_openat2, import->root_fd, path, &how, sizeof how);
        while (fd < 0 && (errno == EAGAIN || errno == EINTR));
        return fd;
}

/* The index of the mount's file system in the profile, or -1: one line a file system that is none.
 */
static gint64
fs_index(Import *import, Mount *mount)
{
        gpointer known = g_hash_table_lookup(import->fs_of_mount, mount);
        gint64 index = -1;

        if (known)
                return (gint64)GPOINTER_TO_INT(known) - 2;
        if (is_memory(mount->type)) {
                skip(import, mount->dir, "a file system in memory, its files are left out");
        } else {
                const char *uuid = mount_uuid(mount);

                for (guint i = 0; i < import->profile->fs->len && index < 0; i++) {
                        const ProfileFs *fs = &g_array_index(import->profile->fs, ProfileFs, i);

                        if (strcmp(fs->uuid, uuid) == 0 && strcmp(fs->type, mount->type) == 0)
                                index = i;
                }
                if (index < 0)
                        index = profile_add_fs(import->profile, uuid, mount->type, 0);
        }
        g_hash_table_insert(import->fs_of_mount, mount, GINT_TO_POINTER((gint)index + 2));
        return index;
}

static const char *
type_name(mode_t mode)
{
        switch (mode & S_IFMT) {
        case S_IFDIR: return "a folder, not a file";
        case S_IFIFO: return "a FIFO, not a file";
        case S_IFSOCK: return "a socket, not a file";
        case S_IFCHR:
        case S_IFBLK: return "a device, not a file";
        default: return "not a regular file";
        }
}

/* The generation number of the file, 0 where the file system has none. Also finds out whether the
 * file may be read at all. */
static gboolean
read_generation(int path_fd, guint32 *ret)
{
        g_autofree gchar *link = g_strdup_printf("/proc/self/fd/%d", path_fd);
        auto_fd int fd = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        long generation = 0;

        if (fd < 0)
                return FALSE;
        *ret = ioctl(fd, FS_IOC_GETVERSION, &generation) == 0 ? (guint32)generation : 0;
        return TRUE;
}

static void
add_file(Import *import, const char *listed, int fd, const struct stat *st)
{
        g_autofree gchar *link = g_strdup_printf("/proc/self/fd/%d", fd);
        guint64 order = import->profile->files->len;
        g_autofree gchar *inside = NULL;
        char path[PATH_MAX] = "";
        ProfileFile file = {
                .inode = st->st_ino,
                .size_bytes = (guint64)st->st_size,
                .mtime_ns = (gint64)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec,
                .first_use_us = order,
        };
        ssize_t length = readlink(link, path, sizeof path - 1);
        Mount *mount = length > 0 ? mount_find_path(import->mounts, path) : NULL;
        gint64 fs;

        if (!mount) {
                skip(import, listed, "its place among the mounts is not known");
                return;
        }
        fs = fs_index(import, mount);
        if (fs < 0)
                return;
        inside = mount_path_inside(mount, path);
        if (!inside) {
                skip(import, listed, "its path inside the file system is not known");
                return;
        }
        if (!read_generation(fd, &file.generation)) {
                skip(import, listed, g_strerror(errno));
                return;
        }
        file.fs = (guint32)fs;
        file.path = inside;
        profile_add_file(import->profile, &file);
        if (st->st_size > 0) {
                guint64 page = import->profile->page_bytes;
                ProfileRange range = {
                        .file = (guint32)order,
                        .cause = PROFILE_CAUSE_OPEN,
                        .length_bytes = ((guint64)st->st_size + page - 1) / page * page,
                        .first_use_us = order,
                };

                g_array_append_val(import->profile->ranges, range);
        }
}

static void
add_path(Import *import, const char *path)
{
        auto_fd int fd = -1;
        struct stat st;
        gchar *key;

        if (path[0] != '/') {
                skip(import, path, "not an absolute path");
                return;
        }
        fd = resolve(import, path);
        if (fd < 0 || fstat(fd, &st) < 0) {
                skip(import, path, g_strerror(errno));
                return;
        }
        if (!S_ISREG(st.st_mode)) {
                skip(import, path, type_name(st.st_mode));
                return;
        }
        key = g_strdup_printf("%llx:%llx", (unsigned long long)st.st_dev,
                              (unsigned long long)st.st_ino);
        if (g_hash_table_add(import->seen, key))
                add_file(import, path, fd, &st);
}

static void
add_list(Import *import, const char *data, gsize size)
{
        char end = import->cli->null ? '\0' : '\n';

        while (size > 0 && !cli_interrupted) {
                const char *stop = memchr(data, end, size);
                gsize length = stop ? (gsize)(stop - data) : size;
                g_autofree gchar *path = g_strndup(data, length);

                data += length + (stop ? 1 : 0);
                size -= length + (stop ? 1 : 0);
                if (strlen(path) != length)
                        skip(import, path, "holds a NUL: is the list one for --null?");
                else if (length > 0 && (import->cli->null || path[0] != '#'))
                        add_path(import, path);
        }
}

static void
add_metadata(Import *import)
{
        GHashTableIter iter;
        gpointer mount_key, value;

        g_hash_table_iter_init(&iter, import->fs_of_mount);
        while (g_hash_table_iter_next(&iter, &mount_key, &value)) {
                const Mount *mount = mount_key;
                gint fs = GPOINTER_TO_INT(value) - 2;
                g_autoptr(GError) error = NULL;
                g_autoptr(Device) device = NULL;
                g_autoptr(MetadataReader) reader = NULL;

                if (fs < 0 || !g_str_has_prefix(mount->type, "ext"))
                        continue;
                device = device_load(mount->dev, &error);
                reader = device ? metadata_reader_open(device->node, &error) : NULL;
                if (reader) {
                        g_array_index(import->profile->fs, ProfileFs, fs).block_bytes =
                                metadata_reader_block_bytes(reader);
                        metadata_compute(reader, import->profile, (guint32)fs, &error);
                }
                if (error)
                        cli_note(import->cli, "metadata is left out: %s", error->message);
        }
}

static gboolean
print_result(const Import *import, GError **error)
{
        const Profile *p = import->profile;
        g_autoptr(JsonBuilder) builder = NULL;

        if (!import->cli->json) {
                cli_print_skipped(import->cli, import->skipped);
                if (!import->cli->quiet)
                        printf("%s: %u files, %u metadata objects, %u entries skipped\n", p->name,
                               p->files->len, p->meta->len, import->skipped->len);
                return TRUE;
        }
        builder = json_builder_new();
        json_builder_begin_object(builder);
        json_add_string(builder, "name", p->name);
        json_add_string(builder, "source", profile_source_name(p->source));
        json_add_int(builder, "files", p->files->len);
        json_add_int(builder, "ranges", p->ranges->len);
        json_add_int(builder, "used_bytes", (gint64)profile_used_bytes(p));
        json_add_int(builder, "file_bytes", (gint64)profile_file_bytes(p));
        json_add_int(builder, "metadata_blocks", p->meta->len);
        json_add_skipped(builder, "skipped", import->skipped);
        json_builder_end_object(builder);
        return json_print(builder, error);
}

/* The list whole: a regular file, or standard input for "-". */
static GBytes *
read_list(const char *file, GError **error)
{
        g_autoptr(GByteArray) all = NULL;
        guint8 buffer[65536];
        ssize_t got;

        if (strcmp(file, "-") != 0)
                return file_read(file, LIST_BYTES_MAX, error);
        all = g_byte_array_new();
        while ((got = read(STDIN_FILENO, buffer, sizeof buffer)) != 0) {
                if (got < 0 && errno == EINTR && !cli_interrupted)
                        continue;
                if (got < 0 || all->len + (guint64)got > LIST_BYTES_MAX) {
                        error_set_errno(error, COMMON_ERROR_INPUT, got < 0 ? errno : EFBIG,
                                        "cannot read the list from standard input", NULL);
                        return NULL;
                }
                g_byte_array_append(all, buffer, (guint)got);
        }
        return g_byte_array_free_to_bytes(g_steal_pointer(&all));
}

static gboolean
import_list(Import *import, const char *file, GError **error)
{
        g_autoptr(GBytes) list = read_list(file, error);
        g_autofree gchar *path = NULL;
        const char *data;
        gsize size;

        if (!list)
                return FALSE;
        import->mounts = mount_table_load(error);
        if (!import->mounts)
                return FALSE;
        if (import->cli->root) {
                import->root_fd = open(import->cli->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
                if (import->root_fd < 0) {
                        error_set_errno(error, COMMON_ERROR_USAGE, errno, "cannot open",
                                        import->cli->root);
                        return FALSE;
                }
        }
        data = g_bytes_get_data(list, &size);
        add_list(import, data, size);
        if (cli_interrupted) {
                g_set_error_literal(error, COMMON_ERROR, COMMON_ERROR_INTERRUPTED,
                                    "interrupted, nothing saved");
                return FALSE;
        }
        if (import->profile->files->len == 0) {
                cli_print_skipped(import->cli, import->skipped);
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_INPUT,
                            "the list names no file that can be taken (%u skipped); nothing saved",
                            import->skipped->len);
                return FALSE;
        }
        add_metadata(import);
        path = state_profile_path(import->cli->state, import->profile->name);
        return state_prepare(import->cli->state, error) &&
               profile_save(import->profile, path, error);
}

int
cmd_import(Cli *cli, int argc, char **argv)
{
        g_autofree gchar *name = NULL, *format = NULL;
        g_autoptr(GError) error = NULL;
        Import import = {.cli = cli, .root_fd = -1};
        const GOptionEntry entries[] = {
                {"format", 0, 0, G_OPTION_ARG_STRING, &format, "list: a path a line", "F"},
                {"name", 0, 0, G_OPTION_ARG_STRING, &name, "Name of the profile", "N"},
                {NULL, 0, 0, 0, NULL, NULL, NULL},
        };
        int status;

        if (!cli_parse(cli, &argc, &argv, entries, "FILE", FALSE, &error))
                return cli_fail(cli, error);
        if (!format || strcmp(format, "list") != 0)
                return cli_usage(cli, "--format list is the one format there is so far");
        if (!name || !profile_name_valid(name))
                return cli_usage(cli, "--name wants letters, digits and ._+@:- only, at most 100");
        if (argc != 2)
                return cli_usage(cli, "which list? headstart import --format list --name N FILE");

        import.profile = profile_new(name);
        import.profile->created_us = g_get_real_time();
        import.profile->source = PROFILE_SOURCE_OPENS;
        import.profile->complete = TRUE;
        import.profile->page_bytes = (guint32)sysconf(_SC_PAGESIZE);
        import.skipped = g_ptr_array_new_with_free_func(skipped_free);
        import.fs_of_mount = g_hash_table_new(NULL, NULL);
        import.seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        if (import_list(&import, argv[1], &error) && print_result(&import, &error))
                status = import.skipped->len > 0 ? EXIT_STATUS_PARTIAL : EXIT_STATUS_DONE;
        else
                status = cli_fail(cli, error);
        g_hash_table_unref(import.fs_of_mount);
        g_hash_table_unref(import.seen);
        g_ptr_array_unref(import.skipped);
        g_clear_pointer(&import.mounts, g_ptr_array_unref);
        profile_free(import.profile);
        fd_close(&import.root_fd);
        return status;
}
