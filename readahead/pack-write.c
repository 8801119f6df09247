// SPDX-License-Identifier: GPL-2.0-or-later
/* Making a pack: see pack-write.h. */
#include "readahead/pack-write.h"

#include <string.h>

#include "common/error.h"

PackBuilder *
pack_builder_new(gint64 profile_created_us, guint32 page_bytes)
{
        PackBuilder *builder = g_new0(PackBuilder, 1);

        builder->profile_created_us = profile_created_us;
        builder->page_bytes = page_bytes;
        builder->meta = g_array_new(FALSE, TRUE, sizeof(struct pack_meta));
        builder->fs = g_array_new(FALSE, TRUE, sizeof(struct pack_fs));
        builder->files = g_array_new(FALSE, TRUE, sizeof(struct pack_file));
        builder->ranges = g_array_new(FALSE, TRUE, sizeof(struct pack_range));
        builder->strings = g_string_new(NULL);
        builder->string_offsets = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        return builder;
}

void
pack_builder_free(PackBuilder *builder)
{
        if (!builder)
                return;
        g_array_unref(builder->meta);
        g_array_unref(builder->fs);
        g_array_unref(builder->files);
        g_array_unref(builder->ranges);
        g_string_free(builder->strings, TRUE);
        g_hash_table_unref(builder->string_offsets);
        g_free(builder);
}

guint32
pack_builder_string(PackBuilder *builder, const char *string)
{
        gpointer known;
        gsize offset;

        if (g_hash_table_lookup_extended(builder->string_offsets, string, NULL, &known))
                return GPOINTER_TO_UINT(known);
        offset = builder->strings->len;
        /* with the NUL */
        g_string_append_len(builder->strings, string, strlen(string) + 1);
        g_hash_table_insert(builder->string_offsets, g_strdup(string),
                            GUINT_TO_POINTER((guint)offset));
        return (guint32)offset;
}

void
pack_builder_add_range(PackBuilder *builder, guint32 file, guint64 offset, guint64 length)
{
        while (length > 0) {
                struct pack_range range = {
                        .offset = offset,
                        .length = (guint32)MIN(length, PACK_RANGE_MAX),
                        .file = file,
                };

                g_array_append_val(builder->ranges, range);
                offset += range.length;
                length -= range.length;
        }
}

static gint
compare_meta(gconstpointer a, gconstpointer b)
{
        const struct pack_meta *x = a, *y = b;

        if (x->fs != y->fs)
                return x->fs < y->fs ? -1 : 1;
        if (x->offset != y->offset)
                return x->offset < y->offset ? -1 : 1;
        return 0;
}

/* In place; a joined record stays within PACK_RANGE_MAX. */
static void
join_meta(GArray *meta, guint64 gap_bytes)
{
        struct pack_meta *m = (struct pack_meta *)(void *)meta->data;
        guint kept = 0;

        g_array_sort(meta, compare_meta);
        for (guint i = 0; i < meta->len; i++) {
                struct pack_meta *last = kept > 0 ? &m[kept - 1] : NULL;
                guint64 end = m[i].offset + m[i].length;

                if (last && last->fs == m[i].fs) {
                        guint64 last_end = last->offset + last->length;

                        if (end <= last_end)
                                continue;
                        if (m[i].offset <= last_end + gap_bytes &&
                            end - last->offset <= PACK_RANGE_MAX) {
                                last->length = (guint32)(end - last->offset);
                                continue;
                        }
                        if (m[i].offset < last_end) {
                                m[i].length = (guint32)(end - last_end);
                                m[i].offset = last_end;
                        }
                }
                m[kept++] = m[i];
        }
        g_array_set_size(meta, kept);
}

static void
append_section(GByteArray *out, struct pack_section *section, const void *data, gsize count,
               gsize record)
{
        static const guint8 zeros[8];

        section->offset = out->len;
        section->count = count;
        section->crc32c = pack_crc32c(0, data, count * record);
        g_byte_array_append(out, data, (guint)(count * record));
        if (out->len % 8 != 0)
                g_byte_array_append(out, zeros, 8 - out->len % 8);
}

GBytes *
pack_builder_finish(PackBuilder *builder, guint64 gap_bytes, GError **error)
{
        g_autoptr(GByteArray) out = g_byte_array_new();
        struct pack_header header = {
                .version = PACK_VERSION,
                .header_bytes = sizeof header,
                .profile_created_us = builder->profile_created_us,
                .page_bytes = builder->page_bytes,
                .flags = builder->flags,
        };
        struct pack_file *files = (struct pack_file *)(void *)builder->files->data;
        const char *reason = "too large";
        struct pack pack;
        guint64 estimate;
        int r = -1;

        join_meta(builder->meta, gap_bytes);
        for (guint i = 0; i < builder->files->len; i++)
                files[i].ranges = 0;
        for (guint i = 0; i < builder->ranges->len; i++) {
                guint32 file = g_array_index(builder->ranges, struct pack_range, i).file;

                if (file < builder->files->len)
                        files[file].ranges++;
        }

        memcpy(header.magic, PACK_MAGIC, sizeof header.magic);
        estimate = (guint64)builder->meta->len * sizeof(struct pack_meta) +
                   (guint64)builder->files->len * sizeof(struct pack_file) +
                   (guint64)builder->ranges->len * sizeof(struct pack_range) +
                   builder->strings->len;
        if (estimate < PACK_SIZE_MAX / 2) {
                g_byte_array_append(out, (const guint8 *)&header, sizeof header);
                append_section(out, &header.sections[PACK_META], builder->meta->data,
                               builder->meta->len, sizeof(struct pack_meta));
                append_section(out, &header.sections[PACK_FS], builder->fs->data, builder->fs->len,
                               sizeof(struct pack_fs));
                append_section(out, &header.sections[PACK_FILES], builder->files->data,
                               builder->files->len, sizeof(struct pack_file));
                append_section(out, &header.sections[PACK_RANGES], builder->ranges->data,
                               builder->ranges->len, sizeof(struct pack_range));
                append_section(out, &header.sections[PACK_STRINGS], builder->strings->str,
                               builder->strings->len, 1);
                header.size_bytes = out->len;
                header.crc32c = pack_crc32c(0, &header, sizeof header);
                memcpy(out->data, &header, sizeof header);
                r = pack_open(out->data, out->len, &pack, &reason);
                if (r == 0)
                        r = pack_prove_rest(&pack, out->len, &reason);
        }
        if (r != 0) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_INPUT,
                            "the profile makes no valid pack: %s", reason);
                return NULL;
        }
        return g_byte_array_free_to_bytes(g_steal_pointer(&out));
}
