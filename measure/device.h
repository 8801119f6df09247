// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The block device below a file system and the drive below that.
 */
#pragma once

#include <glib.h>
#include <sys/types.h>

#define DEVICE_ERROR (device_error_quark())
GQuark device_error_quark(void);
typedef enum {
        DEVICE_ERROR_NOT_A_DISK, /* tmpfs, overlay, network, a character device: exit 77 */
        DEVICE_ERROR_UNKNOWN,    /* striped, RAID, thin: place on the drive not known */
} DeviceError;

typedef struct {
        dev_t dev;            /* the device the file system is on (partition, loop, dm) */
        gchar *node;          /* /dev/... */
        guint64 offset_bytes; /* of dev on the drive: partition start, dm-linear offset */
        guint64 size_bytes;   /* of dev */
        dev_t disk;           /* the whole drive */
        gchar *disk_name;     /* kernel name: "sda" */
        gchar *disk_model;    /* sysfs device/model, or "" */
        guint64 disk_size_bytes;
        gboolean rotational;       /* queue/rotational: often wrong, see docs */
        guint64 max_request_bytes; /* queue/max_sectors_kb */
        guint64 readahead_bytes;   /* queue/read_ahead_kb */
        gchar *scheduler;          /* the active one: "none", "mq-deadline", "bfq" */
        gboolean position_known;   /* FALSE: striped, RAID, thin; offset_bytes means nothing */
        gboolean copy_on_write; /* a device-mapper snapshot, its origin or a thin volume lies below:
                                   every block written for the first time takes space elsewhere */
} Device;

/* From a dev_t of a block device (mountinfo's), through /sys/dev/block. */
Device *device_load(dev_t dev, GError **error);
/* The same below another sysfs tree than /sys (for tests). */
Device *device_load_sysfs(const char *sysfs, dev_t dev, GError **error);
void device_free(Device *device);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Device, device_free)
