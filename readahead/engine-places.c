// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where a pack's file systems are mounted: /proc/self/mountinfo, joined with the pack by UUID.
 *
 * Only mounts of a type that the pack names are touched at all, so that a dead network server or an
 * automount cannot hold up a replay; mount points are opened with O_PATH and must be the mount that
 * mountinfo told of (another one may lie on top).
 */
#include "readahead/engine-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/btrfs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include <unistd.h>

/* statx(2), whose structure not every libc knows. */
struct kernel_statx {
        uint32_t mask, blksize;
        uint64_t attributes;
        uint32_t nlink, uid, gid;
        uint16_t mode, spare0;
        uint64_t ino, size, blocks, attributes_mask;
        uint8_t times[64];
        uint32_t rdev_major, rdev_minor, dev_major, dev_minor;
        uint64_t mnt_id;
        uint64_t spare[13];
};
_Static_assert(sizeof(struct kernel_statx) == 256, "layout");
#define KERNEL_STATX_MNT_ID 0x1000U

/* UUIDs from the file system itself: ext4 since 6.0, any since 6.9. */
struct ext4_fsuuid {
        uint32_t length, flags;
        uint8_t uuid[16];
};
struct generic_fsuuid {
        uint8_t length;
        uint8_t uuid[16];
};
#define HS_EXT4_IOC_GETFSUUID _IOC(_IOC_READ, 'f', 44, 8)
#define HS_FS_IOC_GETFSUUID _IOR(0x15, 0, struct generic_fsuuid)

struct mount {
        long id;
        unsigned int major, minor;
        char *root, *dir, *type, *source;
};

/* ---- mountinfo ---- */

static char *
read_text(const char *path)
{
        size_t room = 16384, length = 0;
        char *text = malloc(room);
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        while (text && fd >= 0) {
                ssize_t got;

                if (length + 1 >= room) {
                        char *larger = realloc(text, room *= 2);

                        if (!larger)
                                break;
                        text = larger;
                }
                got = read(fd, text + length, room - length - 1);
                if (got < 0 && errno == EINTR)
                        continue;
                if (got <= 0) {
                        close(fd);
                        text[length] = '\0';
                        return text;
                }
                length += (size_t)got;
        }
        if (fd >= 0)
                close(fd);
        free(text);
        return NULL;
}

/* Cuts the next word off, undoing the kernel's \ooo in place. */
static char *
next_word(char **line)
{
        char *word = *line, *in = word, *out = word;

        while (*in && *in != ' ') {
                if (in[0] == '\\' && in[1] >= '0' && in[1] <= '3' && in[2] >= '0' && in[2] <= '7' &&
                    in[3] >= '0' && in[3] <= '7') {
                        *out++ = (char)((in[1] - '0') << 6 | (in[2] - '0') << 3 | (in[3] - '0'));
                        in += 4;
                } else {
                        *out++ = *in++;
                }
        }
        *line = *in ? in + 1 : in;
        *out = '\0';
        return word;
}

/* strtoul(3) would bring the libc's stdio into the static program. */
static unsigned int
parse_number(const char *text, const char **ret_end)
{
        unsigned int n = 0;

        while (*text >= '0' && *text <= '9')
                n = n * 10 + (unsigned int)(*text++ - '0');
        *ret_end = text;
        return n;
}

/* One line: "id parent major:minor root dir options [tag...] - type source options". */
static bool
parse_mount(char *line, struct mount *ret)
{
        const char *word, *end;

        ret->id = parse_number(next_word(&line), &end);
        next_word(&line);
        word = next_word(&line);
        ret->major = parse_number(word, &end);
        if (*end != ':')
                return false;
        ret->minor = parse_number(end + 1, &end);
        ret->root = next_word(&line);
        ret->dir = next_word(&line);
        next_word(&line);
        do {
                if (!*line)
                        return false;
                word = next_word(&line);
        } while (strcmp(word, "-") != 0);
        ret->type = next_word(&line);
        ret->source = next_word(&line);
        return ret->root[0] == '/' && ret->dir[0] == '/';
}

static bool
type_matches(const char *mounted, const char *wanted)
{
        if (strcmp(mounted, wanted) == 0)
                return true;
        /* the ext4 driver mounts all three, under whatever name it was asked for */
        return strncmp(mounted, "ext", 3) == 0 && strncmp(wanted, "ext", 3) == 0 &&
               strlen(mounted) == 4 && strlen(wanted) == 4;
}

/* ---- UUIDs ---- */

static int
open_device(const char *source, unsigned int major, unsigned int minor)
{
        char by_number[64] = "/dev/block/";
        const char *candidates[2] = {source, by_number};
        char *p = by_number + strlen(by_number);
        int r = -ENOENT;

        /* MAJOR:MINOR without stdio */
        for (int part = 0; part < 2; part++) {
                unsigned int n = part ? minor : major;
                char digits[12];
                int i = 0;

                do
                        digits[i++] = (char)('0' + n % 10);
                while ((n /= 10) > 0);
                while (i > 0)
                        *p++ = digits[--i];
                *p++ = part ? '\0' : ':';
        }
        for (int i = 0; i < 2; i++) {
                struct stat st;
                int fd;

                if (strncmp(candidates[i], "/dev/", 5) != 0)
                        continue;
                fd = open(candidates[i], O_RDONLY | O_NOATIME | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
                if (fd < 0 && errno == EPERM)
                        fd = open(candidates[i], O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
                if (fd < 0) {
                        if (r != -EACCES)
                                r = -errno;
                        continue;
                }
                if (fstat(fd, &st) == 0 && S_ISBLK(st.st_mode) &&
                    st.st_rdev == makedev(major, minor))
                        return fd;
                close(fd);
                r = -ENODEV;
        }
        return r;
}

int
place_open_device(const struct place *place)
{
        return open_device(place->source, place->major, place->minor);
}

/* The UUIDs of a mounted file system: its own answer, else its superblock on the device (ext2/3/4).
 * Two when ext4 and the VFS do not agree, which a UUID changed while mounted leads to: who made the
 * pack may have asked either. Returns how many. */
static unsigned int
uuids_of_mount(int path_fd, const struct mount *mount, uint8_t uuids[2][16])
{
        struct ext4_fsuuid ext4 = {.length = 16};
        struct generic_fsuuid generic = {0};
        struct btrfs_ioctl_fs_info_args btrfs = {0};
        uint8_t superblock[128];
        unsigned int n = 0;
        int fd = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);

        if (fd >= 0) {
                if (ioctl(fd, HS_EXT4_IOC_GETFSUUID, &ext4) == 0 && ext4.length == 16)
                        memcpy(uuids[n++], ext4.uuid, 16);
                if (ioctl(fd, HS_FS_IOC_GETFSUUID, &generic) == 0 && generic.length == 16)
                        memcpy(uuids[n++], generic.uuid, 16);
                if (n == 0 && strcmp(mount->type, "btrfs") == 0 &&
                    ioctl(fd, BTRFS_IOC_FS_INFO, &btrfs) == 0)
                        memcpy(uuids[n++], btrfs.fsid, 16);
                close(fd);
        }
        if (n > 0 || strncmp(mount->type, "ext", 3) != 0)
                return n;
        fd = open_device(mount->source, mount->major, mount->minor);
        if (fd >= 0) {
                /* magic 0xef53 at 56, UUID at 104 of the superblock */
                if (pread(fd, superblock, sizeof superblock, 1024) == (ssize_t)sizeof superblock &&
                    superblock[56] == 0x53 && superblock[57] == 0xef)
                        memcpy(uuids[n++], superblock + 104, 16);
                close(fd);
        }
        return n;
}

/* The last resort, udev's links: is the device of this UUID the mount's? */
static bool
uuid_by_link(const uint8_t uuid[16], const struct mount *mount)
{
        char path[64] = "/dev/disk/by-uuid/";
        char *p = path + strlen(path);
        struct stat st, source;

        for (int i = 0; i < 16; i++) {
                if (i == 4 || i == 6 || i == 8 || i == 10)
                        *p++ = '-';
                *p++ = "0123456789abcdef"[uuid[i] >> 4];
                *p++ = "0123456789abcdef"[uuid[i] & 15];
        }
        *p = '\0';
        if (stat(path, &st) < 0 || !S_ISBLK(st.st_mode))
                return false;
        /* mountinfo names an anonymous device for a btrfs: its source is the device */
        return st.st_rdev == makedev(mount->major, mount->minor) ||
               (stat(mount->source, &source) == 0 && S_ISBLK(source.st_mode) &&
                st.st_rdev == source.st_rdev);
}

/* ---- places ---- */

static bool
statx_mount(int fd, long *ret_id)
{
        struct kernel_statx stx = {0};

        if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, KERNEL_STATX_MNT_ID, &stx) <
                    0 ||
            !(stx.mask & KERNEL_STATX_MNT_ID))
                return false;
        *ret_id = (long)stx.mnt_id;
        return true;
}

/* Opens the mount point without following or mounting anything; -1 when another mount hides it. */
static int
open_mount_point(const struct mount *mount)
{
        int fd = open(mount->dir, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        struct stat st;
        long id;

        if (fd < 0)
                return -1;
        /* before 5.8 by device, which is another one than mountinfo's on btrfs */
        if (statx_mount(fd, &id)
                    ? id == mount->id
                    : fstat(fd, &st) == 0 && st.st_dev == makedev(mount->major, mount->minor))
                return fd;
        close(fd);
        return -1;
}

static int
add_place(struct places *places, const struct place *place)
{
        if (places->count == places->room) {
                size_t room = places->room ? 2 * places->room : 8;
                struct place *larger = realloc(places->items, room * sizeof *larger);

                if (!larger)
                        return -ENOMEM;
                places->items = larger;
                places->room = room;
        }
        places->items[places->count] = *place;
        places->items[places->count].root_fd = fcntl(place->root_fd, F_DUPFD_CLOEXEC, 3);
        if (places->items[places->count].root_fd >= 0)
                places->count++;
        return 0;
}

static bool
mount_is_below(const struct mount *mount, const char *root)
{
        size_t length = strlen(root);

        return strcmp(root, "/") == 0 ||
               (strncmp(mount->dir, root, length) == 0 &&
                (mount->dir[length] == '/' || mount->dir[length] == '\0'));
}

/* A copy of the whole file system (a snapshot, a cloned disk) has its UUID and its inodes too: the
 * one mounted first is taken for the original. */
static bool
is_clone(const struct places *places, const struct place *place)
{
        for (size_t i = 0; i < places->count; i++)
                if (places->items[i].fs == place->fs && places->items[i].verified &&
                    (places->items[i].major != place->major ||
                     places->items[i].minor != place->minor))
                        return true;
        return false;
}

static int
add_mount(struct places *places, const struct mount *mount, const struct pack_fs *fs, size_t n_fs,
          const char *strings)
{
        static const uint8_t none[16];
        uint8_t uuids[2][16] = {{0}};
        unsigned int n_uuids = 0;
        bool asked = false;
        int fd = -1, r = 0;

        for (size_t i = 0; i < n_fs && r == 0; i++) {
                struct place place = {
                        .fs = (uint32_t)i,
                        .prefix = strcmp(mount->root, "/") == 0 ? "" : mount->root,
                        .prefix_length = strcmp(mount->root, "/") == 0 ? 0 : strlen(mount->root),
                        .source = mount->source,
                        .major = mount->major,
                        .minor = mount->minor,
                };

                if (!type_matches(mount->type, strings + fs[i].type))
                        continue;
                if (fd < 0 && (fd = open_mount_point(mount)) < 0)
                        return 0;
                if (!asked) {
                        n_uuids = uuids_of_mount(fd, mount, uuids);
                        asked = true;
                }
                if (n_uuids > 0) {
                        /* also nil with nil: images made without one */
                        place.verified = memcmp(uuids[0], fs[i].uuid, 16) == 0 ||
                                         (n_uuids > 1 && memcmp(uuids[1], fs[i].uuid, 16) == 0);
                        if (!place.verified)
                                continue;
                } else if (memcmp(fs[i].uuid, none, 16) != 0) {
                        place.verified = uuid_by_link(fs[i].uuid, mount);
                        if (!place.verified)
                                continue;
                }
                /* else: overlay and the like, known by type only; each file's identity decides */
                if (place.verified && is_clone(places, &place))
                        continue;
                place.root_fd = fd;
                r = add_place(places, &place);
        }
        if (fd >= 0)
                close(fd);
        return r;
}

/* The directory `root` itself for every file system that is neither mounted below it nor holds it:
 * a copy of the tree, whose paths are taken below it. */
static int
add_root(struct places *places, int root_fd, size_t n_fs)
{
        for (size_t i = 0; i < n_fs; i++) {
                struct place place = {
                        .fs = (uint32_t)i, .root_fd = root_fd, .prefix = "", .source = ""};
                bool found = false;

                for (size_t j = 0; j < places->count && !found; j++)
                        found = places->items[j].fs == i;
                if (!found && add_place(places, &place) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* /proc/self/fd/FD: the directory as mountinfo names it. */
static bool
real_path(int fd, char path[PATH_MAX])
{
        char link[32] = "/proc/self/fd/", digits[12];
        char *p = link + strlen(link);
        ssize_t length;
        int i = 0;

        do
                digits[i++] = (char)('0' + fd % 10);
        while ((fd /= 10) > 0);
        while (i > 0)
                *p++ = digits[--i];
        *p = '\0';
        length = readlink(link, path, PATH_MAX - 1);
        if (length <= 0)
                return false;
        path[length] = '\0';
        return path[0] == '/';
}

int
places_find(const struct pack_fs *fs, size_t n_fs, const char *strings, const char *root,
            struct places *ret)
{
        struct places places = {0};
        char root_path[PATH_MAX] = "/";
        int root_fd = -1, r = 0;
        char *line, *next;
        long root_id = -1;

        if (root) {
                root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
                if (root_fd < 0) {
                        *ret = places;
                        return 0;
                }
                if (!real_path(root_fd, root_path))
                        root_path[0] = '\0';
                statx_mount(root_fd, &root_id);
        }
        places.text = root_path[0] ? read_text("/proc/self/mountinfo") : NULL;
        for (line = places.text; line && *line && r == 0; line = next) {
                struct mount mount;

                next = strchr(line, '\n');
                if (next)
                        *next++ = '\0';
                else
                        next = line + strlen(line);
                /* also the one that holds `root` when that is a folder inside it */
                if (parse_mount(line, &mount) &&
                    (mount_is_below(&mount, root_path) || mount.id == root_id))
                        r = add_mount(&places, &mount, fs, n_fs, strings);
        }
        if (r == 0 && root)
                r = add_root(&places, root_fd, n_fs);
        if (root_fd >= 0)
                close(root_fd);
        if (r < 0) {
                places_free(&places);
                return r;
        }
        *ret = places;
        return 0;
}

void
places_free(struct places *places)
{
        for (size_t i = 0; i < places->count; i++)
                close(places->items[i].root_fd);
        free(places->items);
        free(places->text);
        memset(places, 0, sizeof *places);
}

const struct place *
places_for_path(const struct places *places, uint32_t fs, const char *path, const char **ret_path)
{
        const struct place *best = NULL;

        for (size_t i = 0; i < places->count; i++) {
                const struct place *place = &places->items[i];

                if (place->fs == fs && strncmp(path, place->prefix, place->prefix_length) == 0 &&
                    path[place->prefix_length] == '/' &&
                    (!best || place->prefix_length >= best->prefix_length))
                        best = place;
        }
        if (best)
                *ret_path = path + best->prefix_length + 1;
        return best;
}

const struct place *
places_for_device(const struct places *places, uint32_t fs)
{
        const struct place *best = NULL;

        for (size_t i = 0; i < places->count; i++)
                if (places->items[i].fs == fs && places->items[i].verified)
                        best = &places->items[i];
        return best;
}
