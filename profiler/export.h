// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A profile's files in the formats of other tools, in order of first use. Pure: names and numbers
 * to bytes. What a format cannot express is named with its reason, the rest is written. The
 * formats: docs/formats.md.
 */
#pragma once

#include <glib.h>

typedef struct {
        const char *path; /* bytes, absolute (below the root that is exported) */
        guint64 device;   /* dev_t of the file system */
        guint64 inode;
} ExportFile;

/* All take an array of ExportFile and add Skipped * (common/json.h) to `skipped`. */

/* A name a line, or with `null` each ended by NUL. */
GByteArray *export_list(const GArray *files, gboolean null, GPtrArray *skipped);
/* e4rat's startup.log: DEVICE INODE PATH. */
GByteArray *export_e4rat(const GArray *files, GPtrArray *skipped);
/* For mksquashfs -sort: name relative to the source folder, priority from 32767 down to 1 (what is
 * not named has 0 and comes behind). */
GByteArray *export_squashfs_sort(const GArray *files, GPtrArray *skipped);
/* For the standard input of nydus-image create --prefetch-policy: absolute names, UTF-8. */
GByteArray *export_nydus(const GArray *files, GPtrArray *skipped);
