// SPDX-License-Identifier: GPL-2.0-or-later
/* The state directory. */
#include "common/state.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.h"
#include "common/file.h"
#include "common/profile.h"
#include "common/quote.h"

#define PENDING_FOLDER "/run/headstart/pending"

gchar *
state_dir(const char *option)
{
        if (option)
                return g_strdup(option);
        if (geteuid() == 0)
                return g_strdup(STATE_DIR_SYSTEM);
        return g_build_filename(g_get_user_state_dir(), "headstart", NULL);
}

static gchar *
state_file(const char *state, const char *folder, const char *name, const char *ending)
{
        g_autofree gchar *file = g_strconcat(name, ending, NULL);

        return g_build_filename(state, folder, file, NULL);
}

gchar *
state_profile_path(const char *state, const char *name)
{
        return state_file(state, "profiles", name, ".profile");
}

gchar *
state_pack_path(const char *state, const char *name)
{
        return state_file(state, "packs", name, ".pack");
}

gboolean
state_prepare(const char *state, GError **error)
{
        static const struct {
                const char *folder;
                mode_t mode;
        } folders[] = {{"profiles", 0755}, {"packs", 0700}, {"stats", 0755}};

        for (guint i = 0; i < G_N_ELEMENTS(folders); i++) {
                g_autofree gchar *path = g_build_filename(state, folders[i].folder, NULL);

                if ((g_mkdir_with_parents(state, 0755) < 0 || mkdir(path, folders[i].mode) < 0) &&
                    errno != EEXIST) {
                        error_set_errno(error, COMMON_ERROR_FAILED, errno, "cannot make the folder",
                                        path);
                        return FALSE;
                }
        }
        return TRUE;
}

gboolean
state_file_check(const char *path, GError **error)
{
        g_autofree gchar *quoted = NULL;
        struct stat st;

        if (lstat(path, &st) < 0 || S_ISREG(st.st_mode))
                return TRUE;
        quoted = path_quote(path);
        g_set_error(error, COMMON_ERROR, COMMON_ERROR_INPUT,
                    "%s is not a regular file: remove it first", quoted);
        return FALSE;
}

static gchar *
pending_folder(const char *state)
{
        g_autofree gchar *absolute = g_canonicalize_filename(state, NULL);
        g_autofree gchar *escaped = g_uri_escape_string(absolute, NULL, FALSE);

        return g_build_filename(PENDING_FOLDER, escaped, NULL);
}

gchar *
state_pending_path(const char *state, const char *name, GError **error)
{
        g_autofree gchar *folder = pending_folder(state);
        g_autofree gchar *file = g_strconcat(name, ".profile", NULL);

        if (g_mkdir_with_parents(folder, 0755) < 0) {
                error_set_errno(error, COMMON_ERROR_FAILED, errno, "cannot make the folder",
                                folder);
                return NULL;
        }
        return g_build_filename(folder, file, NULL);
}

static gboolean
adopt(const char *from, const char *to)
{
        g_autoptr(GBytes) bytes = NULL;
        struct stat waiting, there;

        if (stat(from, &waiting) != 0)
                return FALSE;
        if (stat(to, &there) != 0 || there.st_mtime <= waiting.st_mtime) {
                bytes = file_read(from, G_MAXUINT32, NULL);
                if (!bytes || !file_replace(to, g_bytes_get_data(bytes, NULL),
                                            g_bytes_get_size(bytes), 0644, NULL))
                        return FALSE;
        }
        return unlink(from) == 0 && bytes;
}

guint
state_adopt_pending(const char *state)
{
        g_autofree gchar *folder = NULL;
        g_autoptr(GDir) dir = NULL;
        const char *file;
        guint n = 0;

        if (access(PENDING_FOLDER, W_OK) != 0)
                return 0;
        folder = pending_folder(state);
        dir = g_dir_open(folder, 0, NULL);
        while (dir && (file = g_dir_read_name(dir))) {
                g_autofree gchar *from = g_build_filename(folder, file, NULL);
                g_autofree gchar *to = g_build_filename(state, "profiles", file, NULL);

                if (g_str_has_suffix(file, ".profile") && state_prepare(state, NULL))
                        n += adopt(from, to);
        }
        if (dir)
                rmdir(folder);
        return n;
}

static gint
compare_names(gconstpointer a, gconstpointer b)
{
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

GPtrArray *
state_list(const char *state, GError **error)
{
        g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
        g_autofree gchar *folder = g_build_filename(state, "profiles", NULL);
        g_autoptr(GError) failure = NULL;
        g_autoptr(GDir) dir = g_dir_open(folder, 0, &failure);
        const char *file;

        if (!dir) {
                if (g_error_matches(failure, G_FILE_ERROR, G_FILE_ERROR_NOENT))
                        return g_steal_pointer(&names);
                error_set_errno(error, COMMON_ERROR_FAILED, errno ? errno : EIO,
                                "cannot read the folder", folder);
                return NULL;
        }
        while ((file = g_dir_read_name(dir))) {
                g_autofree gchar *name = NULL;

                if (!g_str_has_suffix(file, ".profile"))
                        continue;
                name = g_strndup(file, strlen(file) - strlen(".profile"));
                if (profile_name_valid(name))
                        g_ptr_array_add(names, g_steal_pointer(&name));
        }
        g_ptr_array_sort(names, compare_names);
        return g_steal_pointer(&names);
}
