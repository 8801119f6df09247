// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The pack: what is written is read back; whatever is damaged is refused and never crashes (run it
 * with SANITIZE=address,undefined too); the order the compiler chooses.
 *
 * The pack under test lies at the end of a mapping with an inaccessible page behind, so that one
 * byte read too far is a crash also without a sanitizer.
 */
#include <errno.h>
#include <glib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "readahead/compile.h"
#include "readahead/pack-write.h"
#include "readahead/pack.h"

typedef struct {
        guint8 *map, *data; /* data .. data + size ends where memory ends */
        gsize map_bytes, size;
} Fenced;

static Fenced
fenced_new(const void *data, gsize size)
{
        gsize page = (gsize)sysconf(_SC_PAGESIZE);
        Fenced f = {.size = size};
        gsize body = (size + page - 1) / page * page;

        f.map_bytes = body + page;
        f.map = mmap(NULL, f.map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        g_assert_true(f.map != MAP_FAILED);
        g_assert_cmpint(mprotect(f.map + body, page, PROT_NONE), ==, 0);
        f.data = f.map + body - size;
        memcpy(f.data, data, size);
        return f;
}

static void
fenced_free(Fenced *f)
{
        munmap(f->map, f->map_bytes);
}

/* 0 or the error; the whole proof as a replay makes it. */
static int
prove(const void *data, gsize size, const char **reason)
{
        struct pack pack;
        int r = pack_open(data, size, &pack, reason);

        return r < 0 ? r : pack_prove_rest(&pack, size, reason);
}

static PackBuilder *
sample_builder(void)
{
        PackBuilder *b = pack_builder_new(1234567, 4096);
        struct pack_fs fs[2] = {{.uuid = {1, 2, 3}, .block_bytes = 4096},
                                {.uuid = {9}, .block_bytes = 1024}};
        struct pack_file files[3] = {
                {.inode = 12, .size = 3 * PACK_RANGE_MAX + 5, .mtime_ns = -7, .fs = 0},
                {.inode = 13, .size = 0, .generation = 5, .fs = 1},
                {.inode = UINT64_MAX, .size = 10000, .fs = 1},
        };
        struct pack_meta meta[5] = {{1, 1024, 5120},
                                    {0, 4096, 40960},
                                    {0, 4096, 8192},
                                    {0, 4096, 12288},
                                    {0, 4096, 8192}};

        for (guint i = 0; i < 2; i++) {
                fs[i].type = pack_builder_string(b, "ext4");
                g_array_append_val(b->fs, fs[i]);
        }
        files[0].path = pack_builder_string(b, "/usr/lib/a b\nc\xff");
        files[1].path = pack_builder_string(b, "/empty");
        files[2].path = pack_builder_string(b, "/..a/.b./c");
        g_array_append_vals(b->files, files, 3);
        g_array_append_vals(b->meta, meta, 5);
        pack_builder_add_range(b, 2, 0, 8192);
        pack_builder_add_range(b, 0, 0, 3 * PACK_RANGE_MAX + 4096);
        pack_builder_add_range(b, 2, 8192, 4096);
        return b;
}

static Fenced
sample_pack(guint64 gap)
{
        g_autoptr(PackBuilder) b = sample_builder();
        g_autoptr(GError) error = NULL;
        g_autoptr(GBytes) bytes = pack_builder_finish(b, gap, &error);

        g_assert_no_error(error);
        return fenced_new(g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes));
}

static void
test_crc(void)
{
        guint8 data[300];

        /* RFC 3720, B.4 */
        g_assert_cmphex(pack_crc32c(0, "123456789", 9), ==, 0xe3069283);
        memset(data, 0, 32);
        g_assert_cmphex(pack_crc32c(0, data, 32), ==, 0x8a9136aa);
        for (guint i = 0; i < sizeof data; i++)
                data[i] = (guint8)(i * 7 + 3);
        for (guint from = 0; from < 9; from++)
                for (guint length = 0; from + length <= sizeof data; length++)
                        g_assert_cmphex(pack_crc32c(0, data + from, length), ==,
                                        pack_crc32c_portable(0, data + from, length));
        g_assert_cmphex(pack_crc32c(pack_crc32c(0, data, 100), data + 100, 200), ==,
                        pack_crc32c(0, data, 300));
}

static void
test_round_trip(void)
{
        Fenced f = sample_pack(0);
        const char *reason = NULL;
        struct pack pack;

        g_assert_cmpint(pack_open(f.data, f.size, &pack, &reason), ==, 0);
        g_assert_null(pack.files);
        g_assert_cmpint(pack_prove_rest(&pack, f.size, &reason), ==, 0);
        g_assert_cmpint(pack.header->profile_created_us, ==, 1234567);
        /* sorted, the double one gone, neighbours joined */
        g_assert_cmpuint(pack.n_meta, ==, 3);
        g_assert_cmpuint(pack.meta[0].offset, ==, 8192);
        g_assert_cmpuint(pack.meta[0].length, ==, 8192);
        g_assert_cmpuint(pack.meta[1].offset, ==, 40960);
        g_assert_cmpuint(pack.meta[2].fs, ==, 1);
        g_assert_cmpuint(pack.n_fs, ==, 2);
        g_assert_cmpstr(pack.strings + pack.fs[1].type, ==, "ext4");
        g_assert_cmpuint(pack.n_files, ==, 3);
        g_assert_cmpstr(pack.strings + pack.files[0].path, ==, "/usr/lib/a b\nc\xff");
        g_assert_cmpuint(pack.files[0].ranges, ==, 4);
        g_assert_cmpuint(pack.files[1].ranges, ==, 0);
        g_assert_cmpuint(pack.files[2].ranges, ==, 2);
        g_assert_cmpuint(pack.n_ranges, ==, 6);
        g_assert_cmpuint(pack.ranges[4].offset, ==, 3 * PACK_RANGE_MAX);
        g_assert_cmpuint(pack.ranges[4].length, ==, 4096);
        fenced_free(&f);

        f = sample_pack(32768);
        g_assert_cmpint(pack_open(f.data, f.size, &pack, &reason), ==, 0);
        g_assert_cmpuint(pack.n_meta, ==, 2);
        g_assert_cmpuint(pack.meta[0].length, ==, 40960 + 4096 - 8192);
        fenced_free(&f);
}

static void
test_empty(void)
{
        g_autoptr(PackBuilder) b = pack_builder_new(1, 4096);
        g_autoptr(GError) error = NULL;
        g_autoptr(GBytes) bytes = pack_builder_finish(b, 0, &error);

        g_assert_no_error(error);
        g_assert_cmpint(prove(g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes), NULL), ==, 0);
}

/* Every single bit of a pack is covered by a checksum or a check. */
static void
test_bit_flips(void)
{
        Fenced f = sample_pack(0);

        for (gsize i = 0; i < f.size; i++)
                for (guint bit = 0; bit < 8; bit++) {
                        const char *reason = NULL;
                        int r;

                        f.data[i] ^= (guint8)(1U << bit);
                        r = prove(f.data, f.size, &reason);
                        if (r != -EBADMSG && r != -ENOTSUP)
                                g_error("byte %zu bit %u: %d", i, bit, r);
                        g_assert_nonnull(reason);
                        f.data[i] ^= (guint8)(1U << bit);
                }
        g_assert_cmpint(prove(f.data, f.size, NULL), ==, 0);
        fenced_free(&f);
}

static void
test_truncated(void)
{
        Fenced f = sample_pack(0);

        for (gsize size = 0; size < f.size; size++) {
                Fenced cut = fenced_new(f.data, size);
                const char *reason = NULL;

                /* alignment is the caller's affair: give it, at the price of the fence being bytes
                 * off */
                if ((gsize)cut.data % 8 != 0) {
                        memmove(cut.data - (gsize)cut.data % 8, f.data, size);
                        cut.data -= (gsize)cut.data % 8;
                }
                g_assert_cmpint(prove(cut.data, size, &reason), ==, -EBADMSG);
                g_assert_nonnull(reason);
                fenced_free(&cut);
        }
        /* and one that grew */
        {
                g_autofree guint8 *longer = g_malloc0(f.size + 8);

                memcpy(longer, f.data, f.size);
                g_assert_cmpint(prove(longer, f.size + 8, NULL), ==, -EBADMSG);
        }
        fenced_free(&f);
}

/* Makes all checksums right again, as an attacker would. */
static void
seal(guint8 *data, gsize size)
{
        static const gsize record[PACK_SECTIONS] = {
                sizeof(struct pack_meta), sizeof(struct pack_fs), sizeof(struct pack_file),
                sizeof(struct pack_range), 1};
        struct pack_header *h = (void *)data;

        for (guint i = 0; i < PACK_SECTIONS; i++) {
                struct pack_section *s = &h->sections[i];

                if (s->offset <= size && s->count <= (size - s->offset) / record[i])
                        s->crc32c = pack_crc32c(0, data + s->offset, s->count * record[i]);
        }
        h->crc32c = 0;
        h->crc32c = pack_crc32c(0, h, sizeof *h);
}

/* Every 8, 4 and 2 bytes wide field, whatever it means, set to every nasty value, with right
 * checksums: refused or accepted, but never out of bounds. What is accepted is walked as the engine
 * does. */
static void
test_hostile_fields(void)
{
        static const guint64 values[] = {0,
                                         1,
                                         7,
                                         8,
                                         0x7f,
                                         0xff,
                                         0x1000,
                                         0xffff,
                                         0x10000,
                                         0x100000,
                                         0x100001,
                                         0x7fffffff,
                                         0x80000000,
                                         0xffffffff,
                                         0x100000000,
                                         0x7fffffffffffffff,
                                         0x8000000000000000,
                                         0xfffffffffffff000,
                                         0xffffffffffffffff};
        Fenced f = sample_pack(0), copy = fenced_new(f.data, f.size);
        guint accepted = 0, refused = 0;

        for (gsize at = 0; at + 4 <= f.size; at += 4)
                for (guint v = 0; v < G_N_ELEMENTS(values); v++)
                        for (gsize width = 4; width <= 8; width += 4) {
                                const char *reason = NULL;
                                struct pack pack;
                                guint64 sum = 0;

                                if (at + width > f.size)
                                        continue;
                                memcpy(copy.data, f.data, f.size);
                                memcpy(copy.data + at, &values[v], width);
                                seal(copy.data, f.size);
                                if (pack_open(copy.data, f.size, &pack, &reason) < 0 ||
                                    pack_prove_rest(&pack, f.size, &reason) < 0) {
                                        refused++;
                                        g_assert_nonnull(reason);
                                        continue;
                                }
                                accepted++;
                                for (guint64 i = 0; i < pack.n_meta; i++)
                                        sum += pack.fs[pack.meta[i].fs].block_bytes;
                                for (guint64 i = 0; i < pack.n_ranges; i++) {
                                        const struct pack_file *file =
                                                &pack.files[pack.ranges[i].file];

                                        g_assert_cmpuint(pack.ranges[i].length, <=, PACK_RANGE_MAX);
                                        sum += strlen(pack.strings + file->path);
                                }
                                for (guint64 i = 0; i < pack.n_fs; i++)
                                        sum += strlen(pack.strings + pack.fs[i].type);
                                g_assert_cmpuint(sum, <, 1U << 24);
                        }
        g_test_message("%u accepted, %u refused", accepted, refused);
        g_assert_cmpuint(accepted, >, 0);
        g_assert_cmpuint(refused, >, accepted);
        fenced_free(&copy);
        fenced_free(&f);
}

static void
test_newer_version(void)
{
        Fenced f = sample_pack(0);
        struct pack_header *h = (void *)f.data;
        const char *reason = NULL;

        h->version = PACK_VERSION + 1;
        h->header_bytes += 64;
        /* the checksum of a newer header is not ours to know */
        g_assert_cmpint(prove(f.data, f.size, &reason), ==, -ENOTSUP);
        g_assert_cmpstr(reason, ==, "made by a newer version of headstart");
        h->version = 0;
        seal(f.data, f.size);
        g_assert_cmpint(prove(f.data, f.size, &reason), ==, -EBADMSG);
        fenced_free(&f);
}

typedef void (*Spoil)(PackBuilder *b);

#define FILE_AT(i) (&g_array_index(b->files, struct pack_file, (i)))
#define RANGE_AT(i) (&g_array_index(b->ranges, struct pack_range, (i)))
#define META_AT(i) (&g_array_index(b->meta, struct pack_meta, (i)))

static void
spoil_relative(PackBuilder *b)
{
        FILE_AT(0)->path = pack_builder_string(b, "usr/x");
}
static void
spoil_dotdot(PackBuilder *b)
{
        FILE_AT(0)->path = pack_builder_string(b, "/usr/../x");
}
static void
spoil_dotdot_end(PackBuilder *b)
{
        FILE_AT(0)->path = pack_builder_string(b, "/usr/..");
}
static void
spoil_dot(PackBuilder *b)
{
        FILE_AT(0)->path = pack_builder_string(b, "/./x");
}
static void
spoil_double(PackBuilder *b)
{
        FILE_AT(0)->path = pack_builder_string(b, "/usr//x");
}
static void
spoil_slash_end(PackBuilder *b)
{
        FILE_AT(0)->path = pack_builder_string(b, "/usr/");
}
static void
spoil_root(PackBuilder *b)
{
        FILE_AT(0)->path = pack_builder_string(b, "/");
}
static void
spoil_string(PackBuilder *b)
{
        FILE_AT(0)->path = (guint32)b->strings->len;
}
static void
spoil_open_end(PackBuilder *b)
{
        g_string_append_c(b->strings, 'x');
}
static void
spoil_file_fs(PackBuilder *b)
{
        FILE_AT(2)->fs = 2;
}
static void
spoil_size(PackBuilder *b)
{
        FILE_AT(1)->size = G_MAXUINT64;
}
static void
spoil_file(PackBuilder *b)
{
        RANGE_AT(0)->file = 3;
}
static void
spoil_length(PackBuilder *b)
{
        RANGE_AT(0)->length = PACK_RANGE_MAX + 4096;
}
static void
spoil_no_length(PackBuilder *b)
{
        RANGE_AT(0)->length = 0;
}
static void
spoil_part_page(PackBuilder *b)
{
        RANGE_AT(0)->length = 4095;
}
static void
spoil_alignment(PackBuilder *b)
{
        RANGE_AT(0)->offset = 512;
}
static void
spoil_beyond(PackBuilder *b)
{
        RANGE_AT(5)->offset = 12288;
}
static void
spoil_2_63(PackBuilder *b)
{
        FILE_AT(2)->size = (guint64)G_MAXINT64 - PACK_RANGE_MAX;
        RANGE_AT(0)->offset = (guint64)G_MAXINT64 + 1 - 4096;
}
static void
spoil_meta_fs(PackBuilder *b)
{
        META_AT(0)->fs = 7;
}
static void
spoil_meta_length(PackBuilder *b)
{
        META_AT(0)->length = 0;
}
static void
spoil_meta_offset(PackBuilder *b)
{
        META_AT(0)->offset = (guint64)G_MAXINT64;
}
static void
spoil_block(PackBuilder *b)
{
        g_array_index(b->fs, struct pack_fs, 0).block_bytes = 3000;
}
static void
spoil_type(PackBuilder *b)
{
        g_array_index(b->fs, struct pack_fs, 0).type = 1 << 20;
}
static void
spoil_page(PackBuilder *b)
{
        b->page_bytes = 4097;
}
static void
spoil_small_page(PackBuilder *b)
{
        b->page_bytes = 0;
}
static void
spoil_flags(PackBuilder *b)
{
        b->flags = 1U << 31;
}

/* What a compiler with a fault would write is refused before it is on disk. */
static void
test_records(void)
{
        static const Spoil spoils[] = {
                spoil_relative,    spoil_dotdot,    spoil_dotdot_end, spoil_dot,
                spoil_double,      spoil_slash_end, spoil_root,       spoil_string,
                spoil_open_end,    spoil_file_fs,   spoil_size,       spoil_file,
                spoil_length,      spoil_no_length, spoil_part_page,  spoil_alignment,
                spoil_beyond,      spoil_2_63,      spoil_meta_fs,    spoil_meta_length,
                spoil_meta_offset, spoil_block,     spoil_type,       spoil_page,
                spoil_small_page,  spoil_flags,
        };

        for (guint i = 0; i < G_N_ELEMENTS(spoils); i++) {
                g_autoptr(PackBuilder) b = sample_builder();
                g_autoptr(GError) error = NULL;

                spoils[i](b);
                if (pack_builder_finish(b, 0, &error))
                        g_error("spoiled pack %u was accepted", i);
                g_assert_nonnull(error);
        }
}

static void
test_long_path(void)
{
        for (guint length = PACK_PATH_MAX; length <= PACK_PATH_MAX + 1; length++) {
                g_autoptr(PackBuilder) b = sample_builder();
                g_autoptr(GString) path = g_string_new(NULL);
                g_autoptr(GBytes) bytes = NULL;

                while (path->len + 250 < length)
                        g_string_append_printf(path, "/%0249u", 7U);
                g_string_append_c(path, '/');
                while (path->len < length)
                        g_string_append_c(path, 'x');
                FILE_AT(1)->path = pack_builder_string(b, path->str);
                bytes = pack_builder_finish(b, 0, NULL);
                g_assert_true((bytes != NULL) == (length <= PACK_PATH_MAX));
        }
}

/* ---- order ---- */

static GArray *
pieces_new(const guint64 *places, guint n)
{
        GArray *pieces = g_array_new(FALSE, TRUE, sizeof(CompilePiece));

        for (guint i = 0; i < n; i++) {
                CompilePiece p = {.file = i,
                                  .length_bytes = 65536,
                                  .physical_bytes = places[i] == COMPILE_NOWHERE
                                                            ? COMPILE_NOWHERE
                                                            : places[i] * 65536};

                g_array_append_val(pieces, p);
        }
        return pieces;
}

static void
assert_files(const GArray *pieces, const guint *files)
{
        for (guint i = 0; i < pieces->len; i++)
                g_assert_cmpuint(g_array_index(pieces, CompilePiece, i).file, ==, files[i]);
}

static void
test_order(void)
{
        const guint64 scattered[] = {50, 10, 90, 11, 51, COMPILE_NOWHERE, 0, 12};
        const guint64 laid_out[] = {100, 101, 102, 104, 105, 107};
        g_autoptr(GArray) a = pieces_new(scattered, 8);
        g_autoptr(GArray) b = pieces_new(scattered, 8);
        g_autoptr(GArray) c = pieces_new(laid_out, 6);

        g_assert_cmpuint(compile_count_runs(a), ==, 7);
        compile_sort_bins(a, 0);
        /* the one without a place stays behind the one at 51 */
        assert_files(a, (const guint[]){6, 1, 3, 7, 0, 4, 5, 2});
        g_assert_cmpuint(compile_count_runs(a), ==, 4);
        compile_sort_bins(b, 4 * 65536);
        assert_files(b, (const guint[]){1, 3, 0, 2, 6, 7, 4, 5});
        /* a gap of one piece is read over */
        g_assert_cmpuint(compile_count_runs(c), ==, 1);
}

int
main(int argc, char **argv)
{
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/pack/crc32c", test_crc);
        g_test_add_func("/pack/round-trip", test_round_trip);
        g_test_add_func("/pack/empty", test_empty);
        g_test_add_func("/pack/bit-flips", test_bit_flips);
        g_test_add_func("/pack/truncated", test_truncated);
        g_test_add_func("/pack/hostile-fields", test_hostile_fields);
        g_test_add_func("/pack/newer-version", test_newer_version);
        g_test_add_func("/pack/records", test_records);
        g_test_add_func("/pack/long-path", test_long_path);
        g_test_add_func("/compile/order", test_order);
        return g_test_run();
}
