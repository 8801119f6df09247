// SPDX-License-Identifier: GPL-2.0-or-later
/* e4rat-realloc and e4rat-preload read "DEVICE INODE PATH" by scanf(): a name ends at white space,
 * which also they could not write otherwise. */
#include "profiler/export.h"

#include <string.h>

#include "common/json.h"

GByteArray *
export_e4rat(const GArray *files, GPtrArray *skipped)
{
        GByteArray *out = g_byte_array_new();

        for (guint i = 0; i < files->len; i++) {
                const ExportFile *file = &g_array_index(files, ExportFile, i);
                g_autofree gchar *line = NULL;

                if (strpbrk(file->path, " \t\n\v\f\r")) {
                        g_ptr_array_add(skipped, skipped_new(file->path, "e4rat ends names at "
                                                                         "white space"));
                        continue;
                }
                if (strlen(file->path) >= 4096 || file->device > G_MAXINT32) {
                        g_ptr_array_add(
                                skipped,
                                skipped_new(file->path, strlen(file->path) >= 4096
                                                                ? "too long a name for e4rat"
                                                                : "too large a device number for "
                                                                  "e4rat"));
                        continue;
                }
                line = g_strdup_printf("%" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %s\n",
                                       file->device, file->inode, file->path);
                g_byte_array_append(out, (const guint8 *)line, (guint)strlen(line));
        }
        return out;
}
