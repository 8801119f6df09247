// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Plain lists: a name a line. Lists of readahead, readahead-list and readahead-fedora are of this
 * kind ('#' begins a comment line); so is what "find" and "show --files" print.
 */
#include "profiler/import.h"

#include <string.h>

void
import_parse_list(ImportList *list, const char *data, gsize size, gboolean null)
{
        guint64 rank = 0;

        while (size > 0) {
                const char *stop = memchr(data, null ? '\0' : '\n', size);
                gsize length = stop ? (gsize)(stop - data) : size;
                ImportAccess access = {.kind = IMPORT_LISTED, .length_bytes = IMPORT_WHOLE};

                if (length > 0 && (null || data[0] != '#')) {
                        if (memchr(data, 0, length)) {
                                import_list_problem(
                                        list, "a name that holds a NUL (is the list for --null?)",
                                        data, length);
                        } else {
                                access.path = import_list_path(list, data, length);
                                access.time_us = rank++;
                                if (access.path != G_MAXUINT32)
                                        import_list_add(list, &access);
                        }
                }
                length += stop ? 1 : 0;
                data += length;
                size -= length;
        }
}
