// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where a recording's accesses come from, decided here and now:
 *
 *     events of used pages  ->  events of pages read in, readahead lowered (and what of the files
 *     opened is cached at the end)  ->  opens, and what of them is cached  ->  opens alone
 *
 * Each step down is said once and stands in the result.
 */
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>

#include "common/error.h"
#include "profiler/quiet.h"
#include "profiler/record-internal.h"

/* Without events of used pages, readahead is kept so small that what is read in is about what is
 * used. */
#define READ_IN_READAHEAD_KB 16U
#define READAHEAD_WAIT_S 90U

#define CAPABILITY_DAC_OVERRIDE 1
#define CAPABILITY_DAC_READ_SEARCH 2
#define CAPABILITY_FOWNER 3
#define CAPABILITY_SYS_ADMIN 21

void
record_note(const Recording *rec, const char *format, ...)
{
        g_autofree gchar *text = NULL;
        va_list args;

        va_start(args, format);
        text = g_strdup_vprintf(format, args);
        va_end(args);
        if (rec->options->note)
                rec->options->note(text, rec->options->note_data);
}

static gboolean
read_capabilities(guint64 *ret_effective)
{
        g_autofree gchar *text = NULL;
        const gchar *line;

        if (!g_file_get_contents("/proc/self/status", &text, NULL, NULL) ||
            !(line = strstr(text, "\nCapEff:")))
                return FALSE;
        *ret_effective = g_ascii_strtoull(line + strlen("\nCapEff:"), NULL, 16);
        return TRUE;
}

gboolean
record_check_privilege(GError **error)
{
        static const struct {
                guint bit;
                const char *name;
        } NEEDED[] = {
                {CAPABILITY_SYS_ADMIN, "CAP_SYS_ADMIN"},
                {CAPABILITY_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH"},
        };
        guint64 effective;

        if (!read_capabilities(&effective)) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                            "/proc is not mounted; recording needs it");
                return FALSE;
        }
        for (guint i = 0; i < G_N_ELEMENTS(NEEDED); i++) {
                if (effective & ((guint64)1 << NEEDED[i].bit))
                        continue;
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                            geteuid() == 0 ? "recording needs %s, which root does not have here (a "
                                             "container or a service took it away)"
                                           : "recording needs %s; run it as root, for example "
                                             "with sudo",
                            NEEDED[i].name);
                return FALSE;
        }
        return TRUE;
}

/* mincore(2) tells the truth to a file's owner and to those who may write it, and to others that
 * all is resident. */
static gboolean
residency_is_told(void)
{
        guint64 effective = 0;

        return read_capabilities(&effective) &&
               (effective &
                ((guint64)1 << CAPABILITY_FOWNER | (guint64)1 << CAPABILITY_DAC_OVERRIDE)) != 0;
}

gboolean
record_kernel_at_least(int major_number, int minor_number)
{
        struct utsname name;
        int found_major = 0, found_minor = 0;

        if (uname(&name) != 0 || sscanf(name.release, "%d.%d", &found_major, &found_minor) != 2)
                return FALSE;
        return found_major > major_number ||
               (found_major == major_number && found_minor >= minor_number);
}

static gboolean
watch_opens(Recording *rec, GError **error)
{
        gboolean alone = rec->source == PROFILE_SOURCE_OPENS;
        OpensOptions options = {
                .mounts = rec->mounts,
                .root = rec->options->root,
                .all = rec->options->whole_machine || rec->source != PROFILE_SOURCE_USED_PAGES,
                .handles = rec->source == PROFILE_SOURCE_USED_PAGES,
                .residency = rec->by_residency,
                .late_mounts = rec->options->whole_machine,
                .limited_queue = rec->options->limited_queue,
        };
        g_autoptr(GPtrArray) refused = g_ptr_array_new_with_free_func(g_free);
        g_autoptr(GError) local = NULL;

        if (options.all && !rec->options->whole_machine)
                options.command = rec->result->started.pid;
        rec->opens = opens_new(&options, refused, &local);
        for (guint i = 0; i < refused->len; i++)
                record_note(rec, "opens on %s, not watched there", (const char *)refused->pdata[i]);
        if (rec->opens)
                return TRUE;
        if (alone) {
                g_propagate_error(error, g_steal_pointer(&local));
                return FALSE;
        }
        record_note(rec, "%s; files on file systems other than ext4 will have no names",
                    local->message);
        return TRUE;
}

static gboolean
fall_back_to_opens(Recording *rec, const GError *why, GError **error)
{
        g_autoptr(GError) opens_error = NULL;

        rec->source = PROFILE_SOURCE_OPENS;
        rec->by_residency = residency_is_told();
        if (!watch_opens(rec, &opens_error)) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED, "%s; and %s",
                            why->message, opens_error->message);
                return FALSE;
        }
        record_note(rec, "%s: recording only which files are opened%s", why->message,
                    rec->by_residency ? ", and what of them is in the page cache at the end" : "");
        if (rec->options->exact && !rec->by_residency)
                record_note(rec, "--exact has no effect then");
        if (rec->options->until) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                            "--until needs tracing: %s", why->message);
                return FALSE;
        }
        return TRUE;
}

gboolean
record_choose_source(Recording *rec, GError **error)
{
        g_autoptr(GError) local = NULL;

        rec->trace = trace_new(rec->options->whole_machine ? 0 : rec->result->started.pid,
                               rec->options->until, rec->options->buffer_kb, &local);
        if (!rec->trace)
                return fall_back_to_opens(rec, local, error);
        rec->source = trace_source(rec->trace);
        if (rec->source == PROFILE_SOURCE_READ_IN)
                record_note(rec,
                            "the kernel lacks %s: recording what is read in, with the kernel's "
                            "readahead turned down",
                            trace_missing(rec->trace));
        return watch_opens(rec, error);
}

static void
note_inode_readahead(Recording *rec)
{
        rec->inode_readahead = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
        for (guint i = 0; i < rec->mounts->len; i++) {
                const Mount *mount = rec->mounts->pdata[i];
                guint64 *dev;

                if (major(mount->dev) == 0)
                        continue;
                dev = g_new(guint64, 1);
                *dev = mount->dev;
                g_hash_table_replace(rec->inode_readahead, dev,
                                     GUINT_TO_POINTER(quiet_inode_readahead_blocks(mount->dev)));
        }
}

gboolean
record_change_settings(Recording *rec, GError **error)
{
        gboolean exact = rec->options->exact;
        gboolean opens_alone = rec->source == PROFILE_SOURCE_OPENS && !rec->by_residency;
        g_autoptr(GError) local = NULL;

        note_inode_readahead(rec);
        if (opens_alone || (!exact && rec->source == PROFILE_SOURCE_USED_PAGES))
                return TRUE;
        if (!quiet_lock(READAHEAD_WAIT_S, error))
                return FALSE;
        if (exact && rec->source == PROFILE_SOURCE_USED_PAGES) {
                gboolean one_page = quiet_fault_around();

                /* Then each page touched makes an event of its own, and readahead may stay. From
                 * Linux 6.18 on a fault still maps the whole folio, and readahead makes large
                 * ones. */
                rec->by_faults = one_page && !record_kernel_at_least(6, 18);
                if (rec->by_faults)
                        return TRUE;
        }
        if (exact) {
                if (rec->options->previous)
                        quiet_evict(rec->mounts, rec->options->previous);
                return quiet_readahead(rec->mounts, 0, TRUE, error);
        }
        if (!quiet_readahead(rec->mounts, READ_IN_READAHEAD_KB, FALSE, &local))
                record_note(rec, "%s, ignoring: the profile will hold readahead too",
                            local->message);
        return TRUE;
}

/* A file system that is also mounted at or below the root, or holds it, is inside. */
void
record_find_outside(Recording *rec)
{
        const char *root = rec->options->root;
        const Mount *holder = root ? mount_find_path(rec->mounts, root) : NULL;

        if (!holder || g_str_equal(root, "/"))
                return;
        rec->outside = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
        rec->inside = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
        for (guint i = 0; i < rec->mounts->len; i++) {
                const Mount *mount = rec->mounts->pdata[i];
                guint64 *dev = g_new(guint64, 1);

                *dev = mount->dev;
                g_hash_table_add(rec->outside, dev);
        }
        for (guint i = 0; i < rec->mounts->len; i++) {
                const Mount *mount = rec->mounts->pdata[i];
                guint64 *dev;

                if (mount->dev != holder->dev && !mount_is_below(mount, root))
                        continue;
                dev = g_new(guint64, 1);
                *dev = mount->dev;
                g_hash_table_remove(rec->outside, dev);
                g_hash_table_add(rec->inside, dev);
        }
}

const char *
record_method(const Recording *rec)
{
        switch (rec->source) {
        case PROFILE_SOURCE_USED_PAGES:
                return rec->by_faults        ? "events of used pages, fault-around of one page"
                       : rec->options->exact ? "events of used pages, readahead off"
                                             : "events of used pages";
        case PROFILE_SOURCE_READ_IN:
                return "events of pages read in, readahead lowered; mincore of files opened";
        case PROFILE_SOURCE_OPENS:
                return rec->by_residency ? "opens; mincore of files opened" : "opens";
        }
        return "?";
}
