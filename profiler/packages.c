// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Packages of files: see packages.h. Each list is read once, line by line; a line counts only when
 * it is one of the paths asked for. On a system with merged /usr lists still say /bin/ls for what
 * is /usr/bin/ls.
 */
#include "profiler/packages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/error.h"

#define DPKG_LISTS "/var/lib/dpkg/info"

typedef struct {
        GHashTable *wanted; /* path -> GArray of guint indexes */
        GPtrArray *names;
} Search;

static void
want(Search *search, const char *path, guint index)
{
        GArray *indexes = g_hash_table_lookup(search->wanted, path);

        if (!indexes) {
                indexes = g_array_new(FALSE, FALSE, sizeof(guint));
                g_hash_table_insert(search->wanted, g_strdup(path), indexes);
        }
        g_array_append_val(indexes, index);
}

static void
found(Search *search, const char *path, const char *package)
{
        const GArray *indexes = g_hash_table_lookup(search->wanted, path);

        for (guint i = 0; indexes && i < indexes->len; i++) {
                gpointer *name = &search->names->pdata[g_array_index(indexes, guint, i)];

                if (!*name)
                        *name = g_strdup(package);
        }
}

static void
read_list(Search *search, const char *path, const char *package)
{
        g_autofree gchar *text = NULL;
        gchar *line, *end;

        if (!g_file_get_contents(path, &text, NULL, NULL))
                return;
        for (line = text; line && *line; line = end ? end + 1 : NULL) {
                end = strchr(line, '\n');
                if (end)
                        *end = '\0';
                found(search, line, package);
        }
}

static void
read_dpkg(Search *search, const char *dir_path, GDir *dir)
{
        const gchar *name;

        while ((name = g_dir_read_name(dir))) {
                g_autofree gchar *path = NULL, *package = NULL;
                gchar *colon;

                if (!g_str_has_suffix(name, ".list"))
                        continue;
                path = g_build_filename(dir_path, name, NULL);
                package = g_strndup(name, strlen(name) - strlen(".list"));
                colon = strchr(package, ':'); /* NAME:ARCHITECTURE */
                if (colon)
                        *colon = '\0';
                read_list(search, path, package);
        }
}

static gboolean
has_rpm(const char *root)
{
        static const char *const PLACES[] = {"/var/lib/rpm", "/usr/lib/sysimage/rpm"};
        g_autofree gchar *program = g_find_program_in_path("rpm");

        for (guint i = 0; program && i < G_N_ELEMENTS(PLACES); i++) {
                g_autofree gchar *dir = g_strconcat(root, PLACES[i], NULL);

                if (access(dir, R_OK) == 0)
                        return TRUE;
        }
        return FALSE;
}

/* All files of all packages in one run, a line each: NAME, a tab, the path. */
static gboolean
read_rpm(Search *search, const char *root, GError **error)
{
        const gchar *argv[] = {"rpm", "--root", *root ? root : "/",
                               "-qa", "--qf",   "[%{=NAME}\\t%{FILENAMES}\\n]",
                               NULL};
        g_autofree gchar *out = NULL;
        gint status;

        if (!g_spawn_sync(NULL, (gchar **)argv, NULL,
                          G_SPAWN_SEARCH_PATH | G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL, &out, NULL,
                          &status, error) ||
            !g_spawn_check_wait_status(status, error)) {
                g_prefix_error(error, "rpm cannot list its files: ");
                return FALSE;
        }
        for (gchar *line = out, *end; line && *line; line = end ? end + 1 : NULL) {
                gchar *tab;

                end = strchr(line, '\n');
                if (end)
                        *end = '\0';
                tab = strchr(line, '\t');
                if (!tab)
                        continue;
                *tab = '\0';
                found(search, tab + 1, line);
        }
        return TRUE;
}

GPtrArray *
packages_of(const char *root, const GPtrArray *paths, GError **error)
{
        g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
        g_autoptr(GHashTable) wanted = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
                                                             (GDestroyNotify)g_array_unref);
        g_autofree gchar *lists = g_strconcat(root, DPKG_LISTS, NULL);
        g_autoptr(GDir) dir = g_dir_open(lists, 0, NULL);
        Search search = {wanted, names};

        g_ptr_array_set_size(names, (gint)paths->len);
        for (guint i = 0; i < paths->len; i++) {
                const char *path = paths->pdata[i];

                if (!path)
                        continue;
                want(&search, path, i);
                if (g_str_has_prefix(path, "/usr/bin/") || g_str_has_prefix(path, "/usr/sbin/") ||
                    g_str_has_prefix(path, "/usr/lib"))
                        want(&search, path + strlen("/usr"), i);
        }
        if (dir)
                read_dpkg(&search, lists, dir);
        else if (!has_rpm(root)) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                            "%s has neither dpkg's file lists nor an rpm database; group by "
                            "directory, or name the tree of the packages with --root",
                            *root ? root : "/");
                return NULL;
        } else if (!read_rpm(&search, root, error))
                return NULL;
        return g_steal_pointer(&names);
}
