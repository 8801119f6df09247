// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * /.readahead of systemd-readahead (systemd up to 216), version 2 of its format:
 *
 *     HOST ";VERSION=2" newline, 'S' (SSD) or 'R' (rotational), then for every file
 *     path newline, inode (64 bits), pairs of 32-bit page numbers (first, end), the pair 0 0
 *
 * in the byte order of the writer (HOST names the architecture). No pair at all means the whole
 * file. A first page 0 is written as a pair unless it is the whole file. Pages are those of the
 * writer: 4096 bytes on nearly every machine that ever ran it.
 */
#include "profiler/import.h"

#include <string.h>

#include "common/error.h"

#define PAGE_BYTES 4096
#define LINE_MAX_BYTES 4096

typedef struct {
        const guint8 *data;
        gsize left;
        gboolean big;
} Reader;

static gboolean
take_number(Reader *reader, guint bytes, guint64 *ret)
{
        guint64 value = 0;

        if (reader->left < bytes)
                return FALSE;
        for (guint i = 0; i < bytes; i++)
                value = value << 8 | reader->data[reader->big ? i : bytes - 1 - i];
        reader->data += bytes;
        reader->left -= bytes;
        *ret = value;
        return TRUE;
}

/* Up to the newline, which is dropped. NULL when there is none. */
static const char *
take_line(Reader *reader, gsize *ret_length)
{
        const char *line = (const char *)reader->data;
        const char *stop = memchr(line, '\n', MIN(reader->left, LINE_MAX_BYTES + 1));

        if (!stop)
                return NULL;
        *ret_length = (gsize)(stop - line);
        reader->data += *ret_length + 1;
        reader->left -= *ret_length + 1;
        return line;
}

static gboolean
host_is_big_endian(const char *host, gsize length)
{
        static const char *const big[] = {"s390",  "ppc64-",  "powerpc-", "powerpc64-", "sparc",
                                          "mips-", "mips64-", "hppa",     "m68k",       "ppc-"};

        for (guint i = 0; i < G_N_ELEMENTS(big); i++)
                if (length >= strlen(big[i]) && strncmp(host, big[i], strlen(big[i])) == 0)
                        return TRUE;
        return FALSE;
}

static gboolean
read_file(ImportList *list, Reader *reader, guint64 rank)
{
        ImportAccess access = {.kind = IMPORT_OPENED, .time_us = rank};
        guint64 inode, first, end;
        gsize length;
        const char *name = take_line(reader, &length);
        gboolean any = FALSE;

        if (!name || !take_number(reader, 8, &inode))
                return FALSE;
        access.path = import_list_path(list, name, length);
        if (access.path != G_MAXUINT32) {
                g_array_index(list->paths, ImportPath, access.path).inode = inode;
                import_list_add(list, &access);
        }
        access.kind = IMPORT_RESIDENT;
        for (;;) {
                if (!take_number(reader, 4, &first) || !take_number(reader, 4, &end))
                        return FALSE;
                if (first == 0 && end == 0)
                        break;
                if (end <= first)
                        return FALSE;
                any = TRUE;
                access.offset_bytes = first * PAGE_BYTES;
                access.length_bytes = (end - first) * PAGE_BYTES;
                if (access.path != G_MAXUINT32)
                        import_list_add(list, &access);
        }
        if (!any && access.path != G_MAXUINT32) {
                access.offset_bytes = 0;
                access.length_bytes = IMPORT_WHOLE;
                import_list_add(list, &access);
        }
        return TRUE;
}

gboolean
import_parse_systemd(ImportList *list, const char *data, gsize size, GError **error)
{
        static const char version[] = ";VERSION=";
        Reader reader = {.data = (const guint8 *)data, .left = size};
        gsize length = 0;
        const char *head = take_line(&reader, &length);
        const char *at = head ? g_strstr_len(head, (gssize)length, version) : NULL;
        guint64 kind, rank = 0;

        if (!at) {
                g_set_error_literal(error, COMMON_ERROR, COMMON_ERROR_INPUT,
                                    "not a pack of systemd-readahead");
                return FALSE;
        }
        at += strlen(version);
        if (head + length - at != 1 || *at != '2') {
                g_set_error_literal(error, COMMON_ERROR, COMMON_ERROR_INPUT,
                                    "a pack of systemd-readahead of another version than 2");
                return FALSE;
        }
        reader.big = host_is_big_endian(head, length);
        list->saw_reads = list->saw_maps = TRUE;
        if (take_number(&reader, 1, &kind) && (kind == 'S' || kind == 'R')) {
                while (reader.left > 0) {
                        if (!read_file(list, &reader, rank)) {
                                g_set_error(
                                        error, COMMON_ERROR, COMMON_ERROR_INPUT,
                                        "the pack is cut off or damaged after %" G_GUINT64_FORMAT
                                        " files",
                                        rank);
                                return FALSE;
                        }
                        rank++;
                }
                return TRUE;
        }
        g_set_error_literal(error, COMMON_ERROR, COMMON_ERROR_INPUT,
                            "the pack is cut off or damaged");
        return FALSE;
}
