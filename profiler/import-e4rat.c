// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * e4rat's startup.log: "DEVICE INODE PATH" a line, numbers in decimal; or, when the first line
 * begins with '/', paths alone. e4rat itself ends a path at white space; e4rat-preload-lite and
 * this parser take the rest of the line, which is what e4rat-collect wrote.
 */
#include "profiler/import.h"

#include <string.h>

#include "common/error.h"

/* Digits and one blank; FALSE when that is not what stands there. */
static gboolean
take_number(const char **data, gsize *length, guint64 *ret)
{
        const char *p = *data;
        gsize n = 0;
        guint64 value = 0;

        while (n < *length && g_ascii_isdigit(p[n])) {
                if (value > (G_MAXUINT64 - 9) / 10)
                        return FALSE;
                value = value * 10 + (guint64)(p[n++] - '0');
        }
        if (n == 0 || n >= *length || p[n] != ' ')
                return FALSE;
        *data += n + 1;
        *length -= n + 1;
        *ret = value;
        return TRUE;
}

gboolean
import_parse_e4rat(ImportList *list, const char *data, gsize size, GError **error)
{
        gboolean detailed = size > 0 && data[0] != '/';
        guint64 rank = 0, line = 0, taken = 0;

        while (size > 0) {
                const char *stop = memchr(data, '\n', size), *p = data;
                gsize length = stop ? (gsize)(stop - data) : size, left = length;
                guint64 device = 0, inode = 0;
                ImportAccess access = {.kind = IMPORT_LISTED, .length_bytes = IMPORT_WHOLE};

                line++;
                if (length == 0)
                        ;
                else if (detailed &&
                         (!take_number(&p, &left, &device) || !take_number(&p, &left, &inode))) {
                        if (taken == 0) {
                                g_set_error(error, COMMON_ERROR, COMMON_ERROR_INPUT,
                                            "line %" G_GUINT64_FORMAT
                                            " is not DEVICE INODE PATH: no list of e4rat",
                                            line);
                                return FALSE;
                        }
                        import_list_problem(list, "a line that is not DEVICE INODE PATH", data,
                                            length);
                } else if ((access.path = import_list_path(list, p, left)) != G_MAXUINT32) {
                        taken++;
                        access.time_us = rank++;
                        g_array_index(list->paths, ImportPath, access.path).inode = inode;
                        import_list_add(list, &access);
                }
                length += stop ? 1 : 0;
                data += length;
                size -= length;
        }
        return TRUE;
}
