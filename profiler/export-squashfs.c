// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sort files of mksquashfs: "NAME PRIORITY" a line, -32768 to 32767, higher first. A backslash
 * takes the next character as it is. More files than priorities share them, in runs.
 */
#include "profiler/export.h"

#include <string.h>

#include "common/json.h"

#define PRIORITY_MAX 32767
#define LINE_MAX_BYTES 16384

GByteArray *
export_squashfs_sort(const GArray *files, GPtrArray *skipped)
{
        GByteArray *out = g_byte_array_new();

        for (guint i = 0; i < files->len; i++) {
                const char *path = g_array_index(files, ExportFile, i).path;
                g_autoptr(GString) line = g_string_new(NULL);
                guint64 step =
                        files->len <= PRIORITY_MAX ? i : (guint64)i * PRIORITY_MAX / files->len;

                if (strchr(path, '\n') || g_str_has_suffix(path, "/*")) {
                        g_ptr_array_add(skipped, skipped_new(path, "a sort file cannot name it"));
                        continue;
                }
                for (const char *p = path + strspn(path, "/"); *p; p++) {
                        if (g_ascii_isspace(*p) || *p == '\v' || *p == '\\' ||
                            (*p == '#' && line->len == 0))
                                g_string_append_c(line, '\\');
                        g_string_append_c(line, *p);
                }
                g_string_append_printf(line, " %d\n", (int)(PRIORITY_MAX - step));
                if (line->len >= LINE_MAX_BYTES)
                        g_ptr_array_add(skipped, skipped_new(path, "too long for a sort file"));
                else
                        g_byte_array_append(out, (const guint8 *)line->str, (guint)line->len);
        }
        return out;
}
