// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Moving files, batch by batch.
 *
 * Files are moved in batches so that one journal commit serves all files of a batch; a batch is
 * bounded in files (descriptors) and in bytes (dirty pages). Each file's old contents are known by
 * hash before it is touched, and it counts as moved only after the same hash was read back from the
 * disk.
 */
#include "relocator/job.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/json.h"
#include "common/quote.h"
#include "relocator/move.h"
#include "relocator/verify.h"

#define BATCH_FILES 16 /* when the limit on open files allows */
#define OTHER_FDS 16   /* of the limit: standard streams, device, donor, what GLib has open */
#define BATCH_BYTES (64ULL << 20)

typedef struct {
        guint32 file;
        int fd;
        int fresh; /* the same file, for reading back */
        struct stat before;
        GPtrArray *pieces; /* Piece * into the plan */
        GArray *hashed;    /* Extent: what the hash covers */
        GArray *old_parts; /* Extent: where the pieces lay */
        gchar *hash;
        int write_errno; /* of writing out what was moved, 0 = written */
} Moving;

static void
moving_free(gpointer data)
{
        Moving *moving = data;

        fd_close(&moving->fd);
        fd_close(&moving->fresh);
        g_ptr_array_unref(moving->pieces);
        g_array_unref(moving->hashed);
        g_array_unref(moving->old_parts);
        g_free(moving->hash);
        g_free(moving);
}

static const ProfileFile *
profile_file(const Job *job, guint32 file)
{
        return &g_array_index(job->profile->files, ProfileFile, file);
}

static guint64
blocks_of(const GPtrArray *pieces)
{
        guint64 sum = 0;

        for (guint i = 0; i < pieces->len; i++)
                sum += ((const Piece *)pieces->pdata[i])->blocks;
        return sum;
}

static void
skip_file(Job *job, guint32 file, const char *reason)
{
        g_ptr_array_add(job->skipped, skipped_new(profile_file(job, file)->path, "%s", reason));
}

/* The parts that the hash covers and where they lie before the move. FALSE when a piece has lost
 * its blocks since it was planned. */
static gboolean
look_before(const Job *job, Moving *moving, GError **error)
{
        const guint64 block_bytes = job->plan->block_bytes;
        g_autoptr(ExtentMap) map = extent_map_load(moving->fd, error);
        guint64 covered = 0, data = 0;

        if (!map)
                return FALSE;
        for (guint i = 0; i < moving->pieces->len; i++) {
                const Piece *piece = moving->pieces->pdata[i];

                extent_map_clip(map, piece->logical_block * block_bytes,
                                piece->blocks * block_bytes, moving->old_parts);
        }
        for (guint i = 0; i < moving->old_parts->len; i++)
                covered += g_array_index(moving->old_parts, Extent, i).length_bytes;
        if (covered != blocks_of(moving->pieces) * block_bytes) {
                g_set_error(error, RELOCATOR_ERROR, RELOCATOR_ERROR_MOVE,
                            "changed since it was planned");
                return FALSE;
        }
        extent_map_clip(map, 0, (guint64)moving->before.st_size, moving->hashed);
        for (guint i = 0; i < moving->hashed->len; i++)
                data += g_array_index(moving->hashed, Extent, i).length_bytes;
        if (data > VERIFY_WHOLE_BYTES_MAX) {
                g_array_set_size(moving->hashed, 0);
                g_array_append_vals(moving->hashed, moving->old_parts->data,
                                    moving->old_parts->len);
        }
        return TRUE;
}

/* Writes dirty pages out and waits, without the journal commit and the flush of an fsync. */
static int
write_out(int fd)
{
        return sync_file_range(fd, 0, 0,
                               SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                                       SYNC_FILE_RANGE_WAIT_AFTER);
}

static Moving *
move_one(Job *job, guint32 file, GPtrArray *pieces)
{
        Moving *moving = g_new0(Moving, 1);
        g_autoptr(GError) error = NULL, back_error = NULL;
        g_autofree gchar *reason = NULL;

        moving->file = file;
        moving->fd = moving->fresh = -1;
        moving->pieces = g_ptr_array_ref(pieces);
        moving->hashed = g_array_new(FALSE, FALSE, sizeof(Extent));
        moving->old_parts = g_array_new(FALSE, FALSE, sizeof(Extent));
        if (check_file(job->target, profile_file(job, file), &moving->fd, &moving->before,
                       &reason) != CHECK_OK)
                goto skip;
        /* Dirty pages and large folios make the mover commit the journal for every page. */
        if (write_out(moving->fd) < 0) {
                reason = g_strdup_printf("writing out: %s", g_strerror(errno));
                goto skip;
        }
        posix_fadvise(moving->fd, 0, 0, POSIX_FADV_DONTNEED);
        if (!look_before(job, moving, &error))
                goto skip;
        moving->fresh = contents_open(moving->fd, &error);
        if (moving->fresh < 0)
                goto skip;
        moving->hash = contents_hash(moving->fresh, moving->hashed, &error);
        if (!moving->hash)
                goto skip;
        move_read_in(moving->fd, pieces, job->plan->block_bytes);
        if (move_pieces(moving->fd, job->donor->fd, pieces, &error)) {
                sync_file_range(moving->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
                return moving;
        }
        if (!move_back(moving->fd, job->donor->fd, pieces, &back_error))
                reason = g_strdup_printf("%s; left part moved, its contents are whole (%s)",
                                         error->message, back_error->message);
        else
                reason = g_strdup_printf("%s; moved back", error->message);
        fsync(moving->fd);
skip:
        skip_file(job, file, reason ? reason : error->message);
        moving_free(moving);
        return NULL;
}

/* Contents came back different, or not at all: what the old blocks hold is put back, and everything
 * stops. */
static void
contents_differ(Job *job, Moving *moving, const char *what, GError **error)
{
        g_autofree gchar *path = path_quote(profile_file(job, moving->file)->path);
        g_autoptr(GError) local = NULL;
        gboolean restored =
                contents_restore(moving->fd, moving->fresh, job->target->device->node,
                                 moving->old_parts, moving->hashed, moving->hash, &local);

        g_set_error(
                error, RELOCATOR_ERROR, RELOCATOR_ERROR_VERIFY,
                "THE CONTENTS OF %s CAME BACK %s after the move; %s%s%s; nothing more was moved: "
                "check the drive and the file system (e2fsck -f)",
                path, what,
                restored ? "its old contents were put back and read back equal"
                         : "its old contents could NOT be put back: restore it from a backup",
                local ? ": " : "", local ? local->message : "");
        skip_file(job, moving->file, "contents came back different");
}

/* Writing out failed. The page cache still has the contents, and the old place is known to work. */
static gboolean
put_back(Job *job, Moving *moving, int errnum, GError **error)
{
        g_autofree gchar *now = NULL;
        g_autofree gchar *reason =
                g_strdup_printf("writing to the new place: %s; moved back", g_strerror(errnum));

        move_back(moving->fd, job->donor->fd, moving->pieces, NULL);
        fsync(moving->fd);
        posix_fadvise(moving->fd, 0, 0, POSIX_FADV_DONTNEED);
        now = contents_hash(moving->fresh, moving->hashed, NULL);
        if (!now || strcmp(now, moving->hash) != 0) {
                contents_differ(job, moving, now ? "DIFFERENT" : "UNREADABLE", error);
                return FALSE;
        }
        skip_file(job, moving->file, reason);
        return TRUE;
}

static gboolean
was_written_to(const Moving *moving)
{
        const struct stat *before = &moving->before;
        struct stat after;

        return fstat(moving->fd, &after) == 0 &&
               (after.st_size != before->st_size ||
                after.st_mtim.tv_sec != before->st_mtim.tv_sec ||
                after.st_mtim.tv_nsec != before->st_mtim.tv_nsec ||
                after.st_ctim.tv_sec != before->st_ctim.tv_sec ||
                after.st_ctim.tv_nsec != before->st_ctim.tv_nsec);
}

/* FALSE only when contents did not come back. */
static gboolean
finish_one(Job *job, Moving *moving, GError **error)
{
        g_autofree gchar *now = NULL;

        if (moving->write_errno)
                return put_back(job, moving, moving->write_errno, error);
        posix_fadvise(moving->fd, 0, 0, POSIX_FADV_DONTNEED);
        now = contents_hash(moving->fresh, moving->hashed, NULL);
        if (!now) /* a moment without memory, perhaps */
                now = contents_hash(moving->fresh, moving->hashed, NULL);
        if (now && strcmp(now, moving->hash) == 0) {
                job->moved_files++;
                job->moved_blocks += blocks_of(moving->pieces);
                return TRUE;
        }
        /* Somebody may have written to it: that is no fault of the move, which goes through the
         * page cache like every write. */
        if (was_written_to(moving)) {
                skip_file(job, moving->file, "written to by another program while it was moved");
                return TRUE;
        }
        contents_differ(job, moving, now ? "DIFFERENT" : "UNREADABLE", error);
        return FALSE;
}

static gboolean
finish_batch(Job *job, GPtrArray *batch, GError **error)
{
        gboolean ok = TRUE;

        if (batch->len == 0)
                return TRUE;
        for (guint i = 0; i < batch->len; i++) {
                Moving *moving = batch->pdata[i];

                if (write_out(moving->fd) < 0)
                        moving->write_errno = errno;
        }
        /* The data of all is with the drive; the commit of the last file's transaction comes after
         * those of the others and flushes the drive's cache: one fsync is enough for all of them.
         */
        if (fsync(((Moving *)batch->pdata[batch->len - 1])->fd) < 0) {
                const int errnum = errno;

                for (guint i = 0; i < batch->len; i++)
                        ((Moving *)batch->pdata[i])->write_errno = errnum;
        }
        for (guint i = 0; i < batch->len; i++) {
                Moving *moving = batch->pdata[i];

                /* After a first difference the rest of the batch is still read back and compared.
                 */
                if (!finish_one(job, moving, ok ? error : NULL))
                        ok = FALSE;
        }
        g_ptr_array_set_size(batch, 0);
        return ok;
}

/* The files of the plan in order of their first piece, each with its pieces. */
static GPtrArray *
group_by_file(Plan *plan, GArray *ret_files)
{
        g_autoptr(GHashTable) known = g_hash_table_new(NULL, NULL);
        GPtrArray *groups = g_ptr_array_new_with_free_func((GDestroyNotify)g_ptr_array_unref);

        for (guint i = 0; i < plan->pieces->len; i++) {
                Piece *piece = &g_array_index(plan->pieces, Piece, i);
                GPtrArray *group = g_hash_table_lookup(known, GUINT_TO_POINTER(piece->file));

                if (!group) {
                        group = g_ptr_array_new();
                        g_hash_table_insert(known, GUINT_TO_POINTER(piece->file), group);
                        g_ptr_array_add(groups, group);
                        g_array_append_val(ret_files, piece->file);
                }
                g_ptr_array_add(group, piece);
        }
        return groups;
}

/* Each file of a batch has two descriptors open. */
static guint
batch_files(void)
{
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= OTHER_FDS + 2 * BATCH_FILES)
                return BATCH_FILES;
        return limit.rlim_cur > OTHER_FDS + 2 ? (guint)(limit.rlim_cur - OTHER_FDS) / 2 : 1;
}

gboolean
job_run(Job *job, GError **error)
{
        g_autoptr(GArray) files = g_array_new(FALSE, FALSE, sizeof(guint32));
        g_autoptr(GPtrArray) groups = group_by_file(job->plan, files);
        g_autoptr(GPtrArray) batch = g_ptr_array_new_with_free_func(moving_free);
        const guint64 total = plan_blocks(job->plan), block_bytes = job->plan->block_bytes;
        const guint files_max = batch_files();
        guint64 batch_bytes = 0;

        for (guint i = 0; i < groups->len; i++) {
                GPtrArray *pieces = groups->pdata[i];
                Moving *moving;

                if (job->options->stop && *job->options->stop) {
                        job->interrupted = TRUE;
                        break;
                }
                moving = move_one(job, g_array_index(files, guint32, i), pieces);
                job->done_blocks += blocks_of(pieces);
                if (job->options->progress)
                        job->options->progress(job->done_blocks * block_bytes, total * block_bytes,
                                               job->options->progress_data);
                if (!moving)
                        continue;
                g_ptr_array_add(batch, moving);
                batch_bytes += blocks_of(pieces) * block_bytes;
                if (batch->len >= files_max || batch_bytes >= BATCH_BYTES) {
                        batch_bytes = 0;
                        if (!finish_batch(job, batch, error))
                                return FALSE;
                }
        }
        return finish_batch(job, batch, error);
}
