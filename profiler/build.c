// SPDX-License-Identifier: GPL-2.0-or-later
/* Names and settled pages of what was collected: see build.h. */
#include "profiler/build.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/json.h"
#include "profiler/build-resident.h"
#include "profiler/names-walk.h"
#include "profiler/names.h"
#include "profiler/quiet.h"
#include "profiler/residency.h"

#define BTRFS_TREE_INODE 1
#define WALK_LIMIT_MS 20000 /* of all file systems together */

/* A file system that files were found on. */
typedef struct {
        dev_t dev;
        Mount *mount;      /* NULL = not mounted here */
        int fd;            /* of the mount point, -1 = not open */
        guint32 fs;        /* index in the profile, G_MAXUINT32 = not added yet */
        gboolean own_tree; /* rules count from the top of this file system */
        NameWalk walk;     /* paths NULL = not walked */
} Place;

typedef struct {
        const BuildInput *input;
        Profile *profile;
        BuildResult *result;
        GArray *places;
        GArray *found; /* Found */
        Residency *residency;
        GArray *missed; /* guint32, collected files without a name; NULL = no more tries */
} Build;

typedef struct {
        ProfileFile file; /* owns path */
        guint32 collected;
} Found;

void
build_result_init(BuildResult *result)
{
        *result = (BuildResult){0};
        result->left_out = g_ptr_array_new_with_free_func(skipped_free);
        result->left_out_inside = g_ptr_array_new_with_free_func(g_free);
        result->fs_devs = g_array_new(FALSE, FALSE, sizeof(dev_t));
        result->notes = g_ptr_array_new_with_free_func(g_free);
}

void
build_result_clear(BuildResult *result)
{
        g_clear_pointer(&result->left_out, g_ptr_array_unref);
        g_clear_pointer(&result->left_out_inside, g_ptr_array_unref);
        g_clear_pointer(&result->fs_devs, g_array_unref);
        g_clear_pointer(&result->notes, g_ptr_array_unref);
}

/* The path as it reads in the tree at `top`; NULL when it lies outside of that tree. */
static gchar *
path_in_tree(const char *top, const char *outside)
{
        gsize length = top ? strlen(top) : 0;

        while (length > 0 && top[length - 1] == '/')
                length--;
        if (length && (strncmp(outside, top, length) != 0 ||
                       (outside[length] != '/' && outside[length] != '\0')))
                return NULL;
        return g_strdup(outside[length] ? outside + length : "/");
}

/* A file system that holds a whole system (an image mounted somewhere, entered with chroot) is a
 * tree of its own, and so is one mounted inside a folder that is left out: below /tmp, say. */
static gboolean
is_own_tree(const BuildInput *input, const Place *place)
{
        g_autofree gchar *dir = path_in_tree(input->root, place->mount->dir);

        if (!input->rules || place->fd < 0)
                return FALSE;
        return !dir || rules_left_out_by(input->rules, dir) ||
               (faccessat(place->fd, "etc", F_OK, 0) == 0 &&
                faccessat(place->fd, "usr", F_OK, 0) == 0);
}

/* FALSE for what lies on a file system of the tree that is recorded, but outside of the tree. */
static gboolean
is_in_tree(const Build *build, const Place *place, const NamedFile *named)
{
        g_autofree gchar *outside = mount_path_outside(place->mount, named->path);
        g_autofree gchar *in_tree = NULL;

        if (!build->input->root)
                return TRUE;
        in_tree = outside ? path_in_tree(build->input->root, outside) : NULL;
        return in_tree != NULL;
}

static Place *
find_place(Build *build, dev_t dev)
{
        Place place = {.dev = dev, .fd = -1, .fs = G_MAXUINT32};

        for (guint i = 0; i < build->places->len; i++) {
                Place *known = &g_array_index(build->places, Place, i);

                if (known->dev == dev)
                        return known;
        }
        place.mount = mount_find_dev(build->input->mounts, dev);
        if (place.mount && mount_holds_files(place.mount))
                place.fd = open(place.mount->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (place.mount)
                place.own_tree = is_own_tree(build->input, &place);
        g_array_append_val(build->places, place);
        return &g_array_index(build->places, Place, build->places->len - 1);
}

static void
clear_places(Build *build)
{
        for (guint i = 0; i < build->places->len; i++) {
                fd_close(&g_array_index(build->places, Place, i).fd);
                name_walk_clear(&g_array_index(build->places, Place, i).walk);
        }
        g_array_unref(build->places);
}

static guint32
place_fs(Build *build, Place *place)
{
        struct stat st;
        guint32 block_bytes = 0;

        if (place->fs == G_MAXUINT32) {
                if (place->fd >= 0 && fstat(place->fd, &st) == 0)
                        block_bytes = (guint32)st.st_blksize;
                place->fs = profile_add_fs(build->profile, mount_uuid(place->mount),
                                           place->mount->type, block_bytes);
                g_array_append_val(build->result->fs_devs, place->dev);
        }
        return place->fs;
}

static NameStatus
name_file(Build *build, const Place *place, guint64 inode, NamedFile *ret)
{
        g_autofree gchar *opened = NULL;
        const gchar *walked = NULL;
        NameStatus status = NAME_UNKNOWN;

        if (place->fd >= 0 && name_by_handle_works(place->mount->type))
                status = name_by_handle(place->mount, place->fd, inode, ret);
        if (status == NAME_UNKNOWN && build->input->opens &&
            (opened = opens_find_path(build->input->opens, place->dev, inode)))
                status = name_by_path(place->mount, opened, inode, ret);
        if (status == NAME_UNKNOWN && place->walk.paths)
                walked = g_hash_table_lookup(place->walk.paths, &inode);
        return walked ? name_by_path(place->mount, walked, inode, ret) : status;
}

/* Of what the start leaves behind. A file that is open for writing but was not written stays in:
 * that is how programs open their databases, which every start reads. */
static gboolean
is_left_out(Build *build, const Place *place, const NamedFile *named)
{
        const BuildInput *input = build->input;
        g_autofree gchar *outside = mount_path_outside(place->mount, named->path);
        g_autofree gchar *in_tree = NULL;
        const char *rule = NULL;

        /* one of several names is no reason: the program may have opened it by another */
        if (input->rules && named->links <= 1) {
                if (outside)
                        in_tree = path_in_tree(place->own_tree ? place->mount->dir : input->root,
                                               outside);
                rule = rules_left_out_by(input->rules, in_tree ? in_tree : named->path);
        }
        if (!rule && named->mtime_ns < input->written_since_ns &&
            named->born_ns < input->written_since_ns)
                return FALSE;
        g_ptr_array_add(build->result->left_out,
                        rule ? skipped_new(outside ? outside : named->path, "by the rule %s", rule)
                             : skipped_new(outside ? outside : named->path,
                                           "written during the recording"));
        g_ptr_array_add(build->result->left_out_inside,
                        g_strconcat(mount_uuid(place->mount), ":", named->path, NULL));
        return TRUE;
}

static void
take_named(Build *build, Place *place, guint32 collected, guint64 inode, NamedFile *named,
           guint64 first_use_us)
{
        Found found = {
                .file = {.fs = place_fs(build, place),
                         .generation = named->generation,
                         .inode = inode,
                         .size_bytes = named->size_bytes,
                         .mtime_ns = named->mtime_ns,
                         .first_use_us = first_use_us,
                         .path = g_steal_pointer(&named->path)},
                .collected = collected,
        };

        g_array_append_val(build->found, found);
}

static void
take_collected(Build *build, guint32 index)
{
        CollectedFile file = collector_file(build->input->collector, index);
        Place *place = find_place(build, file.dev);
        NamedFile named = {.fd = -1};
        CollectorAsk ask = {.data = build->residency};
        CollectedUse use;

        /* Pages of memory file systems, of pipes and of the kernel's own: nothing a disk has to
         * read. */
        if (!place->mount || !mount_holds_files(place->mount)) {
                /* Mounted in another namespace only; seldom of the tree that is recorded. */
                if (major(file.dev) != 0 && !build->input->root)
                        build->profile->unnamed_files++;
                return;
        }
        /* btrfs keeps its trees in the pages of this inode, which is no file. */
        if (file.inode == BTRFS_TREE_INODE && strcmp(place->mount->type, "btrfs") == 0)
                return;
        switch (name_file(build, place, file.inode, &named)) {
        case NAME_FOUND: break;
        case NAME_UNKNOWN:
                if (build->missed)
                        g_array_append_val(build->missed, index);
                else
                        build->profile->unnamed_files++;
                return;
        default: return;
        }
        if (!is_in_tree(build, place, &named) || is_left_out(build, place, &named)) {
                named_file_clear(&named);
                return;
        }

        if (residency_open(build->residency, named.fd, named.size_bytes)) {
                ask.resident = residency_pages;
                ask.folio = residency_folio;
        }
        use = collector_settle(build->input->collector, index, named.size_bytes, &ask);
        residency_close(build->residency);
        if (use.used_pages) {
                build->result->cached_before_bytes +=
                        use.cached_before_pages * build->profile->page_bytes;
                take_named(build, place, index, file.inode, &named, use.first_use_us);
        }
        named_file_clear(&named);
}

/* Walks the file systems with misses, and tries those files again. */
static void
take_missed(Build *build)
{
        g_autoptr(GArray) missed = g_steal_pointer(&build->missed);
        gint64 give_up_us = g_get_monotonic_time() + WALK_LIMIT_MS * 1000;

        for (guint i = 0; i < build->places->len; i++) {
                Place *place = &g_array_index(build->places, Place, i);
                g_autoptr(GHashTable) inodes =
                        g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
                gint64 left_us = give_up_us - g_get_monotonic_time();

                for (guint k = 0; k < missed->len; k++) {
                        CollectedFile file = collector_file(build->input->collector,
                                                            g_array_index(missed, guint32, k));
                        guint64 *inode;

                        if (file.dev != place->dev)
                                continue;
                        inode = g_new(guint64, 1);
                        *inode = file.inode;
                        g_hash_table_add(inodes, inode);
                }
                if (!place->mount || g_hash_table_size(inodes) == 0 || left_us <= 0 ||
                    !name_walk_works(place->mount))
                        continue;
                name_walk(place->mount, inodes, (guint)(left_us / 1000), &place->walk);
                if (!place->walk.finished)
                        g_ptr_array_add(build->result->notes,
                                        g_strdup_printf("looking for names on %s was given up "
                                                        "after %d s",
                                                        place->mount->type, WALK_LIMIT_MS / 1000));
        }
        for (guint i = 0; i < missed->len; i++)
                take_collected(build, g_array_index(missed, guint32, i));
}

static int
compare_found(const void *a, const void *b)
{
        const Found *x = a, *y = b;

        if (x->file.first_use_us != y->file.first_use_us)
                return x->file.first_use_us < y->file.first_use_us ? -1 : 1;
        return x->collected < y->collected ? -1 : x->collected > y->collected;
}

/* Files opened of which no page came in: without events of used pages, what of them is cached was
 * used. Told to the collector as additions at the time of the open. */
static void
add_resident(Build *build, const OpenedFile *opened)
{
        Place *place = find_place(build, opened->dev);
        NamedFile named = {.fd = -1};
        AccessEvent event = {.kind = ACCESS_ADD,
                             .dev = opened->dev,
                             .inode = opened->inode,
                             .time_ns = opened->first_ns};
        guint64 n_pages;

        if (!place->mount ||
            name_by_path(place->mount, opened->path, opened->inode, &named) != NAME_FOUND)
                return;
        n_pages = (named.size_bytes + build->profile->page_bytes - 1) / build->profile->page_bytes;
        if (!residency_open(build->residency, named.fd, named.size_bytes))
                n_pages = 0;
        for (guint64 first = 0; first < n_pages; first += 256) {
                guint8 vec[256];

                residency_pages(first, G_N_ELEMENTS(vec), vec, build->residency);
                for (guint i = 0; i < G_N_ELEMENTS(vec); i++) {
                        if (!vec[i])
                                continue;
                        event.first = event.last = first + i;
                        collector_add(build->input->collector, &event);
                }
        }
        residency_close(build->residency);
        named_file_clear(&named);
}

static void
add_opened(Build *build, guint32 index, const OpenedFile *opened)
{
        Place *place = find_place(build, opened->dev);
        NamedFile named = {.fd = -1};
        guint64 first_us = opened->first_ns > build->input->start_ns
                                   ? (opened->first_ns - build->input->start_ns) / 1000
                                   : 0;
        NameStatus status;

        if (!place->mount)
                return;
        status = name_by_path(place->mount, opened->path, opened->inode, &named);
        if (status == NAME_UNKNOWN)
                build->profile->unnamed_files++;
        if (status != NAME_FOUND)
                return;
        if (is_in_tree(build, place, &named) && !is_left_out(build, place, &named))
                take_named(build, place, index, opened->inode, &named, first_us);
        named_file_clear(&named);
}

static void
add_resident_ranges(Build *build, guint32 file, const OpenedFile *opened)
{
        Place *place = find_place(build, opened->dev);
        NamedFile named = {.fd = -1};

        if (name_by_path(place->mount, opened->path, opened->inode, &named) != NAME_FOUND)
                return;
        build->result->cached_before_bytes +=
                build_resident_ranges(build->profile, file, opened, named.fd, build->residency) *
                build->profile->page_bytes;
        named_file_clear(&named);
}

static void
whole_file_ranges(Profile *profile)
{
        guint64 page = profile->page_bytes;

        for (guint i = 0; i < profile->files->len; i++) {
                const ProfileFile *file = &g_array_index(profile->files, ProfileFile, i);
                ProfileRange range = {.file = i,
                                      .cause = PROFILE_CAUSE_OPEN,
                                      .length_bytes = (file->size_bytes + page - 1) / page * page,
                                      .first_use_us = file->first_use_us};

                if (range.length_bytes)
                        g_array_append_val(profile->ranges, range);
        }
}

void
build_files(const BuildInput *input, Profile *profile, BuildResult *result)
{
        Build build = {.input = input, .profile = profile, .result = result};
        const GPtrArray *opened = input->opens ? opens_files(input->opens) : NULL;
        g_autofree guint32 *profile_file = NULL;
        guint n = 0;

        build.places = g_array_new(FALSE, FALSE, sizeof(Place));
        build.residency = residency_new();
        build.found = g_array_new(FALSE, FALSE, sizeof(Found));
        if (profile->source == PROFILE_SOURCE_READ_IN)
                for (guint i = 0; opened && i < opened->len; i++)
                        add_resident(&build, opened->pdata[i]);
        if (profile->source == PROFILE_SOURCE_OPENS) {
                for (guint i = 0; opened && i < opened->len; i++)
                        add_opened(&build, i, opened->pdata[i]);
        } else {
                n = collector_n_files(input->collector);
                build.missed = g_array_new(FALSE, FALSE, sizeof(guint32));
                for (guint i = 0; i < n; i++)
                        take_collected(&build, i);
                take_missed(&build);
        }

        if (build.found->len)
                qsort(build.found->data, build.found->len, sizeof(Found), compare_found);
        profile_file = g_new(guint32, MAX(n, 1));
        memset(profile_file, 0xff, MAX(n, 1) * sizeof *profile_file);
        for (guint i = 0; i < build.found->len; i++) {
                Found *found = &g_array_index(build.found, Found, i);

                if (n)
                        profile_file[found->collected] = profile->files->len;
                profile_add_file(profile, &found->file);
                if (profile->source == PROFILE_SOURCE_OPENS && input->by_residency)
                        add_resident_ranges(&build, profile->files->len - 1,
                                            opened->pdata[found->collected]);
                g_free(found->file.path);
        }
        if (profile->source == PROFILE_SOURCE_OPENS && input->by_residency)
                ;
        else if (profile->source == PROFILE_SOURCE_OPENS)
                whole_file_ranges(profile);
        else
                collector_ranges(input->collector, profile_file, profile);
        if (n)
                collector_causes(input->collector, profile_file, profile);
        g_array_unref(build.found);
        residency_free(build.residency);
        clear_places(&build);
}
