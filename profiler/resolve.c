// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names to files, in two passes: first every name is looked up (so that it is known of every file
 * whether it was written, under whatever name), then the accesses are told to the profile in order
 * of time.
 */
#include "profiler/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/error.h"
#include "common/fd.h"
#include "common/json.h"
#include "measure/device.h"
#include "measure/metadata.h"
#include "measure/mounts.h"
#include "profiler/page-set.h"
#include "profiler/resolve-open.h"

#define NONE G_MAXUINT32
#define INTERPRETERS_MAX 4 /* as the kernel: a script of a script of ... */

/* A file, under however many names. */
typedef struct {
        ProfileFile file;    /* owns path */
        guint32 index;       /* in the profile; NONE = not yet */
        guint32 interpreter; /* Target that the kernel reads when this is executed; NONE */
        gchar *shown;        /* the first name */
        PageSet *pages;
        gboolean written, whole;
        guint32 process;
} Target;

typedef struct {
        const ImportList *list;
        const ResolveOptions *options;
        Profile *profile;
        ResolveResult *result;
        GPtrArray *mounts;
        GHashTable *fs_of_mount; /* Mount * -> index + 2; 1 = left out */
        GHashTable *by_inode;    /* "dev:inode" -> index + 2 in targets, 1 = not taken */
        GArray *targets;         /* Target */
        GArray *of_path;         /* guint32: path -> target, NONE */
        int root_fd;
} Resolve;

void
resolve_result_init(ResolveResult *result)
{
        *result = (ResolveResult){0};
        result->skipped = g_ptr_array_new_with_free_func(skipped_free);
        result->left_out = g_ptr_array_new_with_free_func(skipped_free);
        result->notes = g_ptr_array_new_with_free_func(g_free);
}

void
resolve_result_clear(ResolveResult *result)
{
        g_clear_pointer(&result->skipped, g_ptr_array_unref);
        g_clear_pointer(&result->left_out, g_ptr_array_unref);
        g_clear_pointer(&result->notes, g_ptr_array_unref);
}

static void
clear_target(gpointer data)
{
        Target *target = data;

        g_free(target->file.path);
        g_free(target->shown);
        page_set_free(target->pages);
}

static void
skip(Resolve *resolve, const char *path, const char *reason)
{
        g_ptr_array_add(resolve->result->skipped, skipped_new(path, "%s", reason));
}

static void
leave_out(Resolve *resolve, const char *path, const char *reason)
{
        g_ptr_array_add(resolve->options->trace ? resolve->result->left_out
                                                : resolve->result->skipped,
                        skipped_new(path, "%s", reason));
}

/* The index of the mount's file system in the profile, or -1: one line a file system that is none.
 */
static gint64
fs_index(Resolve *resolve, Mount *mount)
{
        gpointer known = g_hash_table_lookup(resolve->fs_of_mount, mount);
        Profile *profile = resolve->profile;
        gint64 index = -1;

        if (known)
                return (gint64)GPOINTER_TO_INT(known) - 2;
        if (resolve_is_memory(mount->type)) {
                leave_out(resolve, mount->dir, "a file system in memory, its files are left out");
        } else {
                const char *uuid = mount_uuid(mount);

                for (guint i = 0; i < profile->fs->len && index < 0; i++) {
                        const ProfileFs *fs = &g_array_index(profile->fs, ProfileFs, i);

                        if (strcmp(fs->uuid, uuid) == 0 && strcmp(fs->type, mount->type) == 0)
                                index = i;
                }
                if (index < 0)
                        index = profile_add_fs(profile, uuid, mount->type, 0);
        }
        g_hash_table_insert(resolve->fs_of_mount, mount, GINT_TO_POINTER((gint)index + 2));
        return index;
}

/* The file behind the descriptor as a new target; NONE when it cannot be taken. */
static guint32
add_target(Resolve *resolve, const char *named, int fd, const struct stat *st)
{
        g_autofree gchar *link = g_strdup_printf("/proc/self/fd/%d", fd), *inside = NULL;
        auto_fd int read_fd = -1;
        char path[PATH_MAX] = "";
        Target target = {
                .file = {.inode = st->st_ino,
                         .size_bytes = (guint64)st->st_size,
                         .mtime_ns = (gint64)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec},
                .index = NONE,
                .interpreter = NONE,
        };
        ssize_t length = readlink(link, path, sizeof path - 1);
        Mount *mount = length > 0 ? mount_find_path(resolve->mounts, path) : NULL;
        gint64 fs;

        if (!mount) {
                skip(resolve, named, "its place among the mounts is not known");
                return NONE;
        }
        fs = fs_index(resolve, mount);
        if (fs < 0)
                return NONE;
        inside = mount_path_inside(mount, path);
        if (!inside) {
                skip(resolve, named, "its path inside the file system is not known");
                return NONE;
        }
        read_fd = resolve_reopen(fd);
        if (read_fd < 0) {
                skip(resolve, named, g_strerror(errno));
                return NONE;
        }
        target.file.generation = resolve_generation(read_fd);
        target.file.fs = (guint32)fs;
        target.file.path = g_steal_pointer(&inside);
        target.shown = g_strdup(named);
        g_array_append_val(resolve->targets, target);
        return resolve->targets->len - 1;
}

/* NONE when it cannot be taken, which is then said. */
static guint32
look_up(Resolve *resolve, const char *path, guint64 inode, gboolean written)
{
        auto_fd int fd = -1;
        g_autofree gchar *key = NULL;
        struct stat st;
        gpointer known;
        guint32 target;

        if (path[0] != '/') {
                skip(resolve, path, "not an absolute path");
                return NONE;
        }
        fd = resolve_open(resolve->root_fd, path);
        if (fd < 0 || fstat(fd, &st) < 0) {
                /* a temporary file of the program itself */
                if (written && errno == ENOENT)
                        leave_out(resolve, path, "written by what was traced, and gone since");
                else
                        skip(resolve, path, g_strerror(errno));
                return NONE;
        }
        if (!S_ISREG(st.st_mode)) {
                leave_out(resolve, path, resolve_type_name(st.st_mode));
                return NONE;
        }
        if (inode && inode != st.st_ino)
                resolve->result->replaced++;
        key = g_strdup_printf("%llx:%llx", (unsigned long long)st.st_dev,
                              (unsigned long long)st.st_ino);
        known = g_hash_table_lookup(resolve->by_inode, key);
        if (known)
                return GPOINTER_TO_UINT(known) - 2;
        target = add_target(resolve, path, fd, &st);
        g_hash_table_insert(resolve->by_inode, g_steal_pointer(&key), GUINT_TO_POINTER(target + 2));
        return target;
}

/* The interpreter of the executed target, looked up too; and that one's, a few times. */
static void
find_interpreters(Resolve *resolve, const char *path, guint32 target)
{
        g_autofree gchar *name = g_strdup(path);

        for (guint i = 0; i < INTERPRETERS_MAX; i++) {
                auto_fd int path_fd = resolve_open(resolve->root_fd, name);
                auto_fd int fd = path_fd >= 0 ? resolve_reopen(path_fd) : -1;
                gchar *interpreter = fd >= 0 ? resolve_interpreter(fd) : NULL;
                guint32 next;

                if (!interpreter)
                        return;
                next = look_up(resolve, interpreter, 0, FALSE);
                if (next == NONE || next == target) {
                        g_free(interpreter);
                        return;
                }
                g_array_index(resolve->targets, Target, target).interpreter = next;
                g_free(name);
                name = interpreter;
                target = next;
        }
}

static gboolean
interrupted(const Resolve *resolve, GError **error)
{
        if (!resolve->options->interrupted || !*resolve->options->interrupted)
                return FALSE;
        g_set_error_literal(error, COMMON_ERROR, COMMON_ERROR_INTERRUPTED,
                            "interrupted, nothing saved");
        return TRUE;
}

static gboolean
look_up_all(Resolve *resolve, GError **error)
{
        const ImportList *list = resolve->list;

        g_array_set_size(resolve->of_path, list->paths->len);
        memset(resolve->of_path->data, 0xff, list->paths->len * sizeof(guint32));
        for (guint i = 0; i < list->accesses->len; i++) {
                const ImportAccess *access = &g_array_index(list->accesses, ImportAccess, i);
                ImportPath *path = &g_array_index(list->paths, ImportPath, access->path);
                guint32 *target = &g_array_index(resolve->of_path, guint32, access->path);

                if (i % 1024 == 0 && interrupted(resolve, error))
                        return FALSE;
                /* a name is looked up once: NONE - 1 says that it was in vain */
                if (*target == NONE) {
                        *target = look_up(resolve, path->bytes, path->inode, path->written);
                        if (*target == NONE)
                                *target = NONE - 1;
                        else if (path->kinds & 1U << IMPORT_EXECUTED)
                                find_interpreters(resolve, path->bytes, *target);
                }
        }
        /* also names that were only written to */
        for (guint i = 0; i < list->paths->len; i++) {
                const ImportPath *path = &g_array_index(list->paths, ImportPath, i);
                guint32 target = g_array_index(resolve->of_path, guint32, i);

                if (path->written && target < NONE - 1)
                        g_array_index(resolve->targets, Target, target).written = TRUE;
        }
        return TRUE;
}

static guint32
use_target(Resolve *resolve, Target *target, const ImportAccess *access)
{
        if (target->index == NONE) {
                target->file.first_use_us = access->time_us;
                if (access->kind == IMPORT_OPENED || access->kind == IMPORT_EXECUTED)
                        target->file.opened_us = access->time_us;
                target->process = access->process;
                target->index = profile_add_file(resolve->profile, &target->file);
                target->pages = page_set_new();
        }
        return target->index;
}

typedef struct {
        Resolve *resolve;
        const ImportAccess *access;
        Target *target;
} Adding;

static void
add_range(guint64 first, guint64 end, gpointer data)
{
        static const ProfileCause causes[] = {
                [IMPORT_OPENED] = PROFILE_CAUSE_OPEN,      [IMPORT_EXECUTED] = PROFILE_CAUSE_OPEN,
                [IMPORT_MAPPED] = PROFILE_CAUSE_OPEN,      [IMPORT_READ] = PROFILE_CAUSE_READ,
                [IMPORT_RESIDENT] = PROFILE_CAUSE_READ_IN, [IMPORT_LISTED] = PROFILE_CAUSE_OPEN,
        };
        const Adding *adding = data;
        guint64 page = adding->resolve->profile->page_bytes;
        ProfileRange range = {
                .file = adding->target->index,
                .cause = (guint16)causes[adding->access->kind],
                .process = adding->access->process,
                .offset_bytes = first * page,
                .length_bytes = (end - first) * page,
                .first_use_us = adding->access->time_us,
        };

        g_array_append_val(adding->resolve->profile->ranges, range);
}

static void
add_use(Resolve *resolve, guint32 index, const ImportAccess *access)
{
        Target *target = &g_array_index(resolve->targets, Target, index);
        guint64 page = resolve->profile->page_bytes;
        guint64 pages = (target->file.size_bytes + page - 1) / page, first, end;
        Adding adding = {.resolve = resolve, .access = access, .target = target};
        ProfileFile *file;

        if (target->written)
                return;
        use_target(resolve, target, access);
        file = &g_array_index(resolve->profile->files, ProfileFile, target->index);
        if (access->kind == IMPORT_OPENED)
                return;
        if (access->kind == IMPORT_EXECUTED)
                file->flags |= PROFILE_FILE_EXECUTED;
        file->last_use_us = MAX(file->last_use_us, access->time_us);
        first = access->offset_bytes / page;
        end = access->length_bytes > G_MAXINT64 - MIN(access->offset_bytes, G_MAXINT64)
                      ? pages
                      : MIN((access->offset_bytes + access->length_bytes + page - 1) / page, pages);
        if (first < end)
                page_set_add(target->pages, first, end, add_range, &adding);
        if (access->kind == IMPORT_EXECUTED && target->interpreter != NONE) {
                ImportAccess next = *access;
                guint32 interpreter = target->interpreter;

                if (!target->whole) {
                        target->whole = TRUE; /* once; and no loop */
                        add_use(resolve, interpreter, &next);
                }
        }
}

static int
compare_access(const void *a, const void *b, void *data)
{
        const ImportAccess *x = &g_array_index((GArray *)data, ImportAccess, *(const guint32 *)a);
        const ImportAccess *y = &g_array_index((GArray *)data, ImportAccess, *(const guint32 *)b);

        if (x->time_us != y->time_us)
                return x->time_us < y->time_us ? -1 : 1;
        return *(const guint32 *)a < *(const guint32 *)b ? -1 : 1;
}

static int
compare_range(const void *a, const void *b)
{
        const ProfileRange *x = a, *y = b;

        if (x->first_use_us != y->first_use_us)
                return x->first_use_us < y->first_use_us ? -1 : 1;
        if (x->file != y->file)
                return x->file < y->file ? -1 : 1;
        return (x->offset_bytes > y->offset_bytes) - (x->offset_bytes < y->offset_bytes);
}

/* A log of opens alone says nothing of ranges: then files are taken whole. So is, where reads or
 * maps were not logged, a file without any. */
static void
add_unread(Resolve *resolve)
{
        if (resolve->list->saw_reads && resolve->list->saw_maps)
                return;
        for (guint i = 0; i < resolve->targets->len; i++) {
                Target *target = &g_array_index(resolve->targets, Target, i);
                ImportAccess access = {.kind = IMPORT_LISTED, .length_bytes = IMPORT_WHOLE};
                const ProfileFile *file;

                if (target->index == NONE)
                        continue;
                file = &g_array_index(resolve->profile->files, ProfileFile, target->index);
                access.time_us = file->first_use_us;
                access.process = target->process;
                if (file->last_use_us == 0)
                        add_use(resolve, i, &access);
        }
}

static void
add_accesses(Resolve *resolve)
{
        GArray *accesses = resolve->list->accesses;
        g_autofree guint32 *order = g_new(guint32, MAX(accesses->len, 1));
        GArray *ranges = resolve->profile->ranges;

        for (guint i = 0; i < accesses->len; i++)
                order[i] = i;
        qsort_r(order, accesses->len, sizeof *order, compare_access, accesses);
        for (guint i = 0; i < accesses->len; i++) {
                const ImportAccess *access = &g_array_index(accesses, ImportAccess, order[i]);
                guint32 target = g_array_index(resolve->of_path, guint32, access->path);

                if (target < NONE - 1)
                        add_use(resolve, target, access);
        }
        add_unread(resolve);
        if (ranges->len)
                qsort(ranges->data, ranges->len, sizeof(ProfileRange), compare_range);
        for (guint i = 0; i < resolve->targets->len; i++) {
                const Target *target = &g_array_index(resolve->targets, Target, i);

                if (target->written)
                        g_ptr_array_add(resolve->result->left_out,
                                        skipped_new(target->shown, "written by what was traced"));
        }
}

static void
add_processes(Resolve *resolve)
{
        const ImportList *list = resolve->list;

        for (guint i = 0; i < list->processes->len; i++) {
                const ImportProcess *from = &g_array_index(list->processes, ImportProcess, i);
                g_autofree gchar *base =
                        from->executable ? g_path_get_basename(from->executable) : g_strdup("");
                const ProfileProcess process = {
                        .pid = (gint32)from->pid,
                        .parent = from->parent,
                        .start_us = from->start_us,
                        .exit_us = from->exit_us,
                        .comm = from->comm ? from->comm : base,
                        .executable = from->executable ? from->executable : (gchar *)"",
                };

                profile_add_process(resolve->profile, &process);
        }
        for (guint i = 0; i < list->marks->len; i++) {
                const ImportMark *from = &g_array_index(list->marks, ImportMark, i);
                ProfileMark mark = {
                        .time_us = from->time_us, .process = from->process, .text = from->text};

                if (i > 0)
                        mark.time_us = MAX(
                                mark.time_us,
                                g_array_index(resolve->profile->marks, ProfileMark, i - 1).time_us);
                profile_add_mark(resolve->profile, &mark);
        }
}

static void
add_metadata(Resolve *resolve)
{
        GHashTableIter iter;
        gpointer mount_key, value;

        g_hash_table_iter_init(&iter, resolve->fs_of_mount);
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
                        g_array_index(resolve->profile->fs, ProfileFs, fs).block_bytes =
                                metadata_reader_block_bytes(reader);
                        metadata_compute(reader, resolve->profile, (guint32)fs, &error);
                }
                if (error)
                        g_ptr_array_add(
                                resolve->result->notes,
                                g_strdup_printf("metadata is left out: %s", error->message));
        }
}

static gboolean
run(Resolve *resolve, GError **error)
{
        Profile *profile = resolve->profile;

        resolve->mounts = mount_table_load(error);
        if (!resolve->mounts)
                return FALSE;
        if (resolve->options->root) {
                resolve->root_fd = open(resolve->options->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
                if (resolve->root_fd < 0) {
                        error_set_errno(error, COMMON_ERROR_USAGE, errno, "cannot open",
                                        resolve->options->root);
                        return FALSE;
                }
        }
        if (!look_up_all(resolve, error))
                return FALSE;
        add_processes(resolve);
        add_accesses(resolve);
        if (resolve->list->has_times)
                profile->elapsed_us = resolve->list->end_us;
        if (interrupted(resolve, error))
                return FALSE;
        add_metadata(resolve);
        return TRUE;
}

gboolean
resolve_profile(const ImportList *list, const ResolveOptions *options, Profile *profile,
                ResolveResult *result, GError **error)
{
        Resolve resolve = {
                .list = list,
                .options = options,
                .profile = profile,
                .result = result,
                .root_fd = -1,
        };
        gboolean done;

        resolve.fs_of_mount = g_hash_table_new(NULL, NULL);
        resolve.by_inode = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        resolve.targets = g_array_new(FALSE, FALSE, sizeof(Target));
        g_array_set_clear_func(resolve.targets, clear_target);
        resolve.of_path = g_array_new(FALSE, FALSE, sizeof(guint32));
        done = run(&resolve, error);
        g_hash_table_unref(resolve.fs_of_mount);
        g_hash_table_unref(resolve.by_inode);
        g_array_unref(resolve.targets);
        g_array_unref(resolve.of_path);
        g_clear_pointer(&resolve.mounts, g_ptr_array_unref);
        fd_close(&resolve.root_fd);
        return done;
}
