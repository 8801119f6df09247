// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Settings changed for a while, with their old values in a table that outlives a kill.
 *
 * The table is rewritten whole (temporary name, fsync, rename) before a setting is written: at any
 * moment it names at least the settings that differ. /run is a tmpfs, gone with a reboot as the
 * settings are.
 */
#include "common/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.h"
#include "common/fd.h"
#include "common/file.h"

#define FOLDER "/run/headstart"

typedef struct {
        gchar *path, *old;
} Setting;

static GPtrArray *changed; /* Setting, of this process */

static void
setting_free(gpointer data)
{
        Setting *setting = data;

        g_free(setting->path);
        g_free(setting->old);
        g_free(setting);
}

/* The start time of a process (clock ticks since boot), which tells a process id used again; 0 when
 * gone. */
static guint64
process_start_ticks(gint64 pid)
{
        g_autofree gchar *path = g_strdup_printf("/proc/%" G_GINT64_FORMAT "/stat", pid);
        g_autofree gchar *text = NULL;
        g_auto(GStrv) fields = NULL;
        const char *after;

        if (!g_file_get_contents(path, &text, NULL, NULL) || !(after = strrchr(text, ')')))
                return 0;
        fields = g_strsplit(after + 1, " ", -1);
        /* field 22 of the line; the first after the name is number 3, behind a space */
        return g_strv_length(fields) > 20 ? g_ascii_strtoull(fields[20], NULL, 10) : 0;
}

static gchar *
table_path(void)
{
        return g_strdup_printf("%s/settings-%ld-%" G_GUINT64_FORMAT, FOLDER, (long)getpid(),
                               process_start_ticks(getpid()));
}

static gboolean
table_write(GError **error)
{
        g_autofree gchar *path = table_path();
        g_autoptr(GByteArray) bytes = g_byte_array_new();

        if (g_mkdir_with_parents(FOLDER, 0755) < 0) {
                error_set_errno(error, COMMON_ERROR_FAILED, errno, "cannot make the folder",
                                FOLDER);
                return FALSE;
        }
        for (guint i = 0; i < changed->len; i++) {
                const Setting *s = changed->pdata[i];

                g_byte_array_append(bytes, (const guint8 *)s->path, strlen(s->path) + 1);
                g_byte_array_append(bytes, (const guint8 *)s->old, strlen(s->old) + 1);
        }
        return file_replace(path, bytes->data, bytes->len, 0600, error);
}

static int
setting_write(const char *path, const char *value)
{
        auto_fd int fd = open(path, O_WRONLY | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        return write(fd, value, strlen(value)) < 0 ? -errno : 0;
}

/* The value as it is written back: the chosen one where the file shows "a [b] c". */
static gchar *
setting_read(const char *path, GError **error)
{
        g_autofree gchar *text = NULL;
        gchar *open_mark, *close_mark;

        if (!g_file_get_contents(path, &text, NULL, NULL)) {
                error_set_errno(error, COMMON_ERROR_FAILED, errno ? errno : EIO, "cannot read",
                                path);
                return NULL;
        }
        g_strstrip(text);
        open_mark = strchr(text, '[');
        close_mark = open_mark ? strchr(open_mark, ']') : NULL;
        if (close_mark)
                return g_strndup(open_mark + 1, close_mark - open_mark - 1);
        return g_steal_pointer(&text);
}

gboolean
settings_change(const char *path, const char *value, GError **error)
{
        g_autofree gchar *old = setting_read(path, error);
        gboolean known = FALSE;
        int failed;

        if (!old)
                return FALSE;
        if (!changed)
                changed = g_ptr_array_new_with_free_func(setting_free);
        for (guint i = 0; i < changed->len; i++)
                known |= strcmp(((Setting *)changed->pdata[i])->path, path) == 0;
        if (strcmp(old, value) == 0)
                return TRUE;
        if (!known) {
                Setting *setting = g_new0(Setting, 1);

                setting->path = g_strdup(path);
                setting->old = g_steal_pointer(&old);
                g_ptr_array_add(changed, setting);
                if (!table_write(error)) {
                        g_ptr_array_set_size(changed, changed->len - 1);
                        return FALSE;
                }
        }
        failed = -setting_write(path, value);
        if (failed) {
                /* It has its old value: nothing to put back, which would fail as well. */
                if (!known)
                        g_ptr_array_set_size(changed, changed->len - 1);
                error_set_errno(error, COMMON_ERROR_FAILED, failed, "cannot change the setting",
                                path);
                return FALSE;
        }
        return TRUE;
}

void
settings_restore_all(void)
{
        g_autofree gchar *path = NULL;

        if (!changed || changed->len == 0)
                return;
        for (guint i = changed->len; i > 0; i--) {
                const Setting *s = changed->pdata[i - 1];
                int failed = -setting_write(s->path, s->old);

                if (failed && failed != ENOENT)
                        g_warning("cannot put %s back to %s: %s, ignoring", s->path, s->old,
                                  g_strerror(failed));
        }
        g_ptr_array_set_size(changed, 0);
        path = table_path();
        unlink(path);
}

static guint
table_repair(const char *path)
{
        g_autoptr(GBytes) bytes = file_read(path, 1 << 20, NULL);
        gsize size = 0;
        const char *data = bytes ? g_bytes_get_data(bytes, &size) : NULL, *end = data + size;
        guint repaired = 0;

        while (data && data < end) {
                const char *old = memchr(data, 0, end - data);
                const char *stop = old ? memchr(old + 1, 0, end - old - 1) : NULL;

                if (!stop)
                        break;
                /* the table is root's, in root's folder; still only kernel files are written */
                if ((g_str_has_prefix(data, "/sys/") || g_str_has_prefix(data, "/proc/sys/")) &&
                    !strstr(data, "/../") && setting_write(data, old + 1) == 0)
                        repaired++;
                data = stop + 1;
        }
        return repaired;
}

static void
instances_repair(const char *folder)
{
        g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
        const char *name;

        while (dir && (name = g_dir_read_name(dir))) {
                g_autofree gchar *path = NULL;
                gint64 pid;
                char *end;

                if (!g_str_has_prefix(name, "headstart-"))
                        continue;
                pid = g_ascii_strtoll(name + strlen("headstart-"), &end, 10);
                if (*end || pid <= 0 || kill((pid_t)pid, 0) == 0 || errno != ESRCH)
                        continue;
                path = g_build_filename(folder, name, NULL);
                rmdir(path);
        }
}

guint
settings_repair(void)
{
        g_autoptr(GDir) dir = g_dir_open(FOLDER, 0, NULL);
        const char *name;
        guint repaired = 0;

        if (geteuid() != 0)
                return 0;
        instances_repair("/sys/kernel/tracing/instances");
        while (dir && (name = g_dir_read_name(dir))) {
                g_autofree gchar *path = g_build_filename(FOLDER, name, NULL);
                gint64 pid;
                guint64 ticks = 0;
                char *end;

                if (!g_str_has_prefix(name, "settings-"))
                        continue;
                pid = g_ascii_strtoll(name + strlen("settings-"), &end, 10);
                if (*end == '-')
                        ticks = g_ascii_strtoull(end + 1, &end, 10);
                if (pid <= 0 || (*end == '\0' && process_start_ticks(pid) == ticks && ticks > 0))
                        continue;
                /* *end is '.' for the temporary file of a killed file_replace() */
                if (*end == '\0')
                        repaired += table_repair(path);
                else if (process_start_ticks(pid) > 0)
                        continue;
                unlink(path);
        }
        return repaired;
}
