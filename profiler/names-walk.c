// SPDX-License-Identifier: GPL-2.0-or-later
/* The walk for names: see names-walk.h. */
#include "profiler/names-walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/fd.h"
#include "profiler/quiet.h"

#define BUFFER_BYTES 65536

struct linux_dirent64 {
        guint64 d_ino;
        gint64 d_off;
        guint16 d_reclen;
        guint8 d_type;
        gchar d_name[];
};

typedef struct {
        const Mount *mount;
        int root;
        GHashTable *inodes;
        GQueue *folders; /* gchar *, below the mount point: "" or "usr/lib" */
        gint64 give_up_us;
        NameWalk *result;
} Walk;

gboolean
name_walk_works(const Mount *mount)
{
        static const char *const FAR[] = {"nfs",      "nfs4", "cifs", "smb3",    "9p",
                                          "virtiofs", "fuse", "ceph", "overlay", NULL};

        return mount_holds_files(mount) && !g_strv_contains(FAR, mount->type) &&
               !g_str_has_prefix(mount->type, "fuse.");
}

static int
open_folder(const Walk *walk, const char *folder)
{
        struct open_how how = {
                .flags = O_RDONLY | O_DIRECTORY | O_NOATIME | O_NOFOLLOW | O_CLOEXEC,
                .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
        };
        int fd = (int)syscall(SYS_openat2, walk->root, *folder ? folder : ".", &how, sizeof how);

        if (fd < 0 && errno == EPERM) {
                how.flags &= ~(guint64)O_NOATIME;
                fd = (int)syscall(SYS_openat2, walk->root, *folder ? folder : ".", &how,
                                  sizeof how);
        }
        return fd;
}

static void
take_entry(Walk *walk, int fd, const char *folder, const struct linux_dirent64 *entry)
{
        guint8 type = entry->d_type;
        g_autofree gchar *path = NULL;
        struct stat st;

        if (g_str_equal(entry->d_name, ".") || g_str_equal(entry->d_name, ".."))
                return;
        walk->result->entries++;
        if (type != DT_DIR && type != DT_UNKNOWN &&
            !g_hash_table_contains(walk->inodes, &entry->d_ino))
                return;
        if (type == DT_UNKNOWN && fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
                type = IFTODT(st.st_mode);
        path = *folder ? g_strconcat(folder, "/", entry->d_name, NULL) : g_strdup(entry->d_name);
        if (type == DT_DIR) {
                g_queue_push_tail(walk->folders, g_steal_pointer(&path));
        } else if (type == DT_REG && g_hash_table_remove(walk->inodes, &entry->d_ino)) {
                guint64 *inode = g_new(guint64, 1);

                *inode = entry->d_ino;
                g_hash_table_replace(
                        walk->result->paths, inode,
                        g_strconcat(strcmp(walk->mount->dir, "/") ? walk->mount->dir : "", "/",
                                    path, NULL));
        }
}

static void
list_folder(Walk *walk, const char *folder, guint8 *buffer)
{
        auto_fd int fd = open_folder(walk, folder);
        long n;

        while (fd >= 0 && (n = syscall(SYS_getdents64, fd, buffer, BUFFER_BYTES)) > 0) {
                for (long at = 0; at < n;) {
                        const struct linux_dirent64 *entry = (const void *)(buffer + at);

                        take_entry(walk, fd, folder, entry);
                        at += entry->d_reclen;
                }
                if (g_get_monotonic_time() > walk->give_up_us)
                        return;
        }
}

void
name_walk(const Mount *mount, GHashTable *inodes, guint limit_ms, NameWalk *ret)
{
        g_autofree guint8 *buffer = g_malloc(BUFFER_BYTES);
        long old_priority = syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0);
        auto_fd int root = open(mount->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        Walk walk = {.mount = mount,
                     .root = root,
                     .inodes = inodes,
                     .result = ret,
                     .give_up_us = g_get_monotonic_time() + (gint64)limit_ms * 1000};

        *ret = (NameWalk){
                .paths = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free)};
        if (root < 0)
                return;
        /* Of this thread alone; others' reads go first. */
        syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0));
        walk.folders = g_queue_new();
        g_queue_push_tail(walk.folders, g_strdup(""));
        while (g_hash_table_size(inodes) && !g_queue_is_empty(walk.folders) &&
               g_get_monotonic_time() <= walk.give_up_us) {
                g_autofree gchar *folder = g_queue_pop_head(walk.folders);

                list_folder(&walk, folder, buffer);
        }
        ret->finished = g_hash_table_size(inodes) == 0 || g_queue_is_empty(walk.folders);
        g_queue_free_full(walk.folders, g_free);
        if (old_priority >= 0)
                syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, old_priority);
}

void
name_walk_clear(NameWalk *walk)
{
        g_clear_pointer(&walk->paths, g_hash_table_unref);
}
