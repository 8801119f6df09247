// SPDX-License-Identifier: GPL-2.0-or-later
/* The situations, each a plan for the simulated start; the order of reading. Pure. */
#include "measure/estimate.h"

#include <string.h>

#define KIB 1024
#define BIN_BYTES (8 * 1024 * 1024) /* as packs are compiled */
#define NEAR_BYTES (64 * 1024)      /* the drive reads over such a gap */
#define RANDOM_SEED 20060601

static const char *const situations[] = {
        "cold",      "cold-1024",          "cold-8192", "whole-files", "prefetch",
        "relocated", "relocated-prefetch", "warm",      NULL};

/* `headstart run` until its first read: loading the program and the pack, two forks. Measured 35 to
 * 40 ms on one virtual machine of two cores, with everything in memory. */
#define RUN_SETUP_MS 35
/* Submitting one read, sleeping and waking up; measured 30 to 60 us on the same machine. */
#define CPU_MS_PER_LONE_READ 0.04
/* No more than this part of the CPU time is put down to reading. */
#define LONE_READS_PART 0.8

double
estimate_cpu_ms(const Profile *profile)
{
        double cpu_ms = (double)profile->cpu_us / 1000, pages = 0;

        if (profile->warm_us > 0)
                return (double)profile->warm_us / 1000;
        if (!profile->exact)
                return cpu_ms;
        for (guint i = 0; i < profile->ranges->len; i++)
                pages += (double)g_array_index(profile->ranges, ProfileRange, i).length_bytes /
                         MAX(profile->page_bytes, 1);
        return cpu_ms - MIN(pages * CPU_MS_PER_LONE_READ, cpu_ms * LONE_READS_PART);
}

const char *const *
estimate_situations(void)
{
        return situations;
}

/* --- order of reading --- */

typedef struct {
        OrderedRange range;
        guint32 disk;
        guint64 position_bytes, bin;
        guint index;
} Placed;

static gint
compare_placed(gconstpointer a, gconstpointer b)
{
        const Placed *left = a, *right = b;

        if (left->bin != right->bin)
                return left->bin < right->bin ? -1 : 1;
        if (left->disk != right->disk)
                return left->disk < right->disk ? -1 : 1;
        if (left->position_bytes != right->position_bytes)
                return left->position_bytes < right->position_bytes ? -1 : 1;
        return left->index < right->index ? -1 : left->index > right->index;
}

/* Every range cut where a new run begins; what has no place stays with what is before it. */
static GArray *
place_ranges(const Layout *layout, const GArray *ranges)
{
        GArray *out = g_array_new(FALSE, TRUE, sizeof(Placed));
        g_autoptr(GArray) parts = g_array_new(FALSE, FALSE, sizeof(Extent));
        Placed last = {0};

        for (guint i = 0; i < ranges->len; i++) {
                OrderedRange range = g_array_index(ranges, OrderedRange, i);
                guint64 end = range.offset_bytes + range.length_bytes;
                Placed piece = {
                        .range = range, .disk = last.disk, .position_bytes = last.position_bytes};
                gboolean placed = FALSE;
                guint64 next = 0;

                g_array_set_size(parts, 0);
                layout_clip(layout, range.file, range.offset_bytes, range.length_bytes, parts);
                for (guint k = 0; k < parts->len; k++) {
                        const Extent *part = &g_array_index(parts, Extent, k);
                        guint64 cut = part->logical_bytes / layout->page_bytes * layout->page_bytes;

                        if (placed && part->physical_bytes != next &&
                            cut > piece.range.offset_bytes) {
                                piece.range.length_bytes = cut - piece.range.offset_bytes;
                                piece.index = out->len;
                                g_array_append_val(out, piece);
                                piece.range.offset_bytes = cut;
                                placed = FALSE;
                        }
                        if (!placed) {
                                piece.disk =
                                        g_array_index(layout->files, LayoutFile, range.file).disk;
                                piece.position_bytes = part->physical_bytes;
                                placed = TRUE;
                        }
                        next = part->physical_bytes + part->length_bytes;
                }
                piece.range.length_bytes = end - piece.range.offset_bytes;
                piece.index = out->len;
                g_array_append_val(out, piece);
                last = piece;
        }
        return out;
}

static guint64
count_near_runs(const GArray *placed)
{
        guint64 runs = 0, end = 0;

        for (guint i = 0; i < placed->len; i++) {
                const Placed *piece = &g_array_index(placed, Placed, i);

                if (i == 0 || piece->position_bytes < end ||
                    piece->position_bytes - end > NEAR_BYTES)
                        runs++;
                end = piece->position_bytes + piece->range.length_bytes;
        }
        return runs;
}

static void
sort_bins(GArray *placed, guint64 bin_bytes)
{
        guint64 bin = 0, filled = 0;

        for (guint i = 0; i < placed->len; i++) {
                Placed *piece = &g_array_index(placed, Placed, i);

                if (bin_bytes > 0 && filled >= bin_bytes) {
                        bin++;
                        filled = 0;
                }
                filled += piece->range.length_bytes;
                piece->bin = bin;
        }
        g_array_sort(placed, compare_placed);
}

/* One deterministic shuffle (Fisher and Yates). */
static void
shuffle(GArray *ranges)
{
        g_autoptr(GRand) random = g_rand_new_with_seed(RANDOM_SEED);

        for (guint i = ranges->len; i > 1; i--) {
                guint k = (guint)g_rand_int_range(random, 0, (gint32)i);
                OrderedRange swap = g_array_index(ranges, OrderedRange, k);

                g_array_index(ranges, OrderedRange, k) = g_array_index(ranges, OrderedRange, i - 1);
                g_array_index(ranges, OrderedRange, i - 1) = swap;
        }
}

GArray *
estimate_reading_order(const Profile *profile, const Layout *layout, ReadingOrder order)
{
        g_autoptr(GArray) ranges = ranges_from_profile(profile, NULL);
        g_autoptr(GArray) placed = NULL;

        if (order == READING_ORDER_RANDOM)
                shuffle(ranges);
        if (order == READING_ORDER_RANDOM || order == READING_ORDER_TIME)
                return g_steal_pointer(&ranges);
        placed = place_ranges(layout, ranges);
        if (order == READING_ORDER_AUTO) {
                g_autoptr(GArray) sorted = g_array_copy(placed);
                guint64 in_time = count_near_runs(placed), in_place;

                sort_bins(sorted, 0);
                in_place = count_near_runs(sorted);
                if (in_time <= in_place + in_place / 4 + 4)
                        return g_steal_pointer(&ranges);
        }
        sort_bins(placed, order == READING_ORDER_BLOCK ? 0 : BIN_BYTES);
        g_array_set_size(ranges, 0);
        for (guint i = 0; i < placed->len; i++) {
                const Placed *piece = &g_array_index(placed, Placed, i);
                OrderedRange *last = ranges->len > 0
                                             ? &g_array_index(ranges, OrderedRange, ranges->len - 1)
                                             : NULL;

                if (last != NULL && last->file == piece->range.file &&
                    last->offset_bytes + last->length_bytes == piece->range.offset_bytes)
                        last->length_bytes += piece->range.length_bytes;
                else
                        g_array_append_val(ranges, piece->range);
        }
        return g_steal_pointer(&ranges);
}

/* --- situations --- */

static guint64
readahead_of(const EstimateInput *input, const GArray *ranges)
{
        const Layout *layout = input->layout;

        if (input->readahead_bytes != G_MAXUINT64)
                return input->readahead_bytes;
        if (layout->disks->len == 0)
                return 128 * KIB;
        return ((LayoutDisk *)layout->disks->pdata[layout_main_disk(layout, ranges)])
                ->readahead_bytes;
}

static void
simulate(LaunchPlan *plan, double cpu_ms, Estimate *ret)
{
        LaunchResult alone, together;

        plan->program = TRUE;
        plan->cpu_ms = 0;
        launch_simulate(plan, &alone, NULL);
        plan->cpu_ms = cpu_ms;
        launch_simulate(plan, &together, NULL);
        ret->total_ms = together.total_ms;
        ret->cost = together.cost;
        /* Another schedule can give another order of reading: the point may lie a little outside.
         */
        ret->low_ms = MIN(MAX(cpu_ms, alone.total_ms), together.total_ms);
        ret->high_ms = MAX(cpu_ms + alone.total_ms, together.total_ms);
}

gboolean
estimate_situation(const EstimateInput *input, const char *name, Estimate *ret)
{
        g_autoptr(GArray) ranges = ranges_from_profile(input->profile, NULL);
        g_autoptr(GArray) reading = NULL;
        g_autoptr(Layout) relocated = NULL;
        LaunchPlan plan = {.profile = input->profile,
                           .layout = input->layout,
                           .readahead_bytes = readahead_of(input, ranges)};
        guint which = 0;

        if (strcmp(name, "whole") == 0)
                name = "whole-files";
        while (situations[which] != NULL && strcmp(situations[which], name) != 0)
                which++;
        if (situations[which] == NULL)
                return FALSE;
        name = situations[which];
        *ret = (Estimate){.name = name,
                          .total_ms = input->cpu_ms,
                          .low_ms = input->cpu_ms,
                          .high_ms = input->cpu_ms};
        if (strcmp(name, "warm") == 0)
                return TRUE;
        if (strcmp(name, "cold-1024") == 0)
                plan.readahead_bytes = 1024 * KIB;
        if (strcmp(name, "cold-8192") == 0)
                plan.readahead_bytes = 8192 * KIB;
        plan.whole_files = strcmp(name, "whole-files") == 0;
        if (g_str_has_prefix(name, "relocated")) {
                relocated = layout_relocate(input->layout, ranges, input->place_bytes);
                plan.layout = relocated;
        }
        if (g_str_has_suffix(name, "prefetch")) {
                reading = estimate_reading_order(input->profile, plan.layout, input->order);
                plan.prefetch = reading;
        }
        simulate(&plan, input->cpu_ms, ret);
        if (plan.prefetch != NULL) {
                ret->total_ms += RUN_SETUP_MS;
                ret->low_ms += RUN_SETUP_MS;
                ret->high_ms += RUN_SETUP_MS;
        }
        return TRUE;
}

/* --- loading --- */

void
estimate_load(const EstimateInput *input, LoadEstimate *ret, GArray **ret_files)
{
        const Layout *layout = input->layout;
        g_autoptr(GArray) reading = estimate_reading_order(input->profile, layout, input->order);
        g_autoptr(GArray) parts = g_array_new(FALSE, FALSE, sizeof(Extent));
        LaunchPlan plan = {.profile = input->profile,
                           .layout = layout,
                           .prefetch = reading,
                           .readahead_bytes = readahead_of(input, reading)};
        guint32 main_disk = layout_main_disk(layout, reading), disk, last_disk = LAYOUT_NO_DISK;
        guint64 end = 0;
        double place = 0;

        *ret = (LoadEstimate){0};
        launch_simulate(&plan, &ret->result, ret_files);
        for (guint i = 0; i < reading->len; i++) {
                const OrderedRange *range = &g_array_index(reading, OrderedRange, i);

                disk = g_array_index(layout->files, LayoutFile, range->file).disk;
                g_array_set_size(parts, 0);
                layout_clip(layout, range->file, range->offset_bytes, range->length_bytes, parts);
                for (guint k = 0; k < parts->len; k++) {
                        const Extent *part = &g_array_index(parts, Extent, k);

                        gboolean new_run = disk != last_disk || part->physical_bytes != end;

                        ret->extents++;
                        ret->bytes += part->length_bytes;
                        ret->runs += new_run;
                        if (ret_files != NULL) {
                                LaunchFileCost *file =
                                        &g_array_index(*ret_files, LaunchFileCost, range->file);

                                file->extents++;
                                file->runs += new_run;
                        }
                        last_disk = disk;
                        end = part->physical_bytes + part->length_bytes;
                        if (disk == main_disk)
                                place += (double)part->physical_bytes * (double)part->length_bytes;
                }
        }
        if (layout->disks->len > 0 && ret->bytes > 0) {
                const DiskModel *model = ((LayoutDisk *)layout->disks->pdata[main_disk])->model;
                guint64 used = MIN(profile_used_bytes(input->profile), ret->bytes);

                ret->sequential_ms = (double)used /
                                     disk_model_rate_bytes_per_ms(
                                             model, place / (double)ret->bytes /
                                                            (double)MAX(model->capacity_bytes, 1));
        }
}
