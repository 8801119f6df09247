// SPDX-License-Identifier: GPL-2.0-or-later
/* Executed and opened files: see process-files.h. */
#include "profiler/process-files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

typedef struct {
        dev_t dev;
        guint64 inode;
} FileKey;

static guint
key_hash(gconstpointer data)
{
        const FileKey *key = data;
        guint64 mixed =
                (key->inode ^ (guint64)key->dev << 40) * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15);

        return (guint)(mixed >> 32);
}

static gboolean
key_equal(gconstpointer a, gconstpointer b)
{
        const FileKey *x = a, *y = b;

        return x->inode == y->inode && x->dev == y->dev;
}

static GHashTable *
files_by_key(const Profile *profile, const BuildResult *built)
{
        GHashTable *files = g_hash_table_new_full(key_hash, key_equal, g_free, NULL);

        for (guint i = 0; i < profile->files->len; i++) {
                const ProfileFile *file = &g_array_index(profile->files, ProfileFile, i);
                FileKey *key;

                if (file->fs >= built->fs_devs->len)
                        continue;
                key = g_new(FileKey, 1);
                *key = (FileKey){g_array_index(built->fs_devs, dev_t, file->fs), file->inode};
                g_hash_table_insert(files, key, GUINT_TO_POINTER(i + 1));
        }
        return files;
}

static ProfileFile *
find(Profile *profile, GHashTable *files, dev_t dev, guint64 inode)
{
        FileKey key = {dev, inode};
        guint number = GPOINTER_TO_UINT(g_hash_table_lookup(files, &key));

        return number ? &g_array_index(profile->files, ProfileFile, number - 1) : NULL;
}

/* statx() tells the device that mountinfo names, st_dev does not on btrfs. */
static void
mark_executed(Profile *profile, GHashTable *files, const char *path)
{
        struct statx st;
        ProfileFile *file;

        if (statx(AT_FDCWD, path, AT_NO_AUTOMOUNT, STATX_INO, &st) != 0)
                return;
        file = find(profile, files, makedev(st.stx_dev_major, st.stx_dev_minor), st.stx_ino);
        if (file)
                file->flags |= PROFILE_FILE_EXECUTED;
}

void
process_files_mark(Profile *profile, const BuildResult *built, const Opens *opens, const char *root,
                   guint64 start_ns)
{
        g_autoptr(GHashTable) files = files_by_key(profile, built);
        const GPtrArray *opened = opens ? opens_files(opens) : NULL;
        const gchar *last = NULL;

        for (guint i = 0; i < profile->processes->len; i++) {
                const gchar *path = g_array_index(profile->processes, ProfileProcess, i).executable;
                g_autofree gchar *inside = NULL;

                /* Children have their parent's, often in a row. */
                if (!*path || g_strcmp0(path, last) == 0)
                        continue;
                last = path;
                mark_executed(profile, files, path);
                if (root && *path == '/') {
                        inside = g_strconcat(root, path, NULL);
                        mark_executed(profile, files, inside);
                }
        }
        for (guint i = 0; opened && i < opened->len; i++) {
                const OpenedFile *open = opened->pdata[i];
                ProfileFile *file = find(profile, files, open->dev, open->inode);

                if (file && !file->opened_us)
                        file->opened_us =
                                open->first_ns > start_ns ? (open->first_ns - start_ns) / 1000 : 0;
        }
}
