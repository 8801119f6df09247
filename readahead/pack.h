// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The pack: a profile compiled for this machine and layout, made to be mapped and used in place by
 * a reader of libc and raw system calls only. This header and pack.c use libc only.
 *
 * Flat little-endian records. Layout on disk: header, metadata table, file-system table, file
 * table, range table, string table; a CRC-32C for the header and for each section; the metadata
 * section and the file-system table first, so that they are proven and issued before the rest is
 * read. Sections follow each other without a gap but zero bytes up to the next multiple of 8
 * (docs/pack-format.md): no bit of a pack is outside a checksum or a check. Every offset and length
 * is checked before use: a pack is hostile until proven whole.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define PACK_MAGIC "HSPACK\r\n" /* 8 bytes */
#define PACK_VERSION 1U

enum { PACK_META, PACK_FS, PACK_FILES, PACK_RANGES, PACK_STRINGS, PACK_SECTIONS };

struct pack_section {
        uint64_t offset; /* bytes from the start of the pack, multiple of 8 */
        uint64_t count;  /* records (PACK_STRINGS: bytes) */
        uint32_t crc32c; /* of the section's bytes */
        uint32_t reserved;
};

struct pack_header {
        char magic[8];
        uint32_t version;
        uint32_t header_bytes;      /* sizeof(struct pack_header) */
        uint64_t size_bytes;        /* of the whole pack */
        int64_t profile_created_us; /* of the profile it was made from */
        uint32_t page_bytes;
        uint32_t flags; /* PACK_RELOCATED ... */
        struct pack_section sections[PACK_SECTIONS];
        uint32_t reserved;
        uint32_t crc32c; /* of the header with this field zero */
};

#define PACK_RELOCATED (1U << 0)   /* ranges lie on the disk in this order */
#define PACK_BLOCK_ORDER (1U << 1) /* ranges are sorted by place inside bins of bytes */
#define PACK_ORDER_AUTO (1U << 2)  /* the order was the compiler's choice */
#define PACK_FLAGS (PACK_RELOCATED | PACK_BLOCK_ORDER | PACK_ORDER_AUTO)

struct pack_meta { /* in order of file system, then position; none overlaps the next */
        uint32_t fs;
        uint32_t length; /* bytes, at most PACK_RANGE_MAX */
        uint64_t offset; /* bytes on the file system's device */
};

struct pack_fs {
        uint8_t uuid[16];     /* binary; all zero = none, or nil */
        uint32_t type;        /* string offset; as in mountinfo: "ext4" */
        uint32_t block_bytes; /* 0 = unknown */
};

struct pack_file {
        uint64_t inode;
        uint64_t size;
        int64_t mtime_ns;
        uint32_t generation;
        uint32_t fs;
        uint32_t path;   /* string offset; NUL-ended, absolute inside the file system */
        uint32_t ranges; /* how many ranges name this file */
};

struct pack_range {      /* in replay order */
        uint64_t offset; /* bytes, page aligned */
        uint32_t length; /* bytes, whole pages, at most PACK_RANGE_MAX; ends at most at the
                            file's size rounded up to the page */
        uint32_t file;
};

#define PACK_RANGE_MAX (1U << 20)
#define PACK_SIZE_MAX (UINT64_C(1) << 30) /* of a whole pack; larger ones are refused unread */
#define PACK_PATH_MAX 65536U              /* bytes */

/* A pack proven whole: pointers into the mapping. */
struct pack {
        const struct pack_header *header;
        const struct pack_meta *meta;
        const struct pack_fs *fs;
        const struct pack_file *files;
        const struct pack_range *ranges;
        const char *strings;
        uint64_t n_meta, n_fs, n_files, n_ranges, n_strings;
};

/* Proves header, metadata and file-system sections (first), then the rest (second; every index,
 * string and length in it). Return 0, or -EBADMSG (damaged), -ENOTSUP (newer version), -ENOMEM,
 * with *ret_reason a constant text. `map` must be readable for `size` bytes and aligned to 8.
 * pack_open() leaves `files`, `ranges` and `strings` NULL; pack_prove_rest() sets them. */
int pack_open(const void *map, size_t size, struct pack *ret, const char **ret_reason);
int pack_prove_rest(struct pack *pack, size_t size, const char **ret_reason);

uint32_t pack_crc32c(uint32_t crc, const void *data, size_t length);
/* The same without the processor's instruction, for tests. */
uint32_t pack_crc32c_portable(uint32_t crc, const void *data, size_t length);
