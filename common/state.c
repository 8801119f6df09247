// SPDX-License-Identifier: GPL-2.0-or-later
/* The state directory. */
#include "common/state.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.h"
#include "common/profile.h"

gchar *
state_dir(const char *option)
{
        if (option)
                return g_strdup(option);
        if (geteuid() == 0)
                return g_strdup("/var/lib/headstart");
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
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_FAILED, "%s", failure->message);
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
