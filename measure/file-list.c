// SPDX-License-Identifier: GPL-2.0-or-later
/* Paths to files, with every kind of bad entry told apart. */
#include "measure/file-list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/error.h"
#include "common/fd.h"
#include "common/file.h"
#include "common/json.h"
#include "measure/mounts.h"

#define LIST_BYTES_MAX (G_GUINT64_CONSTANT(1) << 30)
#define DEPTH_MAX 256

FileList *
file_list_new(const char *name, const char *root, GError **error)
{
        g_autoptr(FileList) list = g_new0(FileList, 1);

        list->profile = profile_new(name);
        list->profile->source = PROFILE_SOURCE_OPENS;
        list->outside = g_ptr_array_new_with_free_func(g_free);
        list->skipped = g_ptr_array_new_with_free_func(skipped_free);
        list->fs_mounts = g_ptr_array_new();
        list->seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        list->root = g_strdup(root);
        if (list->profile->page_bytes == 0)
                list->profile->page_bytes = (guint32)sysconf(_SC_PAGESIZE);
        list->mounts = mount_table_load(error);
        return list->mounts != NULL ? g_steal_pointer(&list) : NULL;
}

void
file_list_free(FileList *list)
{
        if (list == NULL)
                return;
        g_clear_pointer(&list->profile, profile_free);
        g_clear_pointer(&list->outside, g_ptr_array_unref);
        g_clear_pointer(&list->skipped, g_ptr_array_unref);
        g_clear_pointer(&list->mounts, g_ptr_array_unref);
        g_clear_pointer(&list->fs_mounts, g_ptr_array_unref);
        g_clear_pointer(&list->seen, g_hash_table_unref);
        g_free(list->root);
        g_free(list);
}

static void
skip(FileList *list, const char *path, const char *reason)
{
        g_ptr_array_add(list->skipped, skipped_new(path, "%s", reason));
}

static void
skip_errno(FileList *list, const char *path, int errnum)
{
        struct stat st;
        gboolean link = list->root == NULL && lstat(path, &st) == 0 && S_ISLNK(st.st_mode);

        if (errnum == ELOOP)
                skip(list, path, "symbolic links that lead to one another");
        else if (errnum == ENOENT && link)
                skip(list, path, "a symbolic link that leads to nothing");
        else if (errnum == ENOENT || errnum == ENOTDIR)
                skip(list, path, "there is no such file");
        else
                g_ptr_array_add(list->skipped,
                                skipped_new(path, "cannot be looked at: %s", g_strerror(errnum)));
}

/* A descriptor that only stands for the place: nothing is opened that could block or act. */
static int
look_at(const FileList *list, const char *path)
{
        struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
        auto_fd int root = -1;

        if (list->root == NULL)
                return open(path, O_PATH | O_CLOEXEC);
        root = open(list->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root < 0)
                return -1;
        return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

static gchar *
path_of(int fd)
{
        g_autofree gchar *link = g_strdup_printf("/proc/self/fd/%d", fd);
        gsize size = 512;

        for (;;) {
                g_autofree gchar *target = g_malloc(size);
                ssize_t length = readlink(link, target, size);

                if (length < 0)
                        return NULL;
                if ((gsize)length < size)
                        return g_strndup(target, (gsize)length);
                size *= 2;
        }
}

static guint32
fs_of_mount(FileList *list, Mount *mount, guint32 block_bytes)
{
        guint found;

        if (g_ptr_array_find(list->fs_mounts, mount, &found))
                return found;
        g_ptr_array_add(list->fs_mounts, mount);
        return profile_add_fs(list->profile, mount_uuid(mount), mount->type, block_bytes);
}

static void
add_file(FileList *list, const char *path, const struct stat *st)
{
        Mount *mount = mount_find_path(list->mounts, path);
        gchar *key = g_strdup_printf("%llx:%llx", (unsigned long long)st->st_dev,
                                     (unsigned long long)st->st_ino);
        guint32 page = list->profile->page_bytes;
        ProfileFile file = {.inode = st->st_ino, .size_bytes = (guint64)st->st_size};
        ProfileRange range = {.cause = PROFILE_CAUSE_OPEN};
        g_autofree gchar *inside = NULL;

        if (!g_hash_table_add(list->seen, key))
                return;
        if (mount == NULL) {
                skip(list, path, "on no known mount");
                return;
        }
        inside = mount_path_inside(mount, path);
        file.path = inside != NULL ? inside : (gchar *)path;
        file.fs = fs_of_mount(list, mount, (guint32)st->st_blksize);
        file.mtime_ns = (gint64)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
        file.first_use_us = list->profile->files->len;
        range.file = profile_add_file(list->profile, &file);
        range.first_use_us = file.first_use_us;
        range.length_bytes = (file.size_bytes + page - 1) / page * page;
        if (range.length_bytes > 0)
                g_array_append_val(list->profile->ranges, range);
        g_ptr_array_add(list->outside, g_strdup(path));
}

static gint
compare_names(gconstpointer a, gconstpointer b)
{
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void
add_directory(FileList *list, int at, const char *path, dev_t dev, guint depth)
{
        g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
        auto_fd int fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOATIME);
        struct dirent *entry;
        DIR *dir;

        if (fd < 0 && errno == EPERM) /* O_NOATIME is for owners */
                fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        dir = fd >= 0 && depth < DEPTH_MAX ? fdopendir(dup(fd)) : NULL;
        if (dir == NULL) {
                g_ptr_array_add(list->skipped,
                                skipped_new(path, "cannot be listed: %s",
                                            depth < DEPTH_MAX ? g_strerror(errno) : "too deep"));
                return;
        }
        while ((entry = readdir(dir)) != NULL)
                if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                        g_ptr_array_add(names, g_strdup(entry->d_name));
        closedir(dir);
        g_ptr_array_sort(names, compare_names);
        for (guint i = 0; i < names->len; i++) {
                const char *name = names->pdata[i];
                g_autofree gchar *child =
                        g_strconcat(strcmp(path, "/") == 0 ? "" : path, "/", name, NULL);
                auto_fd int look = openat(fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
                struct stat st;

                if (look < 0 || fstat(look, &st) < 0)
                        skip_errno(list, child, errno);
                else if (S_ISREG(st.st_mode))
                        add_file(list, child, &st);
                else if (S_ISDIR(st.st_mode) && st.st_dev == dev)
                        add_directory(list, look, child, dev, depth + 1);
                else if (S_ISDIR(st.st_mode))
                        skip(list, child, "another file system; name it to have it measured");
        }
}

void
file_list_add(FileList *list, const char *path)
{
        auto_fd int look = -1;
        g_autofree gchar *resolved = NULL;
        struct stat st;

        if (*path == '\0') {
                skip(list, path, "an empty name");
                return;
        }
        look = look_at(list, path);
        if (look < 0 || fstat(look, &st) < 0) {
                skip_errno(list, path, errno);
                return;
        }
        resolved = path_of(look);
        if (resolved == NULL || resolved[0] != '/')
                skip(list, path, "its place cannot be told");
        else if (S_ISREG(st.st_mode))
                add_file(list, resolved, &st);
        else if (S_ISDIR(st.st_mode))
                add_directory(list, look, resolved, st.st_dev, 0);
        else
                skip(list, path,
                     S_ISFIFO(st.st_mode)   ? "a FIFO, not a regular file"
                     : S_ISSOCK(st.st_mode) ? "a socket, not a regular file"
                                            : "a device, not a regular file");
}

static GBytes *
read_standard_input(GError **error)
{
        g_autoptr(GByteArray) bytes = g_byte_array_new();
        guint8 buffer[65536];
        ssize_t got;

        while ((got = read(STDIN_FILENO, buffer, sizeof(buffer))) != 0) {
                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0 || bytes->len > LIST_BYTES_MAX) {
                        error_set_errno(error, COMMON_ERROR_INPUT, got < 0 ? errno : EFBIG,
                                        "reading the list on standard input", NULL);
                        return NULL;
                }
                g_byte_array_append(bytes, buffer, (guint)got);
        }
        return g_byte_array_free_to_bytes(g_steal_pointer(&bytes));
}

gboolean
file_list_read(FileList *list, const char *path, gboolean null, GError **error)
{
        g_autoptr(GBytes) bytes = strcmp(path, "-") == 0 ? read_standard_input(error)
                                                         : file_read(path, LIST_BYTES_MAX, error);
        const char *text, *end, *next;
        gsize length;

        if (bytes == NULL)
                return FALSE;
        text = g_bytes_get_data(bytes, &length);
        for (end = text + length; text != NULL && text < end; text = next + 1) {
                g_autofree gchar *entry = NULL;

                next = memchr(text, null ? '\0' : '\n', (gsize)(end - text));
                if (next == NULL)
                        next = end;
                entry = g_strndup(text, (gsize)(next - text));
                if (next > text)
                        file_list_add(list, entry);
        }
        return TRUE;
}
