// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The block device below a file system, from sysfs.
 *
 * A partition is followed to its drive by the folder it lies in. Device mapper is followed only
 * where the mapping is one straight line (one linear or crypt target, or linear targets that
 * continue one another): its table is asked from the kernel, which needs root. Everything else that
 * lies on other devices has no position. A loop device counts as the drive: what its file does is
 * another matter.
 */
#include "measure/device.h"

#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include "common/fd.h"

G_DEFINE_QUARK(headstart - device - error, device_error)

#define SECTOR_BYTES 512
#define STACK_MAX 16 /* device-mapper layers; more mean a loop in a faked sysfs */

/* One attribute, stripped; "" when it is not there. */
static gchar *
attribute(const char *dir, const char *name)
{
        g_autofree gchar *path = g_build_filename(dir, name, NULL);
        gchar *text = NULL;

        if (!g_file_get_contents(path, &text, NULL, NULL))
                return g_strdup("");
        return g_strstrip(text);
}

static guint64
attribute_uint(const char *dir, const char *name)
{
        g_autofree gchar *text = attribute(dir, name);

        return g_ascii_strtoull(text, NULL, 10);
}

static gboolean
attribute_exists(const char *dir, const char *name)
{
        g_autofree gchar *path = g_build_filename(dir, name, NULL);

        return g_file_test(path, G_FILE_TEST_EXISTS);
}

static gchar *
device_folder(const char *sysfs, dev_t dev)
{
        g_autofree gchar *link =
                g_strdup_printf("%s/dev/block/%u:%u", sysfs, major(dev), minor(dev));
        char *resolved = realpath(link, NULL);
        gchar *copy = g_strdup(resolved);

        free(resolved);
        return copy;
}

static gboolean
parse_dev(const char *text, dev_t *ret)
{
        g_auto(GStrv) parts = g_strsplit(text, ":", 2);
        guint64 first, second;

        if (!parts[0] || !parts[1] ||
            !g_ascii_string_to_unsigned(parts[0], 10, 0, G_MAXUINT32, &first, NULL) ||
            !g_ascii_string_to_unsigned(parts[1], 10, 0, G_MAXUINT32, &second, NULL))
                return FALSE;
        *ret = makedev((guint)first, (guint)second);
        return TRUE;
}

typedef struct {
        gboolean known;    /* the table could be read */
        gboolean straight; /* one line onto `below` at `offset_bytes` */
        gboolean copy_on_write;
        dev_t below;
        guint64 offset_bytes;
} Mapping;

static void
mapping_add(Mapping *mapping, const struct dm_target_spec *spec, const char *params)
{
        g_auto(GStrv) words = g_strsplit(params, " ", -1);
        guint n = g_strv_length(words), at = G_MAXUINT;
        gboolean first = !mapping->known;
        guint64 sectors;
        dev_t below;

        mapping->known = TRUE;
        if (g_str_has_prefix(spec->target_type, "snapshot") ||
            strcmp(spec->target_type, "thin") == 0)
                mapping->copy_on_write = TRUE;
        if (strcmp(spec->target_type, "linear") == 0)
                at = 0; /* DEVICE OFFSET */
        else if (strcmp(spec->target_type, "crypt") == 0)
                at = 3; /* CIPHER KEY IV-OFFSET DEVICE OFFSET */
        if (at == G_MAXUINT || at + 1 >= n || !parse_dev(words[at], &below) ||
            !g_ascii_string_to_unsigned(words[at + 1], 10, 0, G_MAXUINT64 / SECTOR_BYTES, &sectors,
                                        NULL)) {
                mapping->straight = FALSE;
                return;
        }
        if (first) {
                mapping->straight = TRUE;
                mapping->below = below;
                /* Position of the mapped device's sector 0, the target beginning further on. */
                mapping->offset_bytes = (sectors - spec->sector_start) * SECTOR_BYTES;
        } else if (below != mapping->below ||
                   (sectors - spec->sector_start) * SECTOR_BYTES != mapping->offset_bytes) {
                mapping->straight = FALSE;
        }
}

/* Asks the kernel for the table of a device-mapper device. Not known when it does not say (no
 * root). */
static Mapping
mapping_load(dev_t dev)
{
        const gsize size = 256 * 1024;
        g_autofree guint8 *buffer = g_malloc0(size);
        struct dm_ioctl *dm = (struct dm_ioctl *)buffer;
        auto_fd int control = open("/dev/mapper/control", O_RDWR | O_CLOEXEC);
        Mapping mapping = {0};
        gsize at;

        if (control < 0)
                return mapping;
        dm->version[0] = DM_VERSION_MAJOR;
        dm->data_size = (guint32)size;
        dm->data_start = sizeof *dm;
        dm->dev = ((guint64)(minor(dev) & 0xfff00) << 12) | (major(dev) << 8) | (minor(dev) & 0xff);
        /* The table of a crypt target holds its key: the kernel wipes its copy, we ours. */
        dm->flags = DM_STATUS_TABLE_FLAG | DM_SECURE_DATA_FLAG;
        if (ioctl(control, DM_TABLE_STATUS, dm) < 0 || (dm->flags & DM_BUFFER_FULL_FLAG))
                goto wipe;
        at = dm->data_start;
        for (guint32 i = 0; i < dm->target_count; i++) {
                const struct dm_target_spec *spec;

                if (at > size - sizeof *spec - 1)
                        break;
                spec = (const struct dm_target_spec *)(buffer + at);
                buffer[size - 1] = '\0';
                mapping_add(&mapping, spec, (const char *)(spec + 1));
                /* `next` counts from the start of the data. */
                if (spec->next <= at - dm->data_start)
                        break;
                at = dm->data_start + spec->next;
        }
wipe:
        explicit_bzero(buffer, size);
        return mapping;
}

static gboolean
has_slaves(const char *folder)
{
        g_autofree gchar *path = g_build_filename(folder, "slaves", NULL);
        g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);

        return dir && g_dir_read_name(dir);
}

/* Follows `dev` down to its drive, adding up offsets, and fills in the drive's fields. */
static gboolean
descend(Device *device, const char *sysfs, dev_t dev, guint depth, GError **error)
{
        g_autofree gchar *folder = device_folder(sysfs, dev);
        g_autofree gchar *base = NULL;

        if (!folder) {
                g_set_error(error, DEVICE_ERROR, DEVICE_ERROR_NOT_A_DISK,
                            "device %u:%u is not a block device", major(dev), minor(dev));
                return FALSE;
        }
        if (attribute_exists(folder, "partition")) {
                g_autofree gchar *parent = g_path_get_dirname(folder);
                g_autofree gchar *number = attribute(parent, "dev");
                dev_t disk;

                if (depth >= STACK_MAX || !parse_dev(number, &disk)) {
                        g_set_error(error, DEVICE_ERROR, DEVICE_ERROR_UNKNOWN,
                                    "the drive of partition %u:%u is not found in sysfs",
                                    major(dev), minor(dev));
                        return FALSE;
                }
                device->offset_bytes += attribute_uint(folder, "start") * SECTOR_BYTES;
                return descend(device, sysfs, disk, depth + 1, error);
        }
        if (attribute_exists(folder, "dm")) {
                Mapping mapping = mapping_load(dev);

                device->copy_on_write |= mapping.copy_on_write;
                if (mapping.known && mapping.straight && depth < STACK_MAX) {
                        device->offset_bytes += mapping.offset_bytes;
                        return descend(device, sysfs, mapping.below, depth + 1, error);
                }
                device->position_known = FALSE;
        } else if (has_slaves(folder)) {
                device->position_known = FALSE; /* md, bcache, ... */
        }

        base = g_path_get_basename(folder);
        device->disk = dev;
        device->disk_name = g_strdup(base);
        device->disk_model = attribute(folder, "device/model");
        device->disk_size_bytes = attribute_uint(folder, "size") * SECTOR_BYTES;
        device->rotational = attribute_uint(folder, "queue/rotational") != 0;
        device->max_request_bytes = attribute_uint(folder, "queue/max_sectors_kb") * 1024;
        device->readahead_bytes = attribute_uint(folder, "queue/read_ahead_kb") * 1024;
        device->scheduler = attribute(folder, "queue/scheduler");
        return TRUE;
}

/* "mq-deadline kyber [bfq] none" -> "bfq" */
static void
pick_scheduler(Device *device)
{
        char *open = strchr(device->scheduler, '['), *close = open ? strchr(open, ']') : NULL;

        if (close) {
                gchar *name = g_strndup(open + 1, (gsize)(close - open - 1));

                g_free(device->scheduler);
                device->scheduler = name;
        }
}

static gchar *
device_node(const char *folder, dev_t dev)
{
        g_autofree gchar *uevent = attribute(folder, "uevent");
        g_auto(GStrv) lines = g_strsplit(uevent, "\n", -1);

        for (guint i = 0; lines[i]; i++)
                if (g_str_has_prefix(lines[i], "DEVNAME="))
                        return g_build_filename("/dev", lines[i] + strlen("DEVNAME="), NULL);
        return g_strdup_printf("/dev/block/%u:%u", major(dev), minor(dev));
}

Device *
device_load_sysfs(const char *sysfs, dev_t dev, GError **error)
{
        g_autoptr(Device) device = g_new0(Device, 1);
        g_autofree gchar *folder = device_folder(sysfs, dev);

        if (!folder) {
                g_set_error(error, DEVICE_ERROR, DEVICE_ERROR_NOT_A_DISK,
                            "device %u:%u is not a block device (tmpfs, overlay, network?)",
                            major(dev), minor(dev));
                return NULL;
        }
        device->dev = dev;
        device->node = device_node(folder, dev);
        device->size_bytes = attribute_uint(folder, "size") * SECTOR_BYTES;
        device->position_known = TRUE;
        if (!descend(device, sysfs, dev, 0, error))
                return NULL;
        if (!device->position_known)
                device->offset_bytes = 0;
        /* What a file system's readahead is set to belongs to its own device, not to the drive. */
        if (attribute_exists(folder, "queue/read_ahead_kb"))
                device->readahead_bytes = attribute_uint(folder, "queue/read_ahead_kb") * 1024;
        pick_scheduler(device);
        return g_steal_pointer(&device);
}

Device *
device_load(dev_t dev, GError **error)
{
        return device_load_sysfs("/sys", dev, error);
}

void
device_free(Device *device)
{
        if (!device)
                return;
        g_free(device->node);
        g_free(device->disk_name);
        g_free(device->disk_model);
        g_free(device->scheduler);
        g_free(device);
}
