// SPDX-License-Identifier: GPL-2.0-or-later
/* Which files stay, in which order: see merge.h. Their ranges are merge-ranges.c's. */
#include "profiler/merge.h"

#include <string.h>

#include "profiler/merge-internal.h"

#define SEEN_LAST (1U << PROFILE_SEEN_SHIFT)

void
merge_result_clear(MergeResult *result)
{
        g_clear_pointer(&result->changing, g_ptr_array_unref);
}

gboolean
merge_same_program(const Profile *a, const Profile *b)
{
        if (a->argv->len == 0 || b->argv->len == 0)
                return a->argv->len == b->argv->len;
        return strcmp(a->argv->pdata[0], b->argv->pdata[0]) == 0;
}

static const ProfileFs *
fs_of(const Profile *profile, guint32 fs)
{
        return &g_array_index(profile->fs, ProfileFs, fs);
}

static gchar *
path_key(const Profile *profile, const ProfileFile *file)
{
        return g_strconcat(fs_of(profile, file->fs)->uuid, ":", file->path, NULL);
}

static gchar *
inode_key(const Profile *profile, const ProfileFile *file)
{
        return g_strdup_printf("%s:%" G_GUINT64_FORMAT, fs_of(profile, file->fs)->uuid,
                               file->inode);
}

static gchar *
meta_key(const Profile *profile, const ProfileMeta *meta)
{
        return g_strdup_printf("%s:%u:%" G_GUINT64_FORMAT ":%" G_GUINT64_FORMAT,
                               fs_of(profile, meta->fs)->uuid, meta->kind, meta->inode,
                               meta->index);
}

static guint32
aged(guint32 flags)
{
        return (flags << 1) & PROFILE_SEEN_MASK;
}

/* A profile that was never merged, as it was recorded: it was seen by that start. */
static guint32
seen_by(guint32 flags)
{
        return flags & PROFILE_SEEN_MASK ? flags & PROFILE_SEEN_MASK : SEEN_LAST;
}

static void
mark_as_recorded(Profile *last)
{
        for (guint i = 0; i < last->files->len; i++) {
                ProfileFile *file = &g_array_index(last->files, ProfileFile, i);

                file->flags = (file->flags & ~(PROFILE_SEEN_MASK | PROFILE_FILE_LOW)) | SEEN_LAST;
        }
        for (guint i = 0; i < last->meta->len; i++) {
                ProfileMeta *meta = &g_array_index(last->meta, ProfileMeta, i);

                meta->flags = (guint16)((meta->flags & ~PROFILE_SEEN_MASK) | SEEN_LAST);
        }
        for (guint i = 0; last->exact && i < last->ranges->len; i++)
                g_array_index(last->ranges, ProfileRange, i).flags |= PROFILE_RANGE_EXACT;
}

static GHashTable *
index_files(const Profile *profile, const GArray *files)
{
        GHashTable *index = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

        for (guint i = 0; i < files->len; i++) {
                ProfileFile *file = &g_array_index(files, ProfileFile, i);

                g_hash_table_insert(index, path_key(profile, file), file);
        }
        return index;
}

/* What is different about the file; NULL when it is the same as it was. */
static const char *
difference(const ProfileFile *now, const ProfileFile *then)
{
        if (now->inode != then->inode ||
            (now->generation && then->generation && now->generation != then->generation))
                return "another inode";
        if (now->size_bytes != then->size_bytes)
                return "another size";
        return now->mtime_ns != then->mtime_ns ? "another modification time" : NULL;
}

/* An upgrade brings the time its package was made. */
static gboolean
written_since(const ProfileFile *now, const Profile *earlier)
{
        return now->mtime_ns / 1000 >= earlier->created_us;
}

static guint32
take_fs(Profile *last, const Profile *earlier, guint32 fs)
{
        const ProfileFs *wanted = fs_of(earlier, fs);

        for (guint32 i = 0; i < last->fs->len; i++)
                if (strcmp(fs_of(last, i)->uuid, wanted->uuid) == 0 &&
                    strcmp(fs_of(last, i)->type, wanted->type) == 0)
                        return i;
        return profile_add_fs(last, wanted->uuid, wanted->type, wanted->block_bytes);
}

typedef struct {
        Profile *last;
        const Profile *earlier;
        const MergeOptions *options;
        MergeResult *result;
        GHashTable *earlier_files, *earlier_changing; /* path key -> ProfileFile * */
        GHashTable *taken; /* inode keys of what the last start used, or may not be kept: one inode
                              must not stand under two names */
        GHashTable *left_out;
} Merge;

/* TRUE when the file is to be left out: every start finds it changed. */
static gboolean
is_changing(Merge *merge, const ProfileFile *file, const char *what)
{
        if (!what || !written_since(file, merge->earlier) ||
            (merge->options->is_program &&
             merge->options->is_program(merge->last, file, merge->options->data)))
                return FALSE;
        g_ptr_array_add(
                merge->result->changing,
                g_strdup_printf("changes at every start: %s than in the recording before", what));
        return TRUE;
}

/* Splits the files of the last start into those that stay, each with its source, and those that
 * change at every start. */
static void
sort_out_changing(Merge *merge, GArray *sources)
{
        Profile *last = merge->last;
        const ProfileFile *first = (const ProfileFile *)(gpointer)merge->earlier->files->data;
        g_autofree guint32 *moved = g_new(guint32, last->files->len + 1);
        guint stay = 0;

        for (guint i = 0; i < last->files->len; i++) {
                ProfileFile *file = &g_array_index(last->files, ProfileFile, i);
                g_autofree gchar *key = path_key(last, file);
                const ProfileFile *known = g_hash_table_lookup(merge->earlier_files, key);
                const ProfileFile *then =
                        known ? known : g_hash_table_lookup(merge->earlier_changing, key);
                const char *what = then ? difference(file, then) : NULL;
                guint32 source = known && !what ? (guint32)(known - first) : G_MAXUINT32;
                ProfileFile taken;

                g_hash_table_add(merge->taken, inode_key(last, file));
                if (then)
                        file->flags |= aged(seen_by(then->flags));
                /* what is moved out of the array leaves no path behind that would be freed twice */
                taken = *file;
                file->path = NULL;
                moved[i] = G_MAXUINT32;
                if (is_changing(merge, &taken, what)) {
                        g_array_append_val(last->changing, taken);
                        continue;
                }
                moved[i] = stay;
                g_array_index(last->files, ProfileFile, stay++) = taken;
                g_array_append_val(sources, source);
        }
        g_array_set_size(last->files, stay);
        merge_renumber(last, moved);
}

/* How many of the last three starts are left to have used it, as flags; 0 = it is dropped. */
static guint32
kept_flags(const Merge *merge, const ProfileFile *file)
{
        g_autofree gchar *key = path_key(merge->earlier, file);
        g_autofree gchar *inode = inode_key(merge->earlier, file);

        if (g_hash_table_contains(merge->left_out, key) ||
            g_hash_table_contains(merge->taken, inode))
                return 0;
        /* absence from an incomplete recording proves nothing */
        return merge->last->complete ? aged(seen_by(file->flags)) : seen_by(file->flags);
}

static gboolean
in_last(const Merge *merge, GHashTable *last_files, const ProfileFile *file)
{
        g_autofree gchar *key = path_key(merge->earlier, file);

        return g_hash_table_contains(last_files, key);
}

static void
keep_low_files(Merge *merge, GArray *sources, guint64 base_us)
{
        Profile *last = merge->last;
        const Profile *earlier = merge->earlier;
        g_autoptr(GHashTable) last_files = index_files(last, last->files);
        g_autoptr(GHashTable) last_changing = index_files(last, last->changing);
        guint n_changing = last->changing->len;

        for (guint i = 0; i < earlier->files->len; i++) {
                ProfileFile file = g_array_index(earlier->files, ProfileFile, i);

                if (in_last(merge, last_files, &file) || in_last(merge, last_changing, &file))
                        continue;
                file.flags = (file.flags & ~PROFILE_SEEN_MASK) | kept_flags(merge, &file);
                if (!(file.flags & PROFILE_SEEN_MASK)) {
                        merge->result->dropped++;
                        continue;
                }
                file.fs = take_fs(last, earlier, file.fs);
                file.flags |= PROFILE_FILE_LOW;
                file.first_use_us = base_us + merge->result->kept_low++;
                file.opened_us = file.last_use_us = 0;
                profile_add_file(last, &file);
                g_array_append_val(sources, i);
        }
        /* entries appended here lie behind those of the last start */
        for (guint i = 0; i < earlier->changing->len; i++) {
                ProfileFile file = g_array_index(earlier->changing, ProfileFile, i);

                if (in_last(merge, last_files, &file) || in_last(merge, last_changing, &file))
                        continue;
                file.flags = (file.flags & ~PROFILE_SEEN_MASK) | kept_flags(merge, &file);
                if (!(file.flags & PROFILE_SEEN_MASK))
                        continue;
                file.fs = take_fs(last, earlier, file.fs);
                file.path = g_strdup(file.path);
                g_array_append_val(last->changing, file);
        }
        g_assert(merge->result->changing->len == n_changing);
}

static void
keep_metadata(Merge *merge, guint64 base_us)
{
        Profile *last = merge->last;
        const Profile *earlier = merge->earlier;
        g_autoptr(GHashTable) known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        g_autoptr(GHashTable) before = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

        for (guint i = 0; i < earlier->meta->len; i++) {
                ProfileMeta *meta = &g_array_index(earlier->meta, ProfileMeta, i);

                g_hash_table_insert(before, meta_key(earlier, meta), meta);
        }
        for (guint i = 0; i < last->meta->len; i++) {
                ProfileMeta *meta = &g_array_index(last->meta, ProfileMeta, i);
                gchar *key = meta_key(last, meta);
                const ProfileMeta *then = g_hash_table_lookup(before, key);

                if (then)
                        meta->flags |= (guint16)aged(seen_by(then->flags));
                g_hash_table_add(known, key);
        }
        for (guint i = 0; i < earlier->meta->len; i++) {
                ProfileMeta meta = g_array_index(earlier->meta, ProfileMeta, i);
                g_autofree gchar *key = meta_key(earlier, &meta);
                guint32 seen = last->complete ? aged(seen_by(meta.flags)) : seen_by(meta.flags);

                if (!seen || !(meta.flags & PROFILE_META_COMPUTED) ||
                    g_hash_table_contains(known, key))
                        continue;
                meta.fs = take_fs(last, earlier, meta.fs);
                meta.flags = (guint16)(PROFILE_META_COMPUTED | seen);
                meta.first_use_us = base_us;
                g_array_append_val(last->meta, meta);
        }
}

/* After everything that the last start did. */
static guint64
end_of(const Profile *last)
{
        guint64 end_us = last->elapsed_us;

        if (last->files->len)
                end_us = MAX(
                        end_us,
                        g_array_index(last->files, ProfileFile, last->files->len - 1).first_use_us);
        if (last->ranges->len)
                end_us =
                        MAX(end_us, g_array_index(last->ranges, ProfileRange, last->ranges->len - 1)
                                            .first_use_us);
        for (guint i = 0; i < last->meta->len; i++)
                end_us = MAX(end_us, g_array_index(last->meta, ProfileMeta, i).first_use_us);
        return end_us + 1;
}

void
merge_profile(Profile *last, const Profile *earlier, const MergeOptions *options, MergeResult *ret)
{
        static const MergeOptions none = {0};
        Merge merge = {.last = last,
                       .earlier = earlier,
                       .options = options ? options : &none,
                       .result = ret};
        g_autoptr(GArray) sources = NULL; /* index in earlier->files of each file, or none */
        guint64 base_us;

        *ret = (MergeResult){.changing = g_ptr_array_new_with_free_func(g_free)};
        mark_as_recorded(last);
        if (!earlier)
                return;
        merge.earlier_files = index_files(earlier, earlier->files);
        merge.earlier_changing = index_files(earlier, earlier->changing);
        merge.taken = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        merge.left_out = g_hash_table_new(g_str_hash, g_str_equal);
        for (guint i = 0; merge.options->left_out && i < merge.options->left_out->len; i++)
                g_hash_table_add(merge.left_out, merge.options->left_out->pdata[i]);
        sources = g_array_new(FALSE, TRUE, sizeof(guint32));

        base_us = end_of(last);
        g_array_set_size(last->changing, 0);
        sort_out_changing(&merge, sources);
        keep_low_files(&merge, sources, base_us);
        ret->kept_ranges =
                merge_ranges(last, earlier, (const guint32 *)(gpointer)sources->data, base_us);
        keep_metadata(&merge, base_us);

        g_hash_table_unref(merge.earlier_files);
        g_hash_table_unref(merge.earlier_changing);
        g_hash_table_unref(merge.taken);
        g_hash_table_unref(merge.left_out);
}
