// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Situations on a layout made by hand: their order, their ends, the relocated layout, places beyond
 * 2^31 blocks, and ELF program headers that lie.
 */
#include <elf.h>
#include <string.h>

#include "measure/estimate.h"
#include "measure/executable.h"

#define KIB G_GUINT64_CONSTANT(1024)
#define MIB (1024 * KIB)
#define FILES 120
#define FILE_BYTES (256 * KIB)

typedef struct {
        Profile *profile;
        Layout *layout;
} Fixture;

static guint64
scattered_place(guint32 i, guint64 base)
{
        return base + (guint64)(i * 7919 % FILES) * 40 * MIB;
}

/* Files of which every second 32 KiB are used, at scattered places from `base` on. */
static void
fixture_make(Fixture *fixture, const char *model, guint64 base)
{
        DiskModel *disk = disk_model_new(model, NULL);
        guint64 now_us = 0;

        disk->capacity_bytes = MAX(disk->capacity_bytes, base * 2);
        fixture->profile = profile_new("x");
        fixture->profile->page_bytes = 4096;
        profile_add_fs(fixture->profile, "u", "ext4", 4096);
        fixture->layout = layout_new(4096);
        layout_add_disk(fixture->layout, disk, TRUE, 128 * KIB);
        for (guint32 i = 0; i < FILES; i++) {
                g_autofree gchar *path = g_strdup_printf("/f%u", i);
                ProfileFile file = {.size_bytes = FILE_BYTES,
                                    .path = path,
                                    .inode = i + 12,
                                    .first_use_us = now_us};
                LayoutFile place = {.size_bytes = FILE_BYTES, .map = g_new0(ExtentMap, 1)};
                Extent extent = {.physical_bytes = scattered_place(i, base),
                                 .length_bytes = FILE_BYTES};
                LayoutMeta meta = {.length_bytes = 4096,
                                   .first_use_us = now_us,
                                   .position_bytes = base + (guint64)i * 256 * 4096,
                                   .kind = PROFILE_META_INODE};

                profile_add_file(fixture->profile, &file);
                place.map->extents = g_array_new(FALSE, FALSE, sizeof(Extent));
                g_array_append_val(place.map->extents, extent);
                g_array_append_val(fixture->layout->files, place);
                g_array_append_val(fixture->layout->meta, meta);
                for (guint64 at = 0; at < FILE_BYTES; at += 64 * KIB) {
                        ProfileRange range = {.file = i,
                                              .cause = PROFILE_CAUSE_FAULT,
                                              .offset_bytes = at,
                                              .length_bytes = 32 * KIB,
                                              .first_use_us = now_us++};

                        g_array_append_val(fixture->profile->ranges, range);
                }
        }
        fixture->layout->measured = FILES;
}

static void
fixture_clear(Fixture *fixture)
{
        layout_free(fixture->layout);
        profile_free(fixture->profile);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Fixture, fixture_clear)

static EstimateInput
input_of(const Fixture *fixture)
{
        return (EstimateInput){.profile = fixture->profile,
                               .layout = fixture->layout,
                               .cpu_ms = 100,
                               .readahead_bytes = G_MAXUINT64,
                               .place_bytes = G_MAXUINT64};
}

static Estimate
situation(const EstimateInput *input, const char *name)
{
        Estimate estimate;

        g_assert_true(estimate_situation(input, name, &estimate));
        g_assert_cmpstr(estimate.name, ==, name);
        g_assert_cmpfloat(estimate.low_ms, <=, estimate.total_ms);
        g_assert_cmpfloat(estimate.total_ms, <=, estimate.high_ms);
        return estimate;
}

static void
test_direction(void)
{
        g_auto(Fixture) fixture = {0};
        EstimateInput input;
        Estimate cold, prefetch, relocated, bare, warm;

        fixture_make(&fixture, "hdd-2006", 4096 * MIB);
        input = input_of(&fixture);
        cold = situation(&input, "cold");
        prefetch = situation(&input, "prefetch");
        relocated = situation(&input, "relocated-prefetch");
        bare = situation(&input, "relocated");
        warm = situation(&input, "warm");
        g_assert_cmpfloat(cold.total_ms, >, prefetch.total_ms);
        g_assert_cmpfloat(prefetch.total_ms, >, relocated.total_ms);
        g_assert_cmpfloat(bare.total_ms, >, relocated.total_ms);
        g_assert_cmpfloat(warm.total_ms, ==, 100);
        g_assert_cmpuint(relocated.cost.requests, <, prefetch.cost.requests);
        /* cold: every file costs its metadata and its data a positioning at least */
        g_assert_cmpfloat(cold.total_ms, >, FILES * 2 * 4);
        g_assert_false(estimate_situation(&input, "lukewarm", &cold));
        g_assert_true(estimate_situation(&input, "whole", &cold));
}

/* Readahead off, nothing cached: exactly the used pages are read, in a start that waits for each.
 */
static void
test_cold_without_readahead(void)
{
        g_auto(Fixture) fixture = {0};
        EstimateInput input;
        Estimate cold;

        fixture_make(&fixture, "hdd-2006", 4096 * MIB);
        g_array_set_size(fixture.layout->meta, 0);
        input = input_of(&fixture);
        input.readahead_bytes = 0;
        cold = situation(&input, "cold");
        g_assert_cmpuint(cold.cost.bytes, ==, profile_used_bytes(fixture.profile));
        g_assert_cmpuint(cold.cost.requests, ==, profile_used_bytes(fixture.profile) / 4096);
}

static void
test_load(void)
{
        g_auto(Fixture) fixture = {0};
        g_autoptr(Layout) relocated = NULL;
        g_autoptr(GArray) ranges = NULL, files = NULL;
        EstimateInput input;
        LoadEstimate scattered, contiguous;
        guint64 bytes = 0;

        fixture_make(&fixture, "hdd-2006", 4096 * MIB);
        input = input_of(&fixture);
        input.order = READING_ORDER_TIME;
        estimate_load(&input, &scattered, &files);
        g_assert_cmpuint(files->len, ==, FILES + 1);
        for (guint i = 0; i < FILES; i++) {
                g_assert_cmpuint(g_array_index(files, LaunchFileCost, i).extents, ==, 4);
                bytes += g_array_index(files, LaunchFileCost, i).bytes;
        }
        g_assert_cmpuint(scattered.bytes, ==, FILES * 128 * KIB);
        g_assert_cmpuint(bytes, ==, scattered.bytes);
        g_assert_cmpuint(scattered.extents, ==, FILES * 4);
        g_assert_cmpuint(scattered.runs, ==, FILES * 4);
        ranges = ranges_from_profile(fixture.profile, NULL);
        relocated = layout_relocate(fixture.layout, ranges, 100 * MIB);
        input.layout = relocated;
        estimate_load(&input, &contiguous, NULL);
        g_assert_cmpuint(contiguous.bytes, ==, scattered.bytes);
        g_assert_cmpuint(contiguous.runs, ==, 1);
        g_assert_cmpfloat(contiguous.result.total_ms - contiguous.result.metadata_ms, <,
                          (scattered.result.total_ms - scattered.result.metadata_ms) / 2);
        /* in more pieces than an inode holds: one extent-tree block a file */
        g_assert_cmpuint(relocated->meta->len, ==, FILES * 2);
}

/* A relocation moves bytes, and neither makes nor loses any. */
static void
test_relocated_map(void)
{
        g_auto(Fixture) fixture = {0};
        g_autoptr(Layout) relocated = NULL;
        g_autoptr(GArray) ranges = NULL, parts = g_array_new(FALSE, FALSE, sizeof(Extent));
        guint64 at = 0;

        fixture_make(&fixture, "hdd-2006", 4096 * MIB);
        ranges = ranges_from_profile(fixture.profile, NULL);
        relocated = layout_relocate(fixture.layout, ranges, 100 * MIB);
        layout_clip(relocated, 5, 0, FILE_BYTES, parts);
        g_assert_cmpuint(parts->len, ==, 8);
        for (guint i = 0; i < parts->len; i++) {
                const Extent *part = &g_array_index(parts, Extent, i);

                g_assert_cmpuint(part->logical_bytes, ==, at);
                if (i % 2 == 0)
                        g_assert_cmpuint(part->physical_bytes, ==,
                                         100 * MIB + (5 * 4 + i / 2) * 32 * KIB);
                else
                        g_assert_cmpuint(part->physical_bytes, ==,
                                         scattered_place(5, 4096 * MIB) + at);
                at += part->length_bytes;
        }
        g_assert_cmpuint(at, ==, FILE_BYTES);
}

/* Beyond 2^31 blocks of 4 KiB: the same set costs about the same there. */
static void
test_far(void)
{
        g_auto(Fixture) near_by = {0}, far = {0};
        EstimateInput input;
        LoadEstimate first, second;

        fixture_make(&near_by, "hdd", 9 * MIB);
        fixture_make(&far, "hdd", G_GUINT64_CONSTANT(9) << 40);
        input = input_of(&near_by);
        estimate_load(&input, &first, NULL);
        input = input_of(&far);
        estimate_load(&input, &second, NULL);
        g_assert_cmpuint(first.bytes, ==, second.bytes);
        g_assert_cmpuint(first.runs, ==, second.runs);
        g_assert_cmpfloat(second.result.total_ms, <, first.result.total_ms * 2);
        g_assert_cmpfloat(second.sequential_ms, >, first.sequential_ms);
}

/* Flash has no seeks to save. */
static void
test_flash(void)
{
        g_auto(Fixture) fixture = {0};
        EstimateInput input;

        fixture_make(&fixture, "ssd-sata", 4096 * MIB);
        input = input_of(&fixture);
        g_assert_cmpfloat(situation(&input, "prefetch").cost.seek_ms, ==, 0);
        g_assert_cmpfloat(situation(&input, "relocated-prefetch").total_ms, >,
                          situation(&input, "prefetch").total_ms * 0.7);
}

static void
test_holes_and_skipped(void)
{
        g_auto(Fixture) fixture = {0};
        EstimateInput input;
        LoadEstimate load;
        LayoutFile *file;

        fixture_make(&fixture, "hdd-2006", 4096 * MIB);
        file = &g_array_index(fixture.layout->files, LayoutFile, 0);
        g_array_set_size(file->map->extents, 0);
        file = &g_array_index(fixture.layout->files, LayoutFile, 1);
        g_clear_pointer(&file->map, extent_map_free);
        file->disk = LAYOUT_NO_DISK;
        input = input_of(&fixture);
        estimate_load(&input, &load, NULL);
        g_assert_cmpuint(load.bytes, ==, (FILES - 2) * 128 * KIB);
        situation(&input, "cold");
        situation(&input, "whole-files");
        situation(&input, "relocated-prefetch");
}

/* An empty profile takes its CPU time. */
static void
test_empty(void)
{
        g_autoptr(Profile) profile = profile_new("empty");
        g_autoptr(Layout) layout = layout_new(4096);
        Fixture fixture = {profile, layout};
        EstimateInput input = input_of(&fixture);
        LoadEstimate load;

        profile->page_bytes = 4096;
        g_assert_cmpfloat(situation(&input, "cold").total_ms, ==, 100);
        estimate_load(&input, &load, NULL);
        g_assert_cmpuint(load.bytes, ==, 0);
}

static void
test_executable(void)
{
        struct {
                Elf64_Ehdr header;
                Elf64_Phdr segments[2];
        } elf = {0};
        g_autoptr(GArray) spans = NULL;
        const PageSpan *span;

        memcpy(elf.header.e_ident, ELFMAG, SELFMAG);
        elf.header.e_ident[EI_CLASS] = ELFCLASS64;
        elf.header.e_ident[EI_DATA] = G_BYTE_ORDER == G_LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB;
        elf.header.e_phoff = sizeof(elf.header);
        elf.header.e_phnum = 2;
        elf.header.e_phentsize = sizeof(Elf64_Phdr);
        elf.segments[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = 100};
        elf.segments[1] = (Elf64_Phdr){
                .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = 0x3000, .p_filesz = 0x1801};
        spans = executable_spans_parse(&elf, sizeof(elf), 4096);
        g_assert_cmpuint(spans->len, ==, 1);
        span = &g_array_index(spans, PageSpan, 0);
        g_assert_cmpuint(span->first_page, ==, 3);
        g_assert_cmpuint(span->end_page, ==, 5);
        for (gsize length = 0; length < sizeof(elf); length++) {
                g_autoptr(GArray) cut = executable_spans_parse(&elf, length, 4096);

                g_assert_true(cut == NULL);
        }
        elf.header.e_phoff = G_MAXUINT64 - 10;
        g_assert_null(executable_spans_parse(&elf, sizeof(elf), 4096));
        elf.header.e_phoff = sizeof(elf.header);
        elf.segments[1].p_filesz = G_MAXUINT64;
        g_assert_null(executable_spans_parse(&elf, sizeof(elf), 4096));
}

int
main(int argc, char **argv)
{
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/measure/estimate/direction", test_direction);
        g_test_add_func("/measure/estimate/cold-without-readahead", test_cold_without_readahead);
        g_test_add_func("/measure/estimate/load", test_load);
        g_test_add_func("/measure/estimate/relocated-map", test_relocated_map);
        g_test_add_func("/measure/estimate/far", test_far);
        g_test_add_func("/measure/estimate/flash", test_flash);
        g_test_add_func("/measure/estimate/holes-and-skipped", test_holes_and_skipped);
        g_test_add_func("/measure/estimate/empty", test_empty);
        g_test_add_func("/measure/estimate/executable", test_executable);
        return g_test_run();
}
