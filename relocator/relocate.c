// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Relocating a profile: one file system after the other; each with one plan and one donor.
 */
#include "relocator/relocate.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/error.h"
#include "common/fd.h"
#include "common/json.h"
#include "common/quote.h"
#include "common/ranges.h"
#include "relocator/check.h"
#include "relocator/donor.h"
#include "relocator/job.h"
#include "relocator/plan.h"

/* Nothing is gained where the data lies in few runs already: a seek costs as much as reading about
 * a MiB. */
#define FEW_RUNS 3
#define RUN_BYTES (64ULL << 20)

typedef struct {
        const Profile *profile;
        const RelocateOptions *options;
        RelocateResult *result;
        const GArray *ranges; /* OrderedRange of the whole profile */
        guint32 fs;
        Target *target;
        GPtrArray *maps; /* ExtentMap *, by file; NULL = left out */
        guint32 *same;   /* file -> the file whose inode it shares, itself as a rule */
        guint unsupported, gone, movable;
} Run;

void
relocate_result_clear(RelocateResult *result)
{
        g_clear_pointer(&result->skipped, g_ptr_array_unref);
        g_clear_pointer(&result->declined, g_free);
}

static const ProfileFile *
file_at(const Run *run, guint i)
{
        return &g_array_index(run->profile->files, ProfileFile, i);
}

static void
map_free(gpointer map)
{
        extent_map_free(map);
}

/* Checks each file that has ranges and reads its map. Hard links: the same inode under two names is
 * moved once. */
static void
check_files(Run *run)
{
        g_autoptr(GHashTable) inodes =
                g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
        g_autofree gboolean *wanted = g_new0(gboolean, run->profile->files->len + 1);

        for (guint i = 0; i < run->ranges->len; i++)
                wanted[g_array_index(run->ranges, OrderedRange, i).file] = TRUE;
        for (guint i = 0; i < run->profile->files->len; i++) {
                const ProfileFile *file = file_at(run, i);
                g_autofree gchar *reason = NULL;
                g_autoptr(GError) error = NULL;
                auto_fd int fd = -1;
                CheckVerdict verdict;
                ExtentMap *map = NULL;
                struct stat st;
                guint64 inode;
                gpointer first;

                run->same[i] = i;
                if (file->fs != run->fs || !wanted[i])
                        continue;
                if (run->options->stop && *run->options->stop)
                        return;
                verdict = check_file(run->target, file, &fd, &st, &reason);
                inode = verdict == CHECK_OK ? st.st_ino : 0;
                if (verdict == CHECK_OK &&
                    g_hash_table_lookup_extended(inodes, &inode, NULL, &first)) {
                        run->same[i] = GPOINTER_TO_UINT(first);
                        continue;
                }
                if (verdict == CHECK_OK) {
                        /* Blocks written a moment ago have no place before they are written out. */
                        if (!run->options->dry_run)
                                sync_file_range(fd, 0, 0,
                                                SYNC_FILE_RANGE_WAIT_BEFORE |
                                                        SYNC_FILE_RANGE_WRITE |
                                                        SYNC_FILE_RANGE_WAIT_AFTER);
                        map = extent_map_load(fd, &error);
                        if (!map) {
                                verdict = CHECK_UNSUPPORTED;
                                reason = g_strdup(error->message);
                        }
                }
                if (verdict != CHECK_OK) {
                        g_ptr_array_add(run->result->skipped,
                                        skipped_new(file->path, "%s", reason));
                        if (verdict == CHECK_UNSUPPORTED)
                                run->unsupported++;
                        else
                                run->gone++;
                        continue;
                }
                g_hash_table_insert(inodes, g_memdup2(&inode, sizeof inode), GUINT_TO_POINTER(i));
                run->maps->pdata[i] = map;
                run->movable++;
        }
}

/* How everything that can be moved lies, in the order of the plan. */
static GArray *
current_layout(const Run *run)
{
        GArray *layout = g_array_new(FALSE, FALSE, sizeof(Extent));

        for (guint i = 0; i < run->ranges->len; i++) {
                const OrderedRange *range = &g_array_index(run->ranges, OrderedRange, i);
                const ExtentMap *map = run->maps->pdata[run->same[range->file]];

                if (map && file_at(run, range->file)->fs == run->fs)
                        extent_map_clip(map, range->offset_bytes, range->length_bytes, layout);
        }
        return layout;
}

static Plan *
make_plan(const Run *run)
{
        Plan *plan = plan_new(run->target->block_bytes, (guint32)sysconf(_SC_PAGESIZE));

        for (guint i = 0; i < run->ranges->len; i++) {
                const OrderedRange *range = &g_array_index(run->ranges, OrderedRange, i);
                guint32 file = run->same[range->file];
                const ExtentMap *map = run->maps->pdata[file];

                if (map && file_at(run, range->file)->fs == run->fs)
                        plan_add_range(plan, file, map, range->offset_bytes, range->length_bytes);
        }
        return plan;
}

static void
decline(RelocateResult *result, gchar *reason)
{
        g_free(result->declined);
        result->declined = reason;
}

/* Reads the maps of what was moved again: what the disk says is the result. */
static void
reload_maps(Run *run)
{
        for (guint i = 0; i < run->profile->files->len; i++) {
                g_autofree gchar *reason = NULL;
                auto_fd int fd = -1;
                struct stat st;
                ExtentMap *map;

                if (!run->maps->pdata[i] ||
                    check_file(run->target, file_at(run, i), &fd, &st, &reason) != CHECK_OK)
                        continue;
                map = extent_map_load(fd, NULL);
                if (map) {
                        extent_map_free(run->maps->pdata[i]);
                        run->maps->pdata[i] = map;
                }
        }
}

/* Gains of so little are not worth touching a disk for. */
static gboolean
gains_nothing(guint64 runs_before, guint64 runs_after, guint64 bytes)
{
        return runs_before <= FEW_RUNS + bytes / RUN_BYTES || runs_after * 10 > runs_before * 9;
}

static gboolean
dry_run(Run *run, Plan *plan, guint64 runs_before, GError **error)
{
        RelocateResult *result = run->result;
        guint64 align = plan->page_bytes / plan->block_bytes;
        g_autoptr(GArray) all = free_segments(run->target->dir_fd, plan->block_bytes, error);
        g_autoptr(GArray) chosen = NULL;

        if (!all)
                return FALSE;
        chosen = segments_choose(all, plan_donor_blocks(plan), align);
        if (!chosen || !plan_place(plan, chosen)) {
                g_autofree gchar *quoted = path_quote(run->target->dir);

                g_set_error(error, RELOCATOR_ERROR, RELOCATOR_ERROR_NO_SPACE,
                            "not enough free space on %s", quoted);
                return FALSE;
        }
        result->runs_after += plan_runs_after(plan, chosen);
        result->window_start_bytes =
                (gint64)(g_array_index(chosen, Segment, 0).physical_block * plan->block_bytes);
        result->files += run->movable;
        if (!run->options->force && gains_nothing(runs_before, plan_runs_after(plan, chosen),
                                                  plan_blocks(plan) * plan->block_bytes))
                decline(result,
                        g_strdup_printf("it lies in %" G_GUINT64_FORMAT " runs and would lie in "
                                        "%" G_GUINT64_FORMAT,
                                        runs_before, plan_runs_after(plan, chosen)));
        return TRUE;
}

static gboolean
move_fs(Run *run, Plan *plan, guint64 runs_before, GError **error)
{
        RelocateResult *result = run->result;
        const guint64 bytes = plan_blocks(plan) * plan->block_bytes;
        g_autoptr(Donor) donor = NULL;
        g_autoptr(GArray) after = NULL;
        guint64 runs_after;
        gboolean ok;
        Job job = {
                .profile = run->profile,
                .options = run->options,
                .target = run->target,
                .plan = plan,
                .skipped = result->skipped,
        };

        if (flock(run->target->dir_fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
                g_set_error(
                        error, RELOCATOR_ERROR, RELOCATOR_ERROR_FAILED,
                        "another relocation is at work on this file system; nothing was changed");
                return FALSE;
        }
        donor = donor_new(run->target->dir_fd, run->target->dir, plan, error);
        if (!donor)
                return FALSE;
        if (!plan_place(plan, donor->segments)) {
                g_set_error(error, RELOCATOR_ERROR, RELOCATOR_ERROR_FAILED,
                            "the free space is too scattered; nothing was changed");
                return FALSE;
        }
        runs_after = plan_runs_after(plan, donor->segments);
        if (!run->options->force && gains_nothing(runs_before, runs_after, bytes)) {
                result->runs_after += runs_before;
                decline(result, g_strdup_printf("the free space would hold it in %" G_GUINT64_FORMAT
                                                " runs, it lies in %" G_GUINT64_FORMAT " now",
                                                runs_after, runs_before));
                return TRUE;
        }
        job.donor = donor;
        ok = job_run(&job, error);
        result->files += job.moved_files;
        result->moved_bytes += job.moved_blocks * plan->block_bytes;
        result->interrupted |= job.interrupted;
        result->window_start_bytes =
                (gint64)(g_array_index(donor->segments, Segment, 0).physical_block *
                         plan->block_bytes);
        reload_maps(run);
        after = current_layout(run);
        result->runs_after += layout_runs(after, plan->page_bytes);
        return ok;
}

static gboolean
relocate_fs(Run *run, GError **error)
{
        RelocateResult *result = run->result;
        g_autoptr(GArray) before = NULL;
        g_autoptr(Plan) plan = NULL;
        guint64 bytes, runs;

        check_files(run);
        if (run->options->stop && *run->options->stop) {
                result->interrupted = TRUE;
                return TRUE;
        }
        plan = make_plan(run);
        bytes = plan_blocks(plan) * plan->block_bytes;
        if (bytes == 0)
                return TRUE;
        before = current_layout(run);
        runs = layout_runs(before, plan->page_bytes);
        result->planned_bytes += bytes;
        result->runs_before += runs;
        if (!run->options->force && !run->target->device->rotational) {
                result->runs_after += runs;
                decline(result,
                        g_strdup_printf(
                                "%s says it is no rotating disk: moving gains little there; "
                                "--force does it all the same",
                                run->target->device->disk_name));
                return TRUE;
        }
        if (!run->options->force && runs <= FEW_RUNS + bytes / RUN_BYTES) {
                result->runs_after += runs;
                decline(result, g_strdup_printf("it already lies in %" G_GUINT64_FORMAT " run%s",
                                                runs, runs == 1 ? "" : "s"));
                return TRUE;
        }
        return run->options->dry_run ? dry_run(run, plan, runs, error)
                                     : move_fs(run, plan, runs, error);
}

/* Every file of a file system that cannot be worked on is skipped with that reason. */
static void
skip_fs(Run *run, const char *reason)
{
        for (guint i = 0; i < run->profile->files->len; i++)
                if (file_at(run, i)->fs == run->fs) {
                        g_ptr_array_add(run->result->skipped,
                                        skipped_new(file_at(run, i)->path, "%s", reason));
                        run->unsupported++;
                }
}

gboolean
relocate_profile(const Profile *profile, const RelocateOptions *options, RelocateResult *ret,
                 GError **error)
{
        const RangesOptions unit = {.gap_bytes = RANGES_GAP_BYTES_DEFAULT,
                                    .whole_files = options->unit == RELOCATE_UNIT_FILE};
        g_autoptr(GArray) ranges = ranges_from_profile(profile, &unit);
        g_autoptr(GError) refused = NULL;
        guint movable = 0, unsupported = 0;

        *ret = (RelocateResult){.method = "move", .window_start_bytes = -1};
        ret->skipped = g_ptr_array_new_with_free_func(skipped_free);
        for (guint32 fs = 0; fs < profile->fs->len; fs++) {
                const TargetOptions target_options = {.root = options->root,
                                                      .force = options->force,
                                                      .dry_run = options->dry_run};
                g_autoptr(GPtrArray) maps = g_ptr_array_new_with_free_func(map_free);
                g_autoptr(GError) local = NULL;
                g_autofree guint32 *same = g_new0(guint32, profile->files->len + 1);
                g_autoptr(Target) target = target_open(profile, fs, &target_options, &local);
                Run run = {
                        .profile = profile,
                        .options = options,
                        .result = ret,
                        .ranges = ranges,
                        .fs = fs,
                        .target = target,
                        .maps = maps,
                        .same = same,
                };

                if (!target) {
                        skip_fs(&run, local->message);
                        if (!refused && run.unsupported > 0)
                                refused = g_steal_pointer(&local);
                        unsupported += run.unsupported;
                        continue;
                }
                g_ptr_array_set_size(maps, (gint)profile->files->len);
                if (!relocate_fs(&run, error))
                        return FALSE;
                movable += run.movable;
                unsupported += run.unsupported;
                if (ret->interrupted)
                        break;
        }
        if (movable == 0 && unsupported > 0 && !ret->interrupted) {
                if (refused) {
                        g_propagate_error(error, g_steal_pointer(&refused));
                        return FALSE;
                }
                {
                        const Skipped *first = ret->skipped->pdata[0];
                        g_autofree gchar *path = path_quote(first->path);

                        g_set_error(error, RELOCATOR_ERROR, RELOCATOR_ERROR_REFUSED,
                                    "none of the %u files can be moved; %s: %s", ret->skipped->len,
                                    path, first->reason);
                }
                return FALSE;
        }
        return TRUE;
}
