// SPDX-License-Identifier: GPL-2.0-or-later
/* What the fuzz targets share. Each tests/fuzz/fuzz-NAME.c is one libFuzzer target; its seeds come
 * from tests/fuzz/seeds. */
#pragma once

#include <glib.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "profiler/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever the input: every reference leads somewhere, and no page of a name stands in two ranges.
 */
static inline void
check_list(const ImportList *list)
{

        for (guint i = 0; i < list->accesses->len; i++) {
                const ImportAccess *access = &g_array_index(list->accesses, ImportAccess, i);

                g_assert(access->path < list->paths->len);
                g_assert(access->process <= list->processes->len);
                g_assert(access->offset_bytes <= G_MAXINT64);
                g_assert(access->length_bytes == IMPORT_WHOLE ||
                         access->offset_bytes + access->length_bytes <= G_MAXINT64);
                for (guint j = i > 64 ? i - 64 : 0; j < i; j++) {
                        const ImportAccess *other = &g_array_index(list->accesses, ImportAccess, j);
                        guint64 end = other->length_bytes == IMPORT_WHOLE
                                              ? IMPORT_WHOLE
                                              : other->offset_bytes + other->length_bytes;

                        if (other->path != access->path || other->kind == IMPORT_OPENED ||
                            access->kind == IMPORT_OPENED || other->kind == IMPORT_LISTED ||
                            access->kind == IMPORT_LISTED || other->kind == IMPORT_EXECUTED ||
                            access->kind == IMPORT_EXECUTED)
                                continue;
                        g_assert(access->offset_bytes >= end ||
                                 (access->length_bytes != IMPORT_WHOLE &&
                                  access->offset_bytes + access->length_bytes <=
                                          other->offset_bytes));
                }
        }
        for (guint i = 0; i < list->paths->len; i++) {
                const ImportPath *path = &g_array_index(list->paths, ImportPath, i);

                g_assert(path->bytes[0] != '\0' && strlen(path->bytes) <= IMPORT_NAME_MAX);
        }
        for (guint i = 0; i < list->processes->len; i++)
                g_assert(g_array_index(list->processes, ImportProcess, i).parent <= i);
}
