// SPDX-License-Identifier: GPL-2.0-or-later
/* Merging a recording with what was recorded before: see record-merge.h. */
#include "cli/record-merge.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/json.h"
#include "common/quote.h"
#include "measure/mounts.h"
#include "profiler/merge.h"

static gchar *
path_outside(GPtrArray *mounts, const Profile *profile, const ProfileFile *file)
{
        const ProfileFs *fs = &g_array_index(profile->fs, ProfileFs, file->fs);
        Mount *mount = mounts && *fs->uuid ? mount_find_uuid(mounts, fs->uuid) : NULL;

        return mount ? mount_path_outside(mount, file->path) : NULL;
}

/* Programs and libraries are built anew or upgraded between two starts; no start rewrites them. */
static gboolean
is_program(const Profile *profile, const ProfileFile *file, gpointer data)
{
        g_autofree gchar *path = path_outside(data, profile, file);
        auto_fd int fd =
                path ? open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC) : -1;
        char head[4] = "";

        if (file->flags & PROFILE_FILE_EXECUTED)
                return TRUE;
        if (fd < 0 || read(fd, head, sizeof head) != sizeof head)
                return FALSE;
        return memcmp(head, "\177ELF", 4) == 0 || memcmp(head, "#!", 2) == 0;
}

void
record_merge(const Cli *cli, Profile *profile, const Profile *previous, const BuildResult *built)
{
        g_autoptr(GPtrArray) mounts = previous ? mount_table_load(NULL) : NULL;
        g_auto(MergeResult) result = {0};
        MergeOptions options = {
                .is_program = is_program, .data = mounts, .left_out = built->left_out_inside};

        if (previous && !merge_same_program(profile, previous)) {
                cli_note(cli, "the profile %s was of another program: recorded anew",
                         profile->name);
                previous = NULL;
        }
        merge_profile(profile, previous, &options, &result);
        for (guint i = 0; i < result.changing->len; i++) {
                const ProfileFile *file = &g_array_index(profile->changing, ProfileFile, i);
                g_autofree gchar *path = path_outside(mounts, profile, file);

                g_ptr_array_add(built->left_out,
                                skipped_new(path ? path : file->path, "%s",
                                            (const char *)result.changing->pdata[i]));
        }
        if (result.kept_ranges)
                cli_note(cli,
                         "%u unchanged files keep the ranges of an earlier recording, which knows "
                         "them better; --fresh records all anew",
                         result.kept_ranges);
        if (result.changing->len)
                cli_note(cli, "%u files that change at every start are left out (-v names them)",
                         result.changing->len);
        if (cli->verbose && (result.kept_low || result.dropped))
                cli_note(cli,
                         "%u files of the two starts before are kept at the end, %u that no start "
                         "used since were dropped",
                         result.kept_low, result.dropped);
}
