// SPDX-License-Identifier: GPL-2.0-or-later
/* Program headers of an ELF file, 32 and 64 bits. Everything in them is untrusted. */
#include "measure/executable.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

#include "measure/readahead-sim.h"

#define HEAD_BYTES 8192
#define SEGMENTS_MAX 128

static void
add_segment(GArray **spans, guint64 offset, guint64 length, guint32 page_bytes)
{
        PageSpan span = {.first_page = offset / page_bytes};

        if (length == 0 || length > G_MAXINT64 || offset > G_MAXINT64)
                return;
        span.end_page = (offset + length - 1) / page_bytes + 1;
        if (*spans == NULL)
                *spans = g_array_new(FALSE, FALSE, sizeof(PageSpan));
        g_array_append_val(*spans, span);
}

GArray *
executable_spans_parse(const void *bytes, gsize length, guint32 page_bytes)
{
        const unsigned char *ident = bytes;
        const gboolean little = G_BYTE_ORDER == G_LITTLE_ENDIAN;
        guint64 table, size;
        guint count;
        GArray *spans = NULL;

        if (length < sizeof(Elf32_Ehdr) || memcmp(ident, ELFMAG, SELFMAG) != 0 ||
            ident[EI_DATA] != (little ? ELFDATA2LSB : ELFDATA2MSB))
                return NULL;
        if (ident[EI_CLASS] == ELFCLASS64 && length >= sizeof(Elf64_Ehdr)) {
                Elf64_Ehdr header;

                memcpy(&header, bytes, sizeof(header));
                table = header.e_phoff;
                count = header.e_phnum;
                size = header.e_phentsize;
                if (size < sizeof(Elf64_Phdr))
                        return NULL;
        } else if (ident[EI_CLASS] == ELFCLASS32) {
                Elf32_Ehdr header;

                memcpy(&header, bytes, sizeof(header));
                table = header.e_phoff;
                count = header.e_phnum;
                size = header.e_phentsize;
                if (size < sizeof(Elf32_Phdr))
                        return NULL;
        } else {
                return NULL;
        }
        for (guint i = 0; i < MIN(count, SEGMENTS_MAX); i++) {
                guint64 at = table + i * size;

                if (table > length || at > length || length - at < size)
                        break;
                if (ident[EI_CLASS] == ELFCLASS64) {
                        Elf64_Phdr segment;

                        memcpy(&segment, (const char *)bytes + at, sizeof(segment));
                        if (segment.p_type == PT_LOAD && segment.p_flags & PF_X)
                                add_segment(&spans, segment.p_offset, segment.p_filesz, page_bytes);
                } else {
                        Elf32_Phdr segment;

                        memcpy(&segment, (const char *)bytes + at, sizeof(segment));
                        if (segment.p_type == PT_LOAD && segment.p_flags & PF_X)
                                add_segment(&spans, segment.p_offset, segment.p_filesz, page_bytes);
                }
        }
        return spans;
}

GArray *
executable_spans(int fd, guint32 page_bytes)
{
        char head[HEAD_BYTES];
        ssize_t got = pread(fd, head, sizeof(head), 0);

        return got > 0 ? executable_spans_parse(head, (gsize)got, page_bytes) : NULL;
}
