// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Loading a layout: mounts, devices, extent maps and the places of metadata, as they are now.
 *
 * Files are opened one at a time, after their type was looked at without opening them: what was a
 * regular file in the recording may be a FIFO now. A file system that is on no disk, or that is not
 * mounted, is named once, with the number of its files.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "common/error.h"
#include "common/fd.h"
#include "common/json.h"
#include "common/quote.h"
#include "measure/executable.h"
#include "measure/layout.h"
#include "measure/metadata.h"
#include "measure/mounts.h"

typedef struct {
        Mount *mount; /* NULL: not mounted */
        gchar *name;  /* for messages */
        Device *device;
        guint32 disk;
        gchar *reason; /* why its files are left out, or NULL */
        guint64 left_out;
} Place;

typedef struct {
        Profile *profile;
        const LayoutOptions *options;
        gchar *root;
        GPtrArray *mounts;
        GPtrArray *places; /* Place */
        Mount *cached;     /* LayoutOptions.cached */
        Place **fs_place;  /* of the first file of every file system of the profile */
        Layout *layout;
} Loader;

static void
place_free(gpointer data)
{
        Place *place = data;

        device_free(place->device);
        g_free(place->name);
        g_free(place->reason);
        g_free(place);
}

static void
loader_clear(Loader *loader)
{
        g_clear_pointer(&loader->places, g_ptr_array_unref);
        g_clear_pointer(&loader->mounts, g_ptr_array_unref);
        g_clear_pointer(&loader->layout, layout_free);
        g_free(loader->fs_place);
        g_free(loader->root);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Loader, loader_clear)

static gboolean
find_disk(Loader *loader, const Device *device, guint32 *ret, GError **error)
{
        Layout *layout = loader->layout;
        const char *name = loader->options->model;
        DiskModel *model;
        LayoutDisk *disk;

        for (*ret = 0; *ret < layout->disks->len; (*ret)++)
                if (((LayoutDisk *)layout->disks->pdata[*ret])->dev == device->disk)
                        return TRUE;
        model = disk_model_new(name != NULL         ? name
                               : device->rotational ? "hdd-2006"
                                                    : "ssd-sata",
                               error);
        if (model == NULL)
                return FALSE;
        model->capacity_bytes = MAX(model->capacity_bytes, device->disk_size_bytes);
        if (device->max_request_bytes > 0)
                model->max_request_bytes = device->max_request_bytes;
        layout_add_disk(layout, model, g_strcmp0(device->scheduler, "none") != 0,
                        device->readahead_bytes);
        disk = layout->disks->pdata[*ret];
        disk->dev = device->disk;
        disk->assumed = name == NULL;
        return TRUE;
}

/* The block device of a mount; btrfs has one, though its device number is none. */
static dev_t
mount_device(const Mount *mount)
{
        struct stat st;

        if (major(mount->dev) == 0 && mount->source != NULL && mount->source[0] == '/' &&
            stat(mount->source, &st) == 0 && S_ISBLK(st.st_mode))
                return st.st_rdev;
        return mount->dev;
}

static Place *
place_new(Loader *loader, Mount *mount, const char *name, GError **error)
{
        g_autoptr(GError) local = NULL;
        Place *place = g_new0(Place, 1);

        place->mount = mount;
        place->name = g_strdup(name);
        g_ptr_array_add(loader->places, place);
        if (mount != NULL && mount == loader->cached)
                return place;
        if (mount == NULL) {
                place->reason = g_strdup("the file system is not mounted");
                return place;
        }
        place->device = device_load(mount_device(mount), &local);
        if (place->device == NULL) {
                place->reason = g_error_matches(local, DEVICE_ERROR, DEVICE_ERROR_NOT_A_DISK)
                                        ? g_strdup_printf("%s is not on a disk", mount->type)
                                        : g_strdup(local->message);
                loader->layout->not_a_disk = TRUE;
                return place;
        }
        if (!place->device->position_known) {
                place->reason = g_strdup_printf("%s is striped, RAID or thin: places on its drives "
                                                "are not known",
                                                place->device->node);
                loader->layout->not_a_disk = TRUE;
                return place;
        }
        if (!find_disk(loader, place->device, &place->disk, error))
                return NULL;
        return place;
}

/* The file system of a file, looked up once. */
static Place *
find_place(Loader *loader, const ProfileFile *file, const char *outside, GError **error)
{
        const ProfileFs *fs = &g_array_index(loader->profile->fs, ProfileFs, file->fs);
        Mount *mount = outside != NULL ? mount_find_path(loader->mounts, outside)
                                       : mount_find_uuid(loader->mounts, fs->uuid);
        const char *name = mount != NULL ? mount->dir : fs->uuid[0] != '\0' ? fs->uuid : fs->type;

        for (guint i = 0; i < loader->places->len; i++) {
                Place *place = loader->places->pdata[i];

                if (place->mount == mount && (mount != NULL || strcmp(place->name, name) == 0))
                        return place;
        }
        return place_new(loader, mount, name, error);
}

/* Opens a regular file for its map; NULL and a descriptor, or the reason why not. */
static gchar *
open_regular(const char *path, int *ret_fd, struct stat *ret_st)
{
        auto_fd int look = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        char again[64];

        if (look < 0 && errno == ENOENT)
                return g_strdup("not there any more");
        if (look < 0 || fstat(look, ret_st) < 0)
                return g_strdup_printf("cannot be looked at: %s", g_strerror(errno));
        if (!S_ISREG(ret_st->st_mode))
                return g_strdup("not a regular file");
        g_snprintf(again, sizeof(again), "/proc/self/fd/%d", look);
        *ret_fd = open(again, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOATIME | O_CLOEXEC);
        if (*ret_fd < 0 && errno == EPERM) /* O_NOATIME is for owners */
                *ret_fd = open(again, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (*ret_fd < 0)
                return g_strdup_printf("cannot be opened: %s", g_strerror(errno));
        return NULL;
}

static gboolean
has_unallocated(const ExtentMap *map)
{
        for (guint i = 0; i < map->extents->len; i++)
                if (g_array_index(map->extents, Extent, i).flags &
                    (FIEMAP_EXTENT_DELALLOC | FIEMAP_EXTENT_UNKNOWN))
                        return TRUE;
        return FALSE;
}

static void
load_file(Loader *loader, const char *path, gboolean faults, LayoutFile *file)
{
        GPtrArray *skipped = loader->layout->skipped;
        g_autoptr(GError) error = NULL;
        g_autofree gchar *reason = NULL;
        auto_fd int fd = -1;
        struct stat st;

        reason = open_regular(path, &fd, &st);
        if (reason != NULL) {
                g_ptr_array_add(skipped, skipped_new(path, "%s", reason));
                return;
        }
        file->map = extent_map_load(fd, &error);
        if (file->map == NULL) {
                g_ptr_array_add(skipped, skipped_new(path, "%s", error->message));
                return;
        }
        if (has_unallocated(file->map))
                g_ptr_array_add(skipped,
                                skipped_new(path, "part of it has no place on the disk yet "
                                                  "(unknown until synced): that part is left out"));
        loader->layout->logical_addresses |= file->map->logical_addresses;
        loader->layout->measured++;
        file->size_bytes = (guint64)st.st_size;
        if (faults)
                file->executable = executable_spans(fd, loader->layout->page_bytes);
}

static gchar *
outside_path(const Loader *loader, const ProfileFile *file, guint32 number)
{
        const ProfileFs *fs = &g_array_index(loader->profile->fs, ProfileFs, file->fs);
        Mount *mount;

        if (loader->options->outside != NULL)
                return g_strdup(loader->options->outside[number]);
        if (loader->root != NULL)
                return g_strconcat(strcmp(loader->root, "/") == 0 ? "" : loader->root, file->path,
                                   NULL);
        mount = mount_find_uuid(loader->mounts, fs->uuid);
        return mount != NULL ? mount_path_outside(mount, file->path) : NULL;
}

static gboolean
load_files(Loader *loader, GError **error)
{
        const Profile *profile = loader->profile;
        g_autofree gboolean *faults = g_new0(gboolean, profile->files->len + 1);
        gboolean by_path = loader->options->outside != NULL || loader->root != NULL;

        for (guint i = 0; i < profile->ranges->len; i++) {
                const ProfileRange *range = &g_array_index(profile->ranges, ProfileRange, i);

                faults[range->file] |=
                        range->cause == PROFILE_CAUSE_FAULT || range->cause == PROFILE_CAUSE_MAP;
        }
        for (guint32 i = 0; i < profile->files->len; i++) {
                const ProfileFile *file = &g_array_index(profile->files, ProfileFile, i);
                LayoutFile out = {.disk = LAYOUT_NO_DISK, .size_bytes = file->size_bytes};
                g_autofree gchar *path = outside_path(loader, file, i);
                Place *place = find_place(loader, file, by_path ? path : NULL, error);

                if (place == NULL)
                        return FALSE;
                if (place->mount != NULL && place->mount == loader->cached)
                        loader->layout->cached++;
                else if (place->reason != NULL) {
                        place->left_out++;
                } else if (path == NULL) {
                        g_ptr_array_add(loader->layout->skipped,
                                        skipped_new(file->path, "outside of what is mounted of its "
                                                                "file system"));
                } else {
                        load_file(loader, path, faults[i], &out);
                }
                if (out.map != NULL) {
                        out.disk = place->disk;
                        out.offset_bytes = place->device->offset_bytes;
                        if (loader->fs_place[file->fs] == NULL)
                                loader->fs_place[file->fs] = place;
                }
                g_array_append_val(loader->layout->files, out);
        }
        return TRUE;
}

static gint
compare_first_use(gconstpointer a, gconstpointer b)
{
        const LayoutMeta *left = a, *right = b;

        return left->first_use_us < right->first_use_us ? -1
                                                        : left->first_use_us > right->first_use_us;
}

static void
note_meta(Layout *layout, const char *text)
{
        layout->meta_known = FALSE;
        if (layout->meta_note == NULL)
                layout->meta_note = g_strdup(text);
}

static void
load_meta(Loader *loader, guint32 fs)
{
        Profile *profile = loader->profile;
        const Place *place = loader->fs_place[fs];
        g_autoptr(MetadataReader) reader = NULL;
        g_autoptr(GError) error = NULL;

        if (place == NULL)
                return;
        if (!g_str_has_prefix(place->mount->type, "ext")) {
                g_autofree gchar *text = g_strdup_printf("metadata is known on ext2, ext3 and ext4 "
                                                         "only, not on %s",
                                                         place->mount->type);
                note_meta(loader->layout, text);
                return;
        }
        reader = metadata_reader_open(place->device->node, &error);
        if (reader == NULL || !metadata_compute(reader, profile, fs, &error)) {
                note_meta(loader->layout, error->message);
                if (reader == NULL)
                        return;
        }
        for (guint i = 0; i < profile->meta->len; i++) {
                const ProfileMeta *object = &g_array_index(profile->meta, ProfileMeta, i);
                LayoutMeta meta = {
                        .disk = place->disk,
                        .length_bytes = metadata_reader_block_bytes(reader),
                        .offset_bytes = place->device->offset_bytes,
                        .first_use_us = object->first_use_us,
                        .kind = object->kind,
                };

                if (object->fs == fs && metadata_resolve(reader, object, &meta.position_bytes))
                        g_array_append_val(loader->layout->meta, meta);
        }
}

Layout *
layout_load(Profile *profile, const LayoutOptions *options, GError **error)
{
        static const LayoutOptions defaults = {0};
        g_auto(Loader)
                loader = {.profile = profile, .options = options != NULL ? options : &defaults};

        loader.layout = layout_new(profile->page_bytes > 0 ? profile->page_bytes : 4096);
        loader.places = g_ptr_array_new_with_free_func(place_free);
        loader.fs_place = g_new0(Place *, profile->fs->len + 1);
        loader.mounts = mount_table_load(error);
        if (loader.mounts == NULL)
                return NULL;
        if (loader.options->cached != NULL) {
                char *resolved = realpath(loader.options->cached, NULL);

                loader.cached = resolved != NULL ? mount_find_path(loader.mounts, resolved) : NULL;
                if (resolved == NULL)
                        error_set_errno(error, COMMON_ERROR_USAGE, errno, "finding",
                                        loader.options->cached);
                free(resolved);
                if (loader.cached == NULL) {
                        if (error != NULL && *error == NULL)
                                g_set_error(error, COMMON_ERROR, COMMON_ERROR_USAGE,
                                            "%s is on no known mount", loader.options->cached);
                        return NULL;
                }
        }
        if (loader.options->root != NULL) {
                char *resolved = realpath(loader.options->root, NULL);

                if (resolved == NULL) {
                        error_set_errno(error, COMMON_ERROR_USAGE, errno, "finding the root",
                                        loader.options->root);
                        return NULL;
                }
                loader.root = g_strdup(resolved);
                free(resolved);
        }
        if (!load_files(&loader, error))
                return NULL;
        for (guint32 i = 0; i < profile->fs->len; i++)
                load_meta(&loader, i);
        g_array_sort(loader.layout->meta, compare_first_use);
        for (guint i = 0; i < loader.places->len; i++) {
                const Place *place = loader.places->pdata[i];

                if (place->left_out > 0)
                        g_ptr_array_add(loader.layout->skipped,
                                        skipped_new(place->name,
                                                    "%s (%" G_GUINT64_FORMAT " file%s)",
                                                    place->reason, place->left_out,
                                                    place->left_out == 1 ? "" : "s"));
        }
        return g_steal_pointer(&loader.layout);
}
