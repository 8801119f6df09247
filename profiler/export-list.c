// SPDX-License-Identifier: GPL-2.0-or-later
/* Lists of names: plain ones, and nydus-image's, which reads lines of UTF-8 and trims them. */
#include "profiler/export.h"

#include <string.h>

#include "common/json.h"

static void
append(GByteArray *out, const char *bytes, gsize length)
{
        g_byte_array_append(out, (const guint8 *)bytes, (guint)length);
}

GByteArray *
export_list(const GArray *files, gboolean null, GPtrArray *skipped)
{
        GByteArray *out = g_byte_array_new();

        for (guint i = 0; i < files->len; i++) {
                const char *path = g_array_index(files, ExportFile, i).path;

                if (!null && strchr(path, '\n')) {
                        g_ptr_array_add(skipped,
                                        skipped_new(path, "a name with a newline needs --null"));
                        continue;
                }
                append(out, path, strlen(path));
                append(out, null ? "" : "\n", 1);
        }
        return out;
}

GByteArray *
export_nydus(const GArray *files, GPtrArray *skipped)
{
        GByteArray *out = g_byte_array_new();

        for (guint i = 0; i < files->len; i++) {
                const char *path = g_array_index(files, ExportFile, i).path;
                const char *end = path + strlen(path);
                const char *last = g_utf8_find_prev_char(path, end);

                if (strchr(path, '\n'))
                        g_ptr_array_add(skipped,
                                        skipped_new(path, "nydus reads lines: no newline"));
                else if (!g_utf8_validate(path, -1, NULL))
                        g_ptr_array_add(skipped, skipped_new(path, "nydus takes UTF-8 only"));
                else if (last && g_unichar_isspace(g_utf8_get_char(last)))
                        g_ptr_array_add(skipped,
                                        skipped_new(path, "nydus drops the blank at the end"));
                else {
                        append(out, path, strlen(path));
                        append(out, "\n", 1);
                }
        }
        return out;
}
