// SPDX-License-Identifier: GPL-2.0-or-later
/* The kernel's own readahead, turned down for a while: see quiet.h. */
#include "profiler/quiet.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/error.h"
#include "common/fd.h"
#include "common/settings.h"

#define LOCK_FOLDER "/run/headstart"

gboolean
mount_holds_files(const Mount *mount)
{
        /* File systems without a block device of their own that keep files elsewhere than in
         * memory. */
        static const char *const NODEV[] = {"btrfs", "bcachefs", "overlay",  "nfs",  "nfs4", "cifs",
                                            "smb3",  "9p",       "virtiofs", "fuse", "ceph", "zfs",
                                            "ubifs", "jffs2",    "f2fs",     NULL};

        if (mount->hidden)
                return FALSE;
        return major(mount->dev) != 0 || g_strv_contains(NODEV, mount->type) ||
               g_str_has_prefix(mount->type, "fuse.");
}

/* The folder of the device in sysfs, resolved: a partition's lies inside its disk's. */
static gchar *
sysfs_device(dev_t dev)
{
        g_autofree gchar *link = g_strdup_printf("/sys/dev/block/%u:%u", major(dev), minor(dev));
        char *resolved = realpath(link, NULL);
        gchar *copy = g_strdup(resolved);

        free(resolved);
        return copy;
}

static gchar *
readahead_file(dev_t dev)
{
        g_autofree gchar *device = sysfs_device(dev);
        static const char *const TRIES[] = {"queue/read_ahead_kb", "../queue/read_ahead_kb"};

        for (guint i = 0; device && i < G_N_ELEMENTS(TRIES); i++) {
                g_autofree gchar *file = g_build_filename(device, TRIES[i], NULL);
                char *resolved;
                gchar *copy;

                if (access(file, F_OK) != 0)
                        continue;
                /* One name for one setting, whichever partition led there. */
                resolved = realpath(file, NULL);
                copy = g_strdup(resolved);
                free(resolved);
                return copy;
        }
        return NULL;
}

static gchar *
inode_readahead_file(dev_t dev)
{
        g_autofree gchar *device = sysfs_device(dev);
        g_autofree gchar *name = device ? g_path_get_basename(device) : NULL;

        return name ? g_strdup_printf("/sys/fs/ext4/%s/inode_readahead_blks", name) : NULL;
}

guint
quiet_inode_readahead_blocks(dev_t dev)
{
        g_autofree gchar *file = inode_readahead_file(dev), *text = NULL;

        if (!file || !g_file_get_contents(file, &text, NULL, NULL))
                return 0;
        return (guint)g_ascii_strtoull(text, NULL, 10);
}

static gboolean
change(const char *file, const char *value, GError **error)
{
        GError *local = NULL;

        if (settings_change(file, value, &local))
                return TRUE;
        g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                    "cannot turn the kernel's readahead down: %s", local->message);
        g_error_free(local);
        return FALSE;
}

static int lock_fd = -1;

gboolean
quiet_lock(guint wait_s, GError **error)
{
        gint64 give_up = g_get_monotonic_time() + (gint64)wait_s * G_USEC_PER_SEC;

        if (lock_fd >= 0)
                return TRUE;
        g_mkdir_with_parents(LOCK_FOLDER, 0755);
        lock_fd = open(LOCK_FOLDER "/readahead.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
                       0600);
        if (lock_fd < 0) {
                error_set_errno(error, COMMON_ERROR_FAILED, errno, "cannot open",
                                LOCK_FOLDER "/readahead.lock");
                return FALSE;
        }
        while (flock(lock_fd, LOCK_EX | LOCK_NB) != 0) {
                if (g_get_monotonic_time() > give_up) {
                        quiet_unlock();
                        g_set_error(error, COMMON_ERROR, COMMON_ERROR_FAILED,
                                    "another recording has the readahead turned down; try again "
                                    "when it has ended");
                        return FALSE;
                }
                g_usleep(100000);
        }
        /* The other one may have been killed. */
        settings_repair();
        return TRUE;
}

void
quiet_unlock(void)
{
        fd_close(&lock_fd);
}

/* btrfs has a readahead of its own beside its disks'. */
static gboolean
quiet_btrfs(const char *value, GError **error)
{
        g_autoptr(GDir) dir = g_dir_open("/sys/class/bdi", 0, NULL);
        const char *name;

        while (dir && (name = g_dir_read_name(dir))) {
                g_autofree gchar *file = g_strdup_printf("/sys/class/bdi/%s/read_ahead_kb", name);

                if (g_str_has_prefix(name, "btrfs-") && !change(file, value, error))
                        return FALSE;
        }
        return TRUE;
}

gboolean
quiet_readahead(const GPtrArray *mounts, guint readahead_kb, gboolean inode_tables, GError **error)
{
        g_autofree gchar *value = g_strdup_printf("%u", readahead_kb);
        gboolean btrfs = FALSE;

        for (guint i = 0; i < mounts->len; i++) {
                const Mount *mount = mounts->pdata[i];
                g_autofree gchar *readahead = NULL, *inodes = NULL;

                if (!strcmp(mount->type, "btrfs"))
                        btrfs = TRUE;
                if (major(mount->dev) == 0)
                        continue;
                readahead = readahead_file(mount->dev);
                if (readahead && !change(readahead, value, error))
                        return FALSE;
                inodes = inode_tables ? inode_readahead_file(mount->dev) : NULL;
                if (inodes && access(inodes, F_OK) == 0 && !change(inodes, "0", error))
                        return FALSE;
        }
        return !btrfs || quiet_btrfs(value, error);
}

gboolean
quiet_fault_around(void)
{
        g_autofree gchar *value = g_strdup_printf("%ld", sysconf(_SC_PAGESIZE));

        return settings_change("/sys/kernel/debug/fault_around_bytes", value, NULL);
}

/* Only what the kernel finds without reading: a look-up that has to read would put the metadata
 * into the cache whose reads the recording is to see, and a file whose inode is not cached has no
 * pages there. */
static int
open_cached(const char *path)
{
        struct open_how how = {
                .flags = O_RDONLY | O_NOATIME | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC,
                .resolve = RESOLVE_CACHED | RESOLVE_NO_MAGICLINKS,
        };

        return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
}

void
quiet_evict(GPtrArray *mounts, const Profile *profile)
{
        for (guint i = 0; i < profile->files->len; i++) {
                const ProfileFile *file = &g_array_index(profile->files, ProfileFile, i);
                const ProfileFs *fs = &g_array_index(profile->fs, ProfileFs, file->fs);
                const Mount *mount = *fs->uuid ? mount_find_uuid(mounts, fs->uuid) : NULL;
                g_autofree gchar *path = mount ? mount_path_outside(mount, file->path) : NULL;
                auto_fd int fd = -1;
                struct stat st;

                if (!path)
                        continue;
                fd = open_cached(path);
                if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
                        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        }
}
