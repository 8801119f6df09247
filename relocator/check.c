// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What may be moved.
 *
 * Most of these the kernel refuses too, with an error number that says little (EOPNOTSUPP); but not
 * all: without a journal it moves, and a crash then leaves zeros.
 */
#include "relocator/check.h"

#include <errno.h>
#include <ext2fs/ext2fs.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/error.h"
#include "common/fd.h"
#include "common/quote.h"
#include "measure/mounts.h"

/* Flags of FS_IOC_GETFLAGS that linux/fs.h does not name on all versions; ext4's on-disk values. */
#define FLAG_JOURNAL_DATA 0x00004000
#define FLAG_EXTENTS 0x00080000
#define FLAG_VERITY 0x00100000
#define FLAG_DAX 0x02000000
#define FLAG_INLINE_DATA 0x10000000
#define FLAG_ENCRYPT 0x00000800
#define FLAG_IMMUTABLE 0x00000010
#define FLAG_APPEND 0x00000020

void
target_free(Target *target)
{
        if (!target)
                return;
        fd_close(&target->dir_fd);
        device_free(target->device);
        g_free(target->dir);
        g_free(target->strip);
        g_free(target->mount_dir);
        g_clear_pointer(&target->swap, g_hash_table_unref);
        g_free(target);
}

/* What the superblock says that the mount table does not. */
static gboolean
check_superblock(const Target *target, GError **error)
{
        g_autofree gchar *quoted = path_quote(target->device->node);
        ext2_filsys fs = NULL;
        gboolean journal, bigalloc;
        errcode_t code;

        initialize_ext2_error_table();
        code = ext2fs_open(target->device->node,
                           EXT2_FLAG_64BITS | EXT2_FLAG_SOFTSUPP_FEATURES | EXT2_FLAG_SUPER_ONLY |
                                   EXT2_FLAG_SKIP_MMP | EXT2_FLAG_IGNORE_CSUM_ERRORS,
                           0, 0, unix_io_manager, &fs);
        if (code == EACCES || code == EPERM) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                            geteuid() == 0
                                    ? "%s cannot be read: not even root may here (a container's "
                                      "or sandbox's device policy)"
                                    : "moving needs root: %s cannot be read",
                            quoted);
                return FALSE;
        }
        if (code) {
                g_set_error(error, RELOCATOR_ERROR, RELOCATOR_ERROR_REFUSED,
                            "the superblock of %s cannot be understood: %s", quoted,
                            error_message(code));
                return FALSE;
        }
        journal = ext2fs_has_feature_journal(fs->super);
        bigalloc = ext2fs_has_feature_bigalloc(fs->super);
        ext2fs_free(fs);
        if (!journal) {
                g_set_error(error, RELOCATOR_ERROR, RELOCATOR_ERROR_REFUSED,
                            "%s has no journal: online moves are not crash safe", quoted);
                return FALSE;
        }
        if (bigalloc) {
                g_set_error(error, RELOCATOR_ERROR, RELOCATOR_ERROR_REFUSED,
                            "%s has clusters (bigalloc): the kernel moves no extents there",
                            quoted);
                return FALSE;
        }
        return TRUE;
}

static Mount *
find_mount(GPtrArray *mounts, const Profile *profile, guint32 fs, const char *root, GError **error)
{
        const ProfileFs *wanted = &g_array_index(profile->fs, ProfileFs, fs);
        Mount *mount = NULL;

        if (root) {
                g_autofree char *resolved = realpath(root, NULL);

                mount = resolved ? mount_find_path(mounts, resolved) : NULL;
                if (mount && *wanted->uuid && *mount_uuid(mount) &&
                    g_ascii_strcasecmp(mount_uuid(mount), wanted->uuid) != 0)
                        mount = NULL;
        } else if (*wanted->uuid) {
                mount = mount_find_uuid(mounts, wanted->uuid);
        } else {
                g_set_error(error, RELOCATOR_ERROR, RELOCATOR_ERROR_NOT_EXT4,
                            "a %s file system without a UUID: not ext4", wanted->type);
                return NULL;
        }
        if (!mount)
                g_set_error(error, RELOCATOR_ERROR, RELOCATOR_ERROR_NOT_EXT4,
                            "the file system %s is not mounted%s", wanted->uuid,
                            root ? " at --root" : "");
        return mount;
}

/* Inode numbers of swap files in use on this device; /proc/swaps escapes like mountinfo. */
static GHashTable *
load_swap(dev_t dev)
{
        GHashTable *swap = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
        g_autofree gchar *text = NULL;
        g_auto(GStrv) lines = NULL;

        if (!g_file_get_contents("/proc/swaps", &text, NULL, NULL))
                return swap;
        lines = g_strsplit(text, "\n", -1);
        for (guint i = 1; lines[i - 1] && lines[i]; i++) {
                g_autofree gchar *name = NULL;
                guint64 inode;
                struct stat st;

                lines[i][strcspn(lines[i], " \t")] = '\0';
                name = g_strcompress(lines[i]);
                if (*name != '/' || stat(name, &st) < 0 || !S_ISREG(st.st_mode) || st.st_dev != dev)
                        continue;
                inode = st.st_ino;
                g_hash_table_add(swap, g_memdup2(&inode, sizeof inode));
        }
        return swap;
}

Target *
target_open(const Profile *profile, guint32 fs, const TargetOptions *options, GError **error)
{
        g_autoptr(GPtrArray) mounts = mount_table_load(error);
        g_autoptr(Target) target = g_new0(Target, 1);
        g_autofree gchar *quoted = NULL;
        struct stat st;
        Mount *mount;

        target->dir_fd = -1;
        if (!mounts)
                return NULL;
        mount = find_mount(mounts, profile, fs, options->root, error);
        if (!mount)
                return NULL;
        quoted = path_quote(mount->dir);
        if (strcmp(mount->type, "ext4") != 0) {
                g_set_error(error, RELOCATOR_ERROR, RELOCATOR_ERROR_NOT_EXT4,
                            "%s is not ext4 but %s: data can be moved on ext4 only", quoted,
                            mount->type);
                return NULL;
        }
        if (mount->read_only && !options->dry_run) {
                g_set_error(error, RELOCATOR_ERROR, RELOCATOR_ERROR_NOT_EXT4,
                            "%s is mounted read-only: mount it read-write first", quoted);
                return NULL;
        }
        target->mount_dir = g_strdup(mount->dir);
        target->dir = g_strdup(options->root ? options->root : mount->dir);
        target->strip = g_strdup(options->root || strcmp(mount->root, "/") == 0 ? "" : mount->root);
        target->dir_fd = open(target->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (target->dir_fd < 0 || fstat(target->dir_fd, &st) < 0) {
                error_set_errno(error, COMMON_ERROR_FAILED, errno, "opening", target->dir);
                return NULL;
        }
        target->dev = st.st_dev;
        target->block_bytes = (guint32)st.st_blksize;
        target->data_journal = mount_has_option(mount, "data=journal");
        target->device = device_load(mount->dev, error);
        if (!target->device)
                return NULL;
        if (!check_superblock(target, error))
                return NULL;
        if (!options->force && (target->device->copy_on_write ||
                                (!target->device->position_known &&
                                 g_str_has_prefix(target->device->disk_name, "dm-")))) {
                g_set_error(error, RELOCATOR_ERROR, RELOCATOR_ERROR_REFUSED,
                            "%s lies on a snapshot, thin or other mapped volume, where moving "
                            "blocks takes "
                            "space elsewhere; --force does it all the same",
                            quoted);
                return NULL;
        }
        target->swap = load_swap(target->dev);
        return g_steal_pointer(&target);
}

static CheckVerdict
refuse(gchar **ret_reason, CheckVerdict verdict, const char *reason)
{
        *ret_reason = g_strdup(reason);
        return verdict;
}

/* Boot loaders of the block-list kind read these by block number, before any file system is
 * mounted. */
static gboolean
is_boot_file(const Target *target, const char *path)
{
        static const char *const names[] = {"ldlinux.sys", "ldlinux.c32", "core.img",
                                            "extlinux.sys"};
        g_autofree gchar *base = g_path_get_basename(path);

        for (guint i = 0; i < G_N_ELEMENTS(names); i++)
                if (strcmp(base, names[i]) == 0)
                        return TRUE;
        return g_str_has_prefix(path, "/boot/") || g_str_has_suffix(target->mount_dir, "/boot");
}

/* O_PATH, without following links, without leaving the file system. */
static int
open_place(const Target *target, const char *path)
{
        struct open_how how = {
                .flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
                .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV |
                           RESOLVE_BENEATH,
        };
        gsize strip = strlen(target->strip);

        if (strip > 0) {
                if (strncmp(path, target->strip, strip) != 0 || path[strip] != '/') {
                        errno = ENOENT;
                        return -1;
                }
                path += strip;
        }
        while (*path == '/')
                path++;
        return (int)syscall(SYS_openat2, target->dir_fd, path, &how, sizeof how);
}

static CheckVerdict
check_place(int place, const ProfileFile *file, const Target *target, gchar **ret_reason)
{
        struct stat st;

        if (place < 0) {
                switch (errno) {
                case ENOENT:
                case ENOTDIR: return refuse(ret_reason, CHECK_GONE, "missing");
                case ELOOP:
                        return refuse(ret_reason, CHECK_GONE,
                                      "a symbolic link lies on the path now");
                case EXDEV:
                        return refuse(ret_reason, CHECK_GONE,
                                      "another file system is mounted over it");
                case ENOSYS:
                        return refuse(ret_reason, CHECK_UNSUPPORTED, "needs openat2 (Linux 5.6)");
                default: return refuse(ret_reason, CHECK_GONE, g_strerror(errno));
                }
        }
        if (fstat(place, &st) < 0)
                return refuse(ret_reason, CHECK_GONE, g_strerror(errno));
        if (!S_ISREG(st.st_mode))
                return refuse(ret_reason, CHECK_GONE, "not a regular file");
        if (st.st_dev != target->dev)
                return refuse(ret_reason, CHECK_GONE, "on another file system");
        if (st.st_nlink == 0)
                return refuse(ret_reason, CHECK_GONE, "unlinked");
        if (file->inode && st.st_ino != file->inode)
                return refuse(ret_reason, CHECK_GONE, "stale: replaced since it was recorded");
        if ((guint64)st.st_size != file->size_bytes ||
            (file->mtime_ns &&
             (gint64)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec != file->mtime_ns))
                return refuse(ret_reason, CHECK_GONE, "stale: changed since it was recorded");
        {
                guint64 inode = st.st_ino;

                if (g_hash_table_contains(target->swap, &inode))
                        return refuse(ret_reason, CHECK_UNSUPPORTED, "a swap file in use");
        }
        return CHECK_OK;
}

static CheckVerdict
check_flags(int fd, const ProfileFile *file, const Target *target, gchar **ret_reason)
{
        int version = 0;
        long flags = 0;
        unsigned int bits;

        if (ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
                return refuse(ret_reason, CHECK_UNSUPPORTED, g_strerror(errno));
        bits = (unsigned int)flags; /* the kernel writes an int, whatever the macro says */
        if (file->generation && ioctl(fd, FS_IOC_GETVERSION, &version) == 0 &&
            (guint32)version != file->generation)
                return refuse(ret_reason, CHECK_GONE, "stale: replaced since it was recorded");
        if (bits & FLAG_ENCRYPT)
                return refuse(ret_reason, CHECK_UNSUPPORTED, "encrypted");
        if (bits & FLAG_VERITY)
                return refuse(ret_reason, CHECK_UNSUPPORTED, "verity file");
        if (bits & FLAG_INLINE_DATA)
                return refuse(ret_reason, CHECK_UNSUPPORTED,
                              "inline data: it lies in its inode and is read with it");
        if (!(bits & FLAG_EXTENTS))
                return refuse(ret_reason, CHECK_UNSUPPORTED, "block-mapped (no extents)");
        if (bits & FLAG_DAX)
                return refuse(ret_reason, CHECK_UNSUPPORTED, "direct access (DAX)");
        if (target->data_journal || (bits & FLAG_JOURNAL_DATA))
                return refuse(ret_reason, CHECK_UNSUPPORTED, "data is journalled (data=journal)");
        if (bits & FLAG_IMMUTABLE)
                return refuse(ret_reason, CHECK_UNSUPPORTED, "immutable");
        if (bits & FLAG_APPEND)
                return refuse(ret_reason, CHECK_UNSUPPORTED, "append-only");
        return CHECK_OK;
}

CheckVerdict
check_file(const Target *target, const ProfileFile *file, int *ret_fd, struct stat *ret_stat,
           gchar **ret_reason)
{
        auto_fd int place = -1, reader = -1, fd = -1;
        g_autofree gchar *again = NULL;
        CheckVerdict verdict;

        if (is_boot_file(target, file->path))
                return refuse(ret_reason, CHECK_UNSUPPORTED,
                              "a boot loader may know it by block number");
        /* Opening a device node or a FIFO has effects: look first, then open the very same. */
        place = open_place(target, file->path);
        verdict = check_place(place, file, target, ret_reason);
        if (verdict != CHECK_OK)
                return verdict;
        again = g_strdup_printf("/proc/self/fd/%d", place);
        reader = open(again, O_RDONLY | O_NOATIME | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
        if (reader < 0 && errno == ENOKEY)
                return refuse(ret_reason, CHECK_UNSUPPORTED, "encrypted");
        if (reader < 0)
                return refuse(ret_reason, CHECK_GONE, g_strerror(errno));
        verdict = check_flags(reader, file, target, ret_reason);
        if (verdict != CHECK_OK)
                return verdict;
        /* A read lease is refused while anybody has the file open for writing. It is given back at
         * once: it would stand in the way of our own opening for writing. What happens between is
         * found by comparing size, times and contents after the move. */
        if (fcntl(reader, F_SETLEASE, F_RDLCK) == 0)
                fcntl(reader, F_SETLEASE, F_UNLCK);
        else if (errno == EAGAIN)
                return refuse(ret_reason, CHECK_GONE, "open for writing");
        fd = open(again, O_RDWR | O_NOATIME | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
        if (fd < 0 && errno == ETXTBSY)
                return refuse(ret_reason, CHECK_GONE, "a program that is running");
        if (fd < 0 && errno == EPERM)
                return refuse(ret_reason, CHECK_UNSUPPORTED, "immutable or append-only");
        if (fd < 0 || fstat(fd, ret_stat) < 0)
                return refuse(ret_reason, CHECK_GONE, g_strerror(errno));
        *ret_fd = fd_steal(&fd);
        return CHECK_OK;
}
