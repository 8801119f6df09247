// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The replay's pack. Checksums and sizes are made right first, so that what lies behind them is
 * reached; then every entry of a pack that was proven is used as a replay uses it.
 */
#include "tests/fuzz/fuzz.h"

#include "readahead/pack.h"

static const size_t record_bytes[PACK_SECTIONS] = {
        sizeof(struct pack_meta),
        sizeof(struct pack_fs),
        sizeof(struct pack_file),
        sizeof(struct pack_range),
        1,
};

static void
make_right(uint8_t *data, size_t size)
{
        struct pack_header *header = (struct pack_header *)(void *)data;

        header->size_bytes = size;
        for (int i = 0; i < PACK_SECTIONS; i++) {
                struct pack_section *s = &header->sections[i];

                if (s->offset <= size && s->count <= (size - s->offset) / record_bytes[i])
                        s->crc32c = pack_crc32c(0, data + s->offset, s->count * record_bytes[i]);
        }
        header->crc32c = 0;
        header->crc32c = pack_crc32c(0, header, sizeof *header);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        g_autofree uint8_t *copy = g_malloc(size ? size : 1);
        const char *reason = NULL;
        struct pack pack;
        volatile size_t used = 0;

        memcpy(copy, data, size);
        if (size >= sizeof(struct pack_header) && data[sizeof(struct pack_header) - 1] % 8 != 7)
                make_right(copy, size);
        if (pack_open(copy, size, &pack, &reason) < 0 ||
            pack_prove_rest(&pack, size, &reason) < 0) {
                g_assert(reason);
                return 0;
        }
        for (uint64_t i = 0; i < pack.n_meta; i++)
                used += pack.fs[pack.meta[i].fs].block_bytes;
        for (uint64_t i = 0; i < pack.n_fs; i++)
                used += strlen(pack.strings + pack.fs[i].type);
        for (uint64_t i = 0; i < pack.n_ranges; i++) {
                const struct pack_file *file = &pack.files[pack.ranges[i].file];

                used += strlen(pack.strings + file->path) + pack.fs[file->fs].block_bytes;
        }
        return 0;
}
