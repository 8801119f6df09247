// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Proving a pack: see pack.h and docs/pack-format.md. Pure; libc only.
 *
 * Nothing read from the pack is used as an index, a length or an address before it was compared
 * with the size of the mapping. All sums are made so that they cannot wrap: counts are first
 * bounded by the size of the pack, offsets by INT64_MAX.
 */
#include "readahead/pack.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <nmmintrin.h>
#endif

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "packs are used in place: a big-endian reader must swap first");
_Static_assert(sizeof(struct pack_section) == 24, "layout");
_Static_assert(sizeof(struct pack_header) == 40 + 24 * PACK_SECTIONS + 8, "layout");
_Static_assert(sizeof(struct pack_meta) == 16, "layout");
_Static_assert(sizeof(struct pack_fs) == 24, "layout");
_Static_assert(sizeof(struct pack_file) == 40, "layout");
_Static_assert(sizeof(struct pack_range) == 16, "layout");

static const uint32_t record_bytes[PACK_SECTIONS] = {
        [PACK_META] = sizeof(struct pack_meta),
        [PACK_FS] = sizeof(struct pack_fs),
        [PACK_FILES] = sizeof(struct pack_file),
        [PACK_RANGES] = sizeof(struct pack_range),
        [PACK_STRINGS] = 1,
};

/* CRC-32C (Castagnoli, reflected polynomial 0x82f63b78), one table of 1 KiB made on first use: two
 * threads that make it at once write the same values. */
static uint32_t
crc32c_table(uint32_t crc, const unsigned char *p, size_t length)
{
        static uint32_t table[256];

        if (table[255] == 0)
                for (uint32_t i = 0; i < 256; i++) {
                        uint32_t c = i;

                        for (int bit = 0; bit < 8; bit++)
                                c = (c >> 1) ^ (0x82f63b78U & (0U - (c & 1)));
                        table[i] = c;
                }
        while (length-- > 0)
                crc = (crc >> 8) ^ table[(crc ^ *p++) & 0xff];
        return crc;
}

#if defined(__x86_64__)
static bool
have_sse42(void)
{
        unsigned int a, b, c, d;

        return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_2);
}

__attribute__((target("sse4.2"))) static uint32_t
crc32c_sse42(uint32_t crc, const unsigned char *p, size_t length)
{
        uint64_t wide = crc;

        for (; length >= 8; length -= 8, p += 8) {
                uint64_t word;

                memcpy(&word, p, sizeof word);
                wide = _mm_crc32_u64(wide, word);
        }
        crc = (uint32_t)wide;
        while (length-- > 0)
                crc = _mm_crc32_u8(crc, *p++);
        return crc;
}
#endif

uint32_t
pack_crc32c(uint32_t crc, const void *data, size_t length)
{
#if defined(__x86_64__)
        if (have_sse42())
                return ~crc32c_sse42(~crc, data, length);
#endif
        return ~crc32c_table(~crc, data, length);
}

uint32_t
pack_crc32c_portable(uint32_t crc, const void *data, size_t length)
{
        return ~crc32c_table(~crc, data, length);
}

static int
damaged(const char **ret_reason, const char *reason)
{
        *ret_reason = reason;
        return -EBADMSG;
}

static uint64_t
align8(uint64_t n)
{
        return (n + 7) & ~UINT64_C(7);
}

static uint64_t
section_bytes(const struct pack_header *header, int section)
{
        return header->sections[section].count * record_bytes[section];
}

/* Sections stand in the order of the enum, each at the next multiple of 8 after the one before. */
static int
prove_layout(const struct pack_header *header, const char **ret_reason)
{
        uint64_t end = sizeof *header;

        for (int i = 0; i < PACK_SECTIONS; i++) {
                const struct pack_section *section = &header->sections[i];

                if (section->reserved != 0 || section->offset != end ||
                    section->count > (header->size_bytes - end) / record_bytes[i])
                        return damaged(ret_reason, "a section lies outside the pack");
                end = align8(end + section_bytes(header, i));
                if (end > header->size_bytes)
                        return damaged(ret_reason, "a section lies outside the pack");
        }
        if (end != header->size_bytes)
                return damaged(ret_reason, "bytes that belong to no section");
        if (header->sections[PACK_META].count > UINT32_MAX ||
            header->sections[PACK_FS].count > UINT32_MAX ||
            header->sections[PACK_FILES].count > UINT32_MAX ||
            header->sections[PACK_RANGES].count > UINT32_MAX ||
            header->sections[PACK_STRINGS].count > UINT32_MAX)
                return damaged(ret_reason, "a table is too long");
        return 0;
}

/* The section's checksum, and zeros up to the next section. */
static int
prove_section(const struct pack_header *header, int section, const char **ret_reason)
{
        const unsigned char *start = (const unsigned char *)header;
        const struct pack_section *s = &header->sections[section];
        uint64_t bytes = section_bytes(header, section);

        if (pack_crc32c(0, start + s->offset, bytes) != s->crc32c)
                return damaged(ret_reason, "a checksum does not match");
        for (uint64_t i = s->offset + bytes; i < align8(s->offset + bytes); i++)
                if (start[i] != 0)
                        return damaged(ret_reason, "bytes that belong to no section");
        return 0;
}

static int
prove_header(const struct pack_header *header, size_t size, const char **ret_reason)
{
        struct pack_header copy;

        if (size < sizeof *header)
                return damaged(ret_reason, "too short");
        if (memcmp(header->magic, PACK_MAGIC, sizeof header->magic) != 0)
                return damaged(ret_reason, "not a pack");
        /* before the checksum: a newer header may be of another size */
        if (header->version > PACK_VERSION) {
                *ret_reason = "made by a newer version of headstart";
                return -ENOTSUP;
        }
        memcpy(&copy, header, sizeof copy);
        copy.crc32c = 0;
        if (header->crc32c != pack_crc32c(0, &copy, sizeof copy))
                return damaged(ret_reason, "the header's checksum does not match");
        if (header->version != PACK_VERSION || header->header_bytes != sizeof *header ||
            header->reserved != 0 || (header->flags & ~PACK_FLAGS) != 0)
                return damaged(ret_reason, "the header makes no sense");
        if (header->page_bytes < 4096 || header->page_bytes > PACK_RANGE_MAX ||
            (header->page_bytes & (header->page_bytes - 1)) != 0)
                return damaged(ret_reason, "the page size makes no sense");
        if (header->size_bytes != size || size > PACK_SIZE_MAX)
                return damaged(ret_reason, "cut off or too long");
        return 0;
}

static int
prove_meta(const struct pack *pack, const char **ret_reason)
{
        for (uint64_t i = 0; i < pack->n_meta; i++) {
                const struct pack_meta *m = &pack->meta[i];

                if (m->fs >= pack->n_fs)
                        return damaged(ret_reason, "metadata of an unknown file system");
                if (m->length == 0 || m->length > PACK_RANGE_MAX ||
                    m->offset > (uint64_t)INT64_MAX - m->length)
                        return damaged(ret_reason, "a metadata block lies nowhere");
                if (i > 0 && (m->fs < m[-1].fs ||
                              (m->fs == m[-1].fs && m->offset < m[-1].offset + m[-1].length)))
                        return damaged(ret_reason, "metadata blocks are not sorted");
        }
        for (uint64_t i = 0; i < pack->n_fs; i++) {
                uint32_t block = pack->fs[i].block_bytes;

                if ((block & (block - 1)) != 0 || (block != 0 && block < 512) ||
                    block > PACK_RANGE_MAX)
                        return damaged(ret_reason, "a block size makes no sense");
        }
        return 0;
}

int
pack_open(const void *map, size_t size, struct pack *ret, const char **ret_reason)
{
        const struct pack_header *header = map;
        const unsigned char *start = map;
        struct pack pack = {.header = header};
        const char *reason = "";
        int r;

        if (!ret_reason)
                ret_reason = &reason;
        if ((uintptr_t)map % 8 != 0)
                return damaged(ret_reason, "not aligned in memory");
        if ((r = prove_header(header, size, ret_reason)) < 0 ||
            (r = prove_layout(header, ret_reason)) < 0 ||
            (r = prove_section(header, PACK_META, ret_reason)) < 0 ||
            (r = prove_section(header, PACK_FS, ret_reason)) < 0)
                return r;
        pack.meta = (const void *)(start + header->sections[PACK_META].offset);
        pack.fs = (const void *)(start + header->sections[PACK_FS].offset);
        pack.n_meta = header->sections[PACK_META].count;
        pack.n_fs = header->sections[PACK_FS].count;
        pack.n_files = header->sections[PACK_FILES].count;
        pack.n_ranges = header->sections[PACK_RANGES].count;
        pack.n_strings = header->sections[PACK_STRINGS].count;
        if ((r = prove_meta(&pack, ret_reason)) < 0)
                return r;
        *ret = pack;
        return 0;
}

/* Absolute, no empty, "." or ".." part, no '/' at the end: a name that stays below where it is
 * looked up. The string is known to end. */
static bool
path_is_plain(const char *path)
{
        if (*path != '/')
                return false;
        while (*path) {
                const char *part = ++path;
                size_t length = strcspn(part, "/");

                if (length == 0 || (length == 1 && part[0] == '.') ||
                    (length == 2 && part[0] == '.' && part[1] == '.'))
                        return false;
                path = part + length;
        }
        return true;
}

static int
prove_strings(const struct pack *pack, const char **ret_reason)
{
        if (pack->n_strings == 0 ? (pack->n_fs > 0 || pack->n_files > 0)
                                 : pack->strings[pack->n_strings - 1] != '\0')
                return damaged(ret_reason, "a string does not end");
        for (uint64_t i = 0; i < pack->n_fs; i++)
                if (pack->fs[i].type >= pack->n_strings)
                        return damaged(ret_reason, "a string lies outside the pack");
        for (uint64_t i = 0; i < pack->n_files; i++) {
                const struct pack_file *file = &pack->files[i];

                if (file->path >= pack->n_strings)
                        return damaged(ret_reason, "a string lies outside the pack");
                if (strnlen(pack->strings + file->path, PACK_PATH_MAX + 1) > PACK_PATH_MAX ||
                    !path_is_plain(pack->strings + file->path))
                        return damaged(ret_reason, "a path is not absolute and plain");
                if (file->fs >= pack->n_fs)
                        return damaged(ret_reason, "a file of an unknown file system");
                if (file->size > (uint64_t)INT64_MAX - PACK_RANGE_MAX)
                        return damaged(ret_reason, "a file is too large");
        }
        return 0;
}

static int
prove_ranges(const struct pack *pack, const char **ret_reason)
{
        uint64_t page = pack->header->page_bytes;
        uint32_t *counted;
        int r = 0;

        if (pack->n_ranges == 0 && pack->n_files == 0)
                return 0;
        /* bounded by the size of the pack, which holds 40 bytes a file */
        counted = calloc(pack->n_files ? pack->n_files : 1, sizeof *counted);
        if (!counted) {
                *ret_reason = "out of memory";
                return -ENOMEM;
        }
        for (uint64_t i = 0; i < pack->n_ranges && r == 0; i++) {
                const struct pack_range *range = &pack->ranges[i];

                if (range->file >= pack->n_files)
                        r = damaged(ret_reason, "a range of an unknown file");
                else if (range->length == 0 || range->length > PACK_RANGE_MAX ||
                         range->length % page != 0 || range->offset % page != 0)
                        r = damaged(ret_reason, "a range is not made of pages");
                else if (range->offset > (uint64_t)INT64_MAX - range->length ||
                         range->offset + range->length >
                                 (pack->files[range->file].size + page - 1) / page * page)
                        r = damaged(ret_reason, "a range lies beyond its file");
                else
                        counted[range->file]++;
        }
        for (uint64_t i = 0; i < pack->n_files && r == 0; i++)
                if (counted[i] != pack->files[i].ranges)
                        r = damaged(ret_reason,
                                    "a file has another number of ranges than it claims");
        free(counted);
        return r;
}

int
pack_prove_rest(struct pack *pack, size_t size, const char **ret_reason)
{
        const struct pack_header *header = pack->header;
        const unsigned char *start = (const unsigned char *)header;
        struct pack whole = *pack;
        const char *reason = "";
        int r;

        if (!ret_reason)
                ret_reason = &reason;
        if (size != header->size_bytes)
                return damaged(ret_reason, "cut off or too long");
        whole.files = (const void *)(start + header->sections[PACK_FILES].offset);
        whole.ranges = (const void *)(start + header->sections[PACK_RANGES].offset);
        whole.strings = (const void *)(start + header->sections[PACK_STRINGS].offset);
        if ((r = prove_section(header, PACK_FILES, ret_reason)) < 0 ||
            (r = prove_section(header, PACK_RANGES, ret_reason)) < 0 ||
            (r = prove_section(header, PACK_STRINGS, ret_reason)) < 0 ||
            (r = prove_strings(&whole, ret_reason)) < 0 ||
            (r = prove_ranges(&whole, ret_reason)) < 0)
                return r;
        *pack = whole;
        return 0;
}
