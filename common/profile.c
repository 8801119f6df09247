// SPDX-License-Identifier: GPL-2.0-or-later
/* The profile type: making, adding up and checking it. Its file is common/profile-file.c. */
#include "common/profile.h"

#include <string.h>

#include "common/error.h"
#include "common/quote.h"

static void
fs_clear(gpointer data)
{
        ProfileFs *fs = data;

        g_free(fs->uuid);
        g_free(fs->type);
}

static void
file_clear(gpointer data)
{
        g_free(((ProfileFile *)data)->path);
}

static void
process_clear(gpointer data)
{
        ProfileProcess *process = data;

        g_free(process->comm);
        g_free(process->executable);
}

static void
mark_clear(gpointer data)
{
        g_free(((ProfileMark *)data)->text);
}

Profile *
profile_new(const char *name)
{
        Profile *profile = g_new0(Profile, 1);

        profile->name = g_strdup(name);
        profile->argv = g_ptr_array_new_with_free_func(g_free);
        profile->complete = TRUE;
        profile->page_bytes = 4096;
        profile->fs = g_array_new(FALSE, TRUE, sizeof(ProfileFs));
        g_array_set_clear_func(profile->fs, fs_clear);
        profile->files = g_array_new(FALSE, TRUE, sizeof(ProfileFile));
        g_array_set_clear_func(profile->files, file_clear);
        profile->changing = g_array_new(FALSE, TRUE, sizeof(ProfileFile));
        g_array_set_clear_func(profile->changing, file_clear);
        profile->ranges = g_array_new(FALSE, TRUE, sizeof(ProfileRange));
        profile->meta = g_array_new(FALSE, TRUE, sizeof(ProfileMeta));
        profile->processes = g_array_new(FALSE, TRUE, sizeof(ProfileProcess));
        g_array_set_clear_func(profile->processes, process_clear);
        profile->waits = g_array_new(FALSE, TRUE, sizeof(ProfileWait));
        profile->marks = g_array_new(FALSE, TRUE, sizeof(ProfileMark));
        g_array_set_clear_func(profile->marks, mark_clear);
        return profile;
}

void
profile_free(Profile *profile)
{
        if (!profile)
                return;
        g_free(profile->name);
        g_ptr_array_unref(profile->argv);
        g_array_unref(profile->fs);
        g_array_unref(profile->files);
        g_array_unref(profile->changing);
        g_array_unref(profile->ranges);
        g_array_unref(profile->meta);
        g_array_unref(profile->processes);
        g_array_unref(profile->waits);
        g_array_unref(profile->marks);
        g_free(profile);
}

static gboolean
name_byte_allowed(char c)
{
        return g_ascii_isalnum(c) || (c != '\0' && strchr("._+@:-", c) != NULL);
}

gboolean
profile_name_valid(const char *name)
{
        gsize length = strlen(name);

        if (length < 1 || length > 100 || name[0] == '.' || name[0] == '-')
                return FALSE;
        for (gsize i = 0; i < length; i++)
                if (!name_byte_allowed(name[i]))
                        return FALSE;
        return TRUE;
}

gchar *
profile_name_from_command(const char *command)
{
        const char *slash = strrchr(command, '/');
        gchar *name = g_strndup(slash && slash[1] ? slash + 1 : command, 100);

        for (gchar *p = name; *p; p++)
                if (!name_byte_allowed(*p))
                        *p = '_';
        if (name[0] == '.' || name[0] == '-')
                name[0] = '_';
        if (name[0] == '\0') {
                g_free(name);
                name = g_strdup("_");
        }
        return name;
}

guint32
profile_add_fs(Profile *profile, const char *uuid, const char *type, guint32 block_bytes)
{
        ProfileFs fs = {.uuid = g_strdup(uuid), .type = g_strdup(type), .block_bytes = block_bytes};

        g_array_append_val(profile->fs, fs);
        return profile->fs->len - 1;
}

guint32
profile_add_file(Profile *profile, const ProfileFile *file)
{
        ProfileFile copy = *file;

        copy.path = g_strdup(file->path);
        g_array_append_val(profile->files, copy);
        return profile->files->len - 1;
}

guint32
profile_add_process(Profile *profile, const ProfileProcess *process)
{
        ProfileProcess copy = *process;

        copy.comm = g_strdup(process->comm ? process->comm : "");
        copy.executable = g_strdup(process->executable ? process->executable : "");
        g_array_append_val(profile->processes, copy);
        return profile->processes->len;
}

void
profile_add_mark(Profile *profile, const ProfileMark *mark)
{
        ProfileMark copy = *mark;

        copy.text = g_strdup(mark->text);
        g_array_append_val(profile->marks, copy);
}

static gboolean
same_command(const Profile *a, const Profile *b)
{
        if (a->argv->len != b->argv->len)
                return FALSE;
        for (guint i = 0; i < a->argv->len; i++)
                if (strcmp(a->argv->pdata[i], b->argv->pdata[i]) != 0)
                        return FALSE;
        return TRUE;
}

void
profile_keep_warm(Profile *profile, const Profile *earlier)
{
        if (earlier->warm_us == 0 || !same_command(profile, earlier))
                return;
        /* the weights make the last few recordings count, an odd one of them little */
        if (profile->warm_us > 0)
                profile->warm_us = (3 * earlier->warm_us + profile->warm_us) / 4;
        else
                profile->warm_us = earlier->warm_us;
}

guint64
profile_used_bytes(const Profile *profile)
{
        guint64 sum = 0;

        for (guint i = 0; i < profile->ranges->len; i++) {
                const ProfileRange *range = &g_array_index(profile->ranges, ProfileRange, i);
                const ProfileFile *file = &g_array_index(profile->files, ProfileFile, range->file);

                if (range->offset_bytes < file->size_bytes)
                        sum += MIN(range->length_bytes, file->size_bytes - range->offset_bytes);
        }
        return sum;
}

guint64
profile_file_bytes(const Profile *profile)
{
        guint64 sum = 0;

        for (guint i = 0; i < profile->files->len; i++)
                sum += g_array_index(profile->files, ProfileFile, i).size_bytes;
        return sum;
}

const char *
profile_source_name(ProfileSource source)
{
        static const char *const names[] = {"used-pages", "read-in", "opens"};

        return (guint)source < G_N_ELEMENTS(names) ? names[source] : "unknown";
}

const char *
profile_cause_name(ProfileCause cause)
{
        static const char *const names[] = {"read", "fault", "map", "read-in", "open"};

        return (guint)cause < G_N_ELEMENTS(names) ? names[cause] : "unknown";
}

const char *
profile_wait_reason_name(ProfileWaitReason reason)
{
        static const char *const names[] = {"runnable", "disk",  "lock",  "pipe",
                                            "terminal", "sleep", "child", "other"};

        return (guint)reason < G_N_ELEMENTS(names) ? names[reason] : "unknown";
}

const char *
profile_meta_kind_name(ProfileMetaKind kind)
{
        static const char *const names[] = {"inode",       "dir-block",     "extent-node",
                                            "xattr-block", "symlink-block", "block-bitmap",
                                            "inode-bitmap"};

        return (guint)kind < G_N_ELEMENTS(names) ? names[kind] : "unknown";
}

#define INVALID(...)                                                                               \
        do {                                                                                       \
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_INPUT, __VA_ARGS__);                 \
                return FALSE;                                                                      \
        } while (0)

static gboolean
path_valid(const char *path)
{
        gsize length = strlen(path);

        if (length < 2 || length > PROFILE_PATH_MAX || path[0] != '/')
                return FALSE;
        for (const char *p = path; p;) {
                const char *part = p + 1, *next = strchr(part, '/');
                gsize n = next ? (gsize)(next - part) : strlen(part);

                if (n == 0 || (n == 1 && part[0] == '.') || (n == 2 && !strncmp(part, "..", 2)))
                        return FALSE;
                p = next;
        }
        return TRUE;
}

static gint
compare_place(gconstpointer a, gconstpointer b)
{
        const ProfileRange *x = a, *y = b;

        if (x->file != y->file)
                return x->file < y->file ? -1 : 1;
        return (x->offset_bytes > y->offset_bytes) - (x->offset_bytes < y->offset_bytes);
}

static gboolean
process_valid(const Profile *profile, guint32 process)
{
        return process <= profile->processes->len;
}

static gboolean
validate_processes(const Profile *profile, GError **error)
{
        guint64 last_us = 0;

        for (guint i = 0; i < profile->processes->len; i++) {
                const ProfileProcess *p = &g_array_index(profile->processes, ProfileProcess, i);

                if (p->parent > i)
                        INVALID("process %u comes before its parent", i);
        }
        for (guint i = 0; i < profile->waits->len; i++) {
                const ProfileWait *w = &g_array_index(profile->waits, ProfileWait, i);

                if (!process_valid(profile, w->process) || w->reason > PROFILE_WAIT_OTHER ||
                    w->file > profile->files->len || w->start_us < last_us)
                        INVALID("wait %u is not valid", i);
                last_us = w->start_us;
        }
        last_us = 0;
        for (guint i = 0; i < profile->marks->len; i++) {
                const ProfileMark *m = &g_array_index(profile->marks, ProfileMark, i);

                if (!process_valid(profile, m->process) || m->time_us < last_us)
                        INVALID("mark %u is not valid", i);
                last_us = m->time_us;
        }
        return TRUE;
}

static gboolean
validate_ranges(const Profile *profile, GError **error)
{
        g_autoptr(GArray) sorted = NULL;
        guint64 page = profile->page_bytes, last_us = 0;

        for (guint i = 0; i < profile->ranges->len; i++) {
                const ProfileRange *r = &g_array_index(profile->ranges, ProfileRange, i);
                const ProfileFile *file;

                if (r->file >= profile->files->len)
                        INVALID("range %u names file %u of %u", i, r->file, profile->files->len);
                file = &g_array_index(profile->files, ProfileFile, r->file);
                if (r->length_bytes == 0 || r->offset_bytes > G_MAXINT64 ||
                    r->length_bytes > (guint64)G_MAXINT64 - r->offset_bytes)
                        INVALID("range %u is empty or beyond 2^63", i);
                if (r->offset_bytes % page || r->length_bytes % page)
                        INVALID("range %u is not of whole pages", i);
                if (r->offset_bytes + r->length_bytes > file->size_bytes + page)
                        INVALID("range %u ends beyond its file", i);
                if (r->cause > PROFILE_CAUSE_OPEN)
                        INVALID("range %u has the unknown cause %u", i, r->cause);
                if (!process_valid(profile, r->process))
                        INVALID("range %u names process %u of %u", i, r->process,
                                profile->processes->len);
                if (r->first_use_us < last_us)
                        INVALID("range %u is out of order", i);
                last_us = r->first_use_us;
        }
        if (profile->ranges->len < 2)
                return TRUE;
        sorted = g_array_copy(profile->ranges);
        g_array_sort(sorted, compare_place);
        for (guint i = 1; i < sorted->len; i++) {
                const ProfileRange *a = &g_array_index(sorted, ProfileRange, i - 1);
                const ProfileRange *b = &g_array_index(sorted, ProfileRange, i);

                if (a->file == b->file && a->offset_bytes + a->length_bytes > b->offset_bytes)
                        INVALID("two ranges of file %u overlap", a->file);
        }
        return TRUE;
}

gboolean
profile_validate(const Profile *profile, GError **error)
{
        guint64 last_us = 0;

        if (!profile_name_valid(profile->name)) {
                g_autofree gchar *quoted = path_quote(profile->name);

                INVALID("the name %s is not allowed", quoted);
        }
        if (profile->source > PROFILE_SOURCE_OPENS)
                INVALID("unknown source %u", (guint)profile->source);
        if (profile->page_bytes < 512 || profile->page_bytes > (1U << 20) ||
            (profile->page_bytes & (profile->page_bytes - 1)))
                INVALID("a page of %u bytes", profile->page_bytes);
        if (profile->files->len > PROFILE_FILES_MAX || profile->ranges->len > PROFILE_RANGES_MAX ||
            profile->changing->len > PROFILE_FILES_MAX || profile->meta->len > PROFILE_RANGES_MAX ||
            profile->processes->len > PROFILE_FILES_MAX ||
            profile->waits->len > PROFILE_RANGES_MAX || profile->marks->len > PROFILE_FILES_MAX)
                INVALID("too many files, ranges or metadata objects");
        for (guint i = 0; i < profile->fs->len; i++) {
                const ProfileFs *fs = &g_array_index(profile->fs, ProfileFs, i);

                if (strlen(fs->uuid) > 64 || strlen(fs->type) > 64 || fs->block_bytes > (1U << 20))
                        INVALID("file system %u is not valid", i);
        }
        for (guint i = 0; i < profile->files->len; i++) {
                const ProfileFile *file = &g_array_index(profile->files, ProfileFile, i);

                if (file->fs >= profile->fs->len)
                        INVALID("file %u names file system %u of %u", i, file->fs,
                                profile->fs->len);
                if (!path_valid(file->path))
                        INVALID("the path of file %u is not valid", i);
                if (file->size_bytes > (guint64)G_MAXINT64 - profile->page_bytes)
                        INVALID("file %u is larger than 2^63 bytes", i);
                if (file->first_use_us < last_us)
                        INVALID("file %u is out of order", i);
                last_us = file->first_use_us;
        }
        for (guint i = 0; i < profile->changing->len; i++) {
                const ProfileFile *file = &g_array_index(profile->changing, ProfileFile, i);

                if (file->fs >= profile->fs->len || !path_valid(file->path))
                        INVALID("changing file %u is not valid", i);
        }
        for (guint i = 0; i < profile->meta->len; i++) {
                const ProfileMeta *meta = &g_array_index(profile->meta, ProfileMeta, i);

                if (meta->fs >= profile->fs->len || meta->kind > PROFILE_META_INODE_BITMAP)
                        INVALID("metadata object %u is not valid", i);
        }
        return validate_processes(profile, error) && validate_ranges(profile, error);
}
