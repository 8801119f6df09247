// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The mounts of this mount namespace.
 *
 * The parser is a function of text. Which mounts are hidden is found by walking each mount point's
 * path the way the kernel does: from the root mount, at every step into the mount that lies on the
 * path in the mount reached so far. A mount whose own path does not lead to it is hidden.
 */
#include "measure/mounts.h"

#include <blkid/blkid.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "common/error.h"
#include "common/fd.h"

/* FS_IOC_GETFSUUID of Linux 6.9, which reads no device and needs no privilege. */
struct fs_uuid2 {
        guint8 length;
        guint8 uuid[16];
};
#define HEADSTART_IOC_GETFSUUID _IOR(0x15, 0, struct fs_uuid2)

/* EXT4_IOC_GETFSUUID of Linux 6.0: the UUID follows the two words. */
struct ext4_fs_uuid {
        guint32 length, flags;
        guint8 uuid[16];
};
#define HEADSTART_EXT4_IOC_GETFSUUID _IOC(_IOC_READ, 'f', 44, 8)

static void
mount_free(gpointer data)
{
        Mount *mount = data;

        g_free(mount->root);
        g_free(mount->dir);
        g_free(mount->type);
        g_free(mount->source);
        g_free(mount->uuid);
        g_free(mount->options);
        g_free(mount);
}

/* mountinfo writes space, tab, newline, '\\' and '#' as a backslash and three octal digits. */
static gchar *
unescape(const char *text)
{
        gchar *out = g_malloc(strlen(text) + 1), *to = out;

        while (*text) {
                if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && text[2] >= '0' &&
                    text[2] <= '7' && text[3] >= '0' && text[3] <= '7') {
                        int value = (text[1] - '0') * 64 + (text[2] - '0') * 8 + (text[3] - '0');

                        if (value != 0) {
                                *to++ = (gchar)value;
                                text += 4;
                                continue;
                        }
                }
                *to++ = *text++;
        }
        *to = '\0';
        return out;
}

static gboolean
parse_uint(const char *text, guint64 max, guint64 *ret)
{
        return g_ascii_string_to_unsigned(text, 10, 0, max, ret, NULL);
}

/* ID PARENT MAJOR:MINOR ROOT DIR OPTIONS [TAG...] - TYPE SOURCE SUPER-OPTIONS */
static Mount *
parse_line(const char *line)
{
        g_auto(GStrv) fields = g_strsplit(line, " ", -1);
        guint n = g_strv_length(fields), dash;
        guint64 id, parent, dev_major, dev_minor;
        char *colon;
        Mount *mount;

        for (dash = 6; dash < n && strcmp(fields[dash], "-") != 0; dash++)
                ;
        /* The source may be the empty string, the super options may be missing on odd kernels. */
        if (dash + 1 >= n)
                return NULL;
        colon = strchr(fields[2], ':');
        if (!colon)
                return NULL;
        *colon = '\0';
        if (!parse_uint(fields[0], G_MAXINT, &id) || !parse_uint(fields[1], G_MAXINT, &parent) ||
            !parse_uint(fields[2], G_MAXUINT32, &dev_major) ||
            !parse_uint(colon + 1, G_MAXUINT32, &dev_minor))
                return NULL;
        if (fields[4][0] != '/')
                return NULL;

        mount = g_new0(Mount, 1);
        mount->mount_id = (gint)id;
        mount->parent_id = (gint)parent;
        mount->dev = makedev((guint)dev_major, (guint)dev_minor);
        mount->root = unescape(fields[3]);
        mount->dir = unescape(fields[4]);
        mount->type = unescape(fields[dash + 1]);
        mount->source = unescape(dash + 2 < n ? fields[dash + 2] : "");
        mount->options = g_strconcat(fields[5], dash + 3 < n ? "," : "",
                                     dash + 3 < n ? fields[dash + 3] : "", NULL);
        mount->read_only = mount_has_option(mount, "ro");
        return mount;
}

gboolean
mount_has_option(const Mount *mount, const char *option)
{
        gsize length = strlen(option);

        for (const char *at = mount->options; at && *at;) {
                gsize part = strcspn(at, ",");

                if (part == length && memcmp(at, option, length) == 0)
                        return TRUE;
                at += part + (at[part] == ',');
        }
        return FALSE;
}

/* The rest of `path` below `dir`, beginning with '/' or empty; NULL when it does not lie below. */
static const char *
path_below(const char *path, const char *dir)
{
        gsize length = strlen(dir);

        while (length > 0 && dir[length - 1] == '/')
                length--;
        if (strncmp(path, dir, length) != 0 || (path[length] != '\0' && path[length] != '/'))
                return NULL;
        return path + length;
}

gboolean
mount_is_below(const Mount *mount, const char *folder)
{
        return path_below(mount->dir, folder) != NULL;
}

static gboolean
is_orphan(const GPtrArray *mounts, const Mount *mount)
{
        if (mount->mount_id == mount->parent_id)
                return TRUE;
        for (guint i = 0; i < mounts->len; i++) {
                const Mount *other = g_ptr_array_index(mounts, i);

                if (other->mount_id == mount->parent_id)
                        return FALSE;
        }
        return TRUE;
}

/* Walks the path; NULL when not even a root mount lies on it. `orphans` holds a flag for each mount
 * whose parent is not in the table: the root, or what is seen first in a chroot. */
static Mount *
walk(const GPtrArray *mounts, const gboolean *orphans, const char *path)
{
        Mount *current = NULL;

        /* Each step goes one mount deeper, so that more steps than mounts mean a loop. */
        for (guint step = 0; step <= mounts->len; step++) {
                Mount *next = NULL;

                for (guint i = 0; i < mounts->len; i++) {
                        Mount *mount = g_ptr_array_index(mounts, i);

                        if (mount == current || !path_below(path, mount->dir))
                                continue;
                        if (current ? orphans[i] || mount->parent_id != current->mount_id
                                    : !orphans[i])
                                continue;
                        /* The nearest mount point is met first; at one point the last counts. */
                        if (!next || strlen(mount->dir) <= strlen(next->dir))
                                next = mount;
                }
                if (!next)
                        return current;
                current = next;
        }
        return current;
}

static gboolean *
find_orphans(const GPtrArray *mounts)
{
        gboolean *orphans = g_new0(gboolean, mounts->len + 1);

        for (guint i = 0; i < mounts->len; i++)
                orphans[i] = is_orphan(mounts, g_ptr_array_index(mounts, i));
        return orphans;
}

GPtrArray *
mount_table_parse(const char *text, gsize length)
{
        GPtrArray *mounts = g_ptr_array_new_with_free_func(mount_free);
        g_autofree gchar *copy = g_malloc(length + 1);
        g_autofree gboolean *orphans = NULL;
        g_auto(GStrv) lines = NULL;

        /* NUL cannot stand in mountinfo: what follows one would be lost silently otherwise. */
        for (gsize i = 0; i < length; i++)
                copy[i] = text[i] ? text[i] : '\n';
        copy[length] = '\0';
        lines = g_strsplit(copy, "\n", -1);
        for (guint i = 0; lines[i]; i++) {
                Mount *mount = parse_line(lines[i]);

                if (mount)
                        g_ptr_array_add(mounts, mount);
        }
        orphans = find_orphans(mounts);
        for (guint i = 0; i < mounts->len; i++) {
                Mount *mount = g_ptr_array_index(mounts, i);

                mount->hidden = walk(mounts, orphans, mount->dir) != mount;
        }
        return mounts;
}

GPtrArray *
mount_table_load(GError **error)
{
        g_autofree gchar *text = NULL;
        g_autoptr(GError) local = NULL;
        gsize length;

        if (!g_file_get_contents("/proc/self/mountinfo", &text, &length, &local)) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                            "%s; /proc must be mounted", local->message);
                return NULL;
        }
        return mount_table_parse(text, length);
}

static gboolean
uuid_is_nil(const guint8 uuid[16])
{
        static const guint8 nil[16];

        return memcmp(uuid, nil, sizeof nil) == 0;
}

static gchar *
uuid_by_ioctl(const Mount *mount)
{
        auto_fd int place = -1, fd = -1;
        g_autofree gchar *again = NULL;
        struct fs_uuid2 uuid = {0};
        struct stat st;
        struct ext4_fs_uuid ext4 = {.length = 16};
        const guint8 *u = NULL;

        if (mount->hidden)
                return NULL;
        /* What is mounted there may be a device node or a FIFO: look before opening. */
        place = open(mount->dir, O_PATH | O_CLOEXEC | O_NOFOLLOW);
        if (place < 0 || fstat(place, &st) < 0 || !(S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)))
                return NULL;
        if (st.st_dev != mount->dev && strcmp(mount->type, "btrfs") != 0)
                return NULL;
        again = g_strdup_printf("/proc/self/fd/%d", place);
        fd = open(again, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
        if (fd < 0)
                return NULL;
        /* ext4's own call first: the generic one answered zeros for a root file system that has a
         * UUID */
        if ((ioctl(fd, HEADSTART_EXT4_IOC_GETFSUUID, &ext4) < 0 || ext4.length != 16 ||
             uuid_is_nil(u = ext4.uuid)) &&
            (ioctl(fd, HEADSTART_IOC_GETFSUUID, &uuid) < 0 || uuid.length != 16 ||
             uuid_is_nil(u = uuid.uuid)))
                return NULL;
        return g_strdup_printf("%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
                               "%02x%02x%02x%02x%02x%02x",
                               u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10],
                               u[11], u[12], u[13], u[14], u[15]);
}

static gchar *
uuid_by_udev(dev_t dev)
{
        DIR *dir = opendir("/dev/disk/by-uuid");
        gchar *found = NULL;
        struct dirent *entry;

        if (!dir)
                return NULL;
        while (!found && (entry = readdir(dir))) {
                struct stat st;

                if (entry->d_name[0] != '.' && fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 &&
                    S_ISBLK(st.st_mode) && st.st_rdev == dev)
                        found = g_strdup(entry->d_name);
        }
        closedir(dir);
        return found;
}

static gchar *
uuid_by_probe(const char *node)
{
        blkid_probe probe = blkid_new_probe_from_filename(node);
        const char *value = NULL;
        gchar *uuid = NULL;

        if (!probe)
                return NULL;
        blkid_probe_enable_superblocks(probe, TRUE);
        blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_UUID);
        if (blkid_do_safeprobe(probe) == 0 &&
            blkid_probe_lookup_value(probe, "UUID", &value, NULL) == 0)
                uuid = g_strdup(value);
        blkid_free_probe(probe);
        return uuid;
}

const char *
mount_uuid(Mount *mount)
{
        g_autofree gchar *found = NULL;
        struct stat st;

        if (mount->uuid)
                return mount->uuid;
        /* Major 0 is for file systems without a block device; btrfs has one all the same. */
        if (major(mount->dev) != 0 || strcmp(mount->type, "btrfs") == 0) {
                found = uuid_by_ioctl(mount);
                if (!found && stat(mount->source, &st) == 0 && S_ISBLK(st.st_mode)) {
                        found = uuid_by_udev(st.st_rdev);
                        if (!found)
                                found = uuid_by_probe(mount->source);
                } else if (!found && major(mount->dev) != 0) {
                        /* "/dev/root" and other names without a node. */
                        g_autofree gchar *node = g_strdup_printf(
                                "/dev/block/%u:%u", major(mount->dev), minor(mount->dev));

                        found = uuid_by_udev(mount->dev);
                        if (!found)
                                found = uuid_by_probe(node);
                }
        }
        mount->uuid = found ? g_ascii_strdown(found, -1) : g_strdup("");
        return mount->uuid;
}

/* The better of two mounts of one file system, `later` standing further down in the table. */
static Mount *
prefer(Mount *best, Mount *later)
{
        if (best && strcmp(best->root, "/") == 0 && strcmp(later->root, "/") != 0)
                return best;
        return later;
}

Mount *
mount_find_dev(GPtrArray *mounts, dev_t dev)
{
        Mount *best = NULL;

        for (guint i = 0; i < mounts->len; i++) {
                Mount *mount = g_ptr_array_index(mounts, i);

                if (!mount->hidden && mount->dev == dev)
                        best = prefer(best, mount);
        }
        return best;
}

Mount *
mount_find_uuid(GPtrArray *mounts, const char *uuid)
{
        Mount *best = NULL;

        if (!uuid || !*uuid)
                return NULL;
        for (guint i = 0; i < mounts->len; i++) {
                Mount *mount = g_ptr_array_index(mounts, i);

                if (!mount->hidden && g_ascii_strcasecmp(mount_uuid(mount), uuid) == 0)
                        best = prefer(best, mount);
        }
        return best;
}

Mount *
mount_find_path(GPtrArray *mounts, const char *path)
{
        g_autofree gboolean *orphans = find_orphans(mounts);

        return path[0] == '/' ? walk(mounts, orphans, path) : NULL;
}

static gchar *
move_path(const char *path, const char *from, const char *to)
{
        const char *rest = path_below(path, from);
        gsize length = strlen(to);

        if (!rest)
                return NULL;
        while (length > 0 && to[length - 1] == '/')
                length--;
        if (strcmp(rest, "/") == 0)
                rest = "";
        if (length == 0 && *rest == '\0')
                return g_strdup("/");
        return g_strdup_printf("%.*s%s", (int)length, to, rest);
}

gchar *
mount_path_outside(const Mount *mount, const char *path_inside)
{
        return move_path(path_inside, mount->root, mount->dir);
}

gchar *
mount_path_inside(const Mount *mount, const char *path_outside)
{
        return move_path(path_outside, mount->dir, mount->root);
}
