// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ureadahead's packs, version 2, as written since 2009: C structures of the machine that wrote
 * them. Both the 64-bit layout and that of 32-bit x86 (with 64-bit file offsets) are read; the one
 * whose counts add up to the size of the file exactly is the one.
 *
 *     "ura" 2, flags (1: rotational), 3 bytes of zero
 *     device, time of creation
 *     number of block groups, each an int
 *     number of paths, each {int group; ino_t inode; char path[256]}
 *     number of blocks, each {size_t path; off_t offset, length, physical}
 *
 * Paths longer than 255 bytes were cut or left out by the writer. On a hard disk the blocks were
 * sorted by position, so the order of the paths (first open) is the order of use that is left; on
 * an SSD both are in order of access.
 */
#include "profiler/import.h"

#include <string.h>

#include "common/error.h"

#define PATH_BYTES 256

typedef struct {
        guint word;              /* of size_t and time_t */
        guint path_bytes;        /* of a path record */
        guint inode_at, path_at; /* in it */
        guint block_bytes;
} Layout;

static const Layout layouts[] = {
        {.word = 8, .path_bytes = 272, .inode_at = 8, .path_at = 16, .block_bytes = 32},
        {.word = 4, .path_bytes = 268, .inode_at = 4, .path_at = 12, .block_bytes = 28},
};

typedef struct {
        const guint8 *data;
        gsize size, at;
} Reader;

static guint64
get(const guint8 *data, guint bytes)
{
        guint64 value = 0;

        for (guint i = bytes; i > 0; i--)
                value = value << 8 | data[i - 1];
        return value;
}

static gboolean
take_word(Reader *reader, guint bytes, guint64 *ret)
{
        if (reader->size - reader->at < bytes)
                return FALSE;
        *ret = get(reader->data + reader->at, bytes);
        reader->at += bytes;
        return TRUE;
}

static const guint8 *
take_table(Reader *reader, guint word, guint record, guint64 *ret_count)
{
        const guint8 *table;

        if (!take_word(reader, word, ret_count) ||
            *ret_count > (reader->size - reader->at) / record)
                return NULL;
        table = reader->data + reader->at;
        reader->at += *ret_count * record;
        return table;
}

static gboolean
read_pack(ImportList *list, const Layout *layout, const char *data, gsize size)
{
        Reader reader = {.data = (const guint8 *)data, .size = size, .at = 8 + 8};
        guint64 created, n_groups, n_paths, n_blocks;
        const guint8 *paths, *blocks;
        g_autofree guint32 *index = NULL;

        if (!take_word(&reader, layout->word, &created) ||
            !take_table(&reader, layout->word, 4, &n_groups) ||
            !(paths = take_table(&reader, layout->word, layout->path_bytes, &n_paths)) ||
            !(blocks = take_table(&reader, layout->word, layout->block_bytes, &n_blocks)) ||
            reader.at != size || n_paths == 0)
                return FALSE;
        /* names are absolute: the other layout does not fit by accident */
        for (guint64 i = 0; i < n_paths; i++)
                if (paths[i * layout->path_bytes + layout->path_at] != '/')
                        return FALSE;
        index = g_new(guint32, MAX(n_paths, 1));
        for (guint64 i = 0; i < n_paths; i++) {
                const guint8 *record = paths + i * layout->path_bytes;
                const char *name = (const char *)record + layout->path_at;
                ImportAccess access = {.kind = IMPORT_OPENED, .time_us = i};

                index[i] = import_list_path(list, name, strnlen(name, PATH_BYTES));
                access.path = index[i];
                if (index[i] == G_MAXUINT32)
                        continue;
                g_array_index(list->paths, ImportPath, index[i]).inode =
                        get(record + layout->inode_at, 8);
                import_list_add(list, &access);
        }
        for (guint64 i = 0; i < n_blocks; i++) {
                const guint8 *record = blocks + i * layout->block_bytes;
                guint64 path = get(record, layout->word);
                ImportAccess access = {
                        .kind = IMPORT_RESIDENT,
                        .offset_bytes = get(record + layout->word, 8),
                        .length_bytes = get(record + layout->word + 8, 8),
                        .time_us = path,
                };

                if (path >= n_paths) {
                        import_list_problem(list, "a block of a path that is not there", NULL, 0);
                } else if (index[path] != G_MAXUINT32) {
                        access.path = index[path];
                        import_list_add(list, &access);
                }
        }
        list->saw_reads = list->saw_maps = n_blocks > 0;
        return TRUE;
}

gboolean
import_parse_ureadahead(ImportList *list, const char *data, gsize size, GError **error)
{
        if (size < 8 || memcmp(data, "ura", 3) != 0) {
                g_set_error_literal(error, COMMON_ERROR, COMMON_ERROR_INPUT,
                                    "not a pack of ureadahead");
                return FALSE;
        }
        if (data[3] != 2) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_INPUT,
                            "a pack of ureadahead of version %u; version 2 is known",
                            (guint8)data[3]);
                return FALSE;
        }
        for (guint i = 0; i < G_N_ELEMENTS(layouts); i++)
                if (size >= 16 && read_pack(list, &layouts[i], data, size))
                        return TRUE;
        g_set_error_literal(error, COMMON_ERROR, COMMON_ERROR_INPUT,
                            "the pack is cut off or damaged: its counts do not add up to its size");
        return FALSE;
}
