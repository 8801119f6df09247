// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One recording: see record.h. While the command starts this process sleeps but for a few reads a
 * second of the trace buffers; names, sizes and metadata are looked up afterwards.
 */
#include "profiler/record.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "common/error.h"
#include "common/settings.h"
#include "profiler/names.h"
#include "profiler/quiet.h"
#include "profiler/trace.h"

#define READ_INTERVAL_US 200000U
#define READ_INTERVAL_BUSY_US 40000U
#define BUSY_EVENTS 50000U
/* Without events of used pages, readahead is kept so small that what is read in is about what is
 * used. */
#define READ_IN_READAHEAD_KB 16U

#define READAHEAD_WAIT_S 90U

#define CAPABILITY_DAC_READ_SEARCH 2
#define CAPABILITY_SYS_ADMIN 21

typedef struct {
        const RecordOptions *options;
        RecordResult *result;
        Trace *trace; /* NULL for source "opens" */
        Opens *opens;
        Collector *collector;
        GPtrArray *mounts;
        GHashTable *inode_readahead;
        ProfileSource source;
        guint64 start_us;
        gint64 wall_ns;
        StartState state;
        guint64 end_us;
        guint64 cpu_us;
        guint64 lost;
        gboolean opens_lost;
        guint batch_events;
} Recording;

static void G_GNUC_PRINTF(2, 3) note(const Recording *rec, const char *format, ...)
{
        g_autofree gchar *text = NULL;
        va_list args;

        va_start(args, format);
        text = g_strdup_vprintf(format, args);
        va_end(args);
        if (rec->options->note)
                rec->options->note(text, rec->options->note_data);
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
        g_autofree gchar *text = NULL;
        const gchar *line;
        guint64 effective;

        if (!g_file_get_contents("/proc/self/status", &text, NULL, NULL) ||
            !(line = strstr(text, "\nCapEff:"))) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                            "/proc is not mounted; recording needs it");
                return FALSE;
        }
        effective = g_ascii_strtoull(line + strlen("\nCapEff:"), NULL, 16);
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

static gint64
wall_clock_ns(void)
{
        struct timespec now;

        /* The clock that stamps files. */
        clock_gettime(CLOCK_REALTIME_COARSE, &now);
        return (gint64)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void
on_event(const AccessEvent *event, gpointer data)
{
        Recording *rec = data;

        rec->batch_events++;
        if (event->kind == ACCESS_MARK && event->first && !rec->state.marked) {
                rec->state.marked = TRUE;
                rec->state.marked_us = event->time_ns / 1000 > rec->start_us
                                               ? event->time_ns / 1000 - rec->start_us
                                               : 0;
        }
        collector_add(rec->collector, event);
}

static gboolean
watch_opens(Recording *rec, GError **error)
{
        gboolean alone = rec->source == PROFILE_SOURCE_OPENS;
        OpensOptions options = {
                .mounts = rec->mounts,
                .all = rec->source != PROFILE_SOURCE_USED_PAGES,
                .residency = alone,
        };
        g_autoptr(GPtrArray) refused = g_ptr_array_new_with_free_func(g_free);
        g_autoptr(GError) local = NULL;

        if (options.all)
                options.command = rec->result->started.pid;
        rec->opens = opens_new(&options, refused, &local);
        for (guint i = 0; i < refused->len; i++)
                note(rec, "opens on %s, not watched there", (const char *)refused->pdata[i]);
        if (rec->opens)
                return TRUE;
        if (alone) {
                g_propagate_error(error, g_steal_pointer(&local));
                return FALSE;
        }
        note(rec, "%s; files on file systems other than ext4 will have no names", local->message);
        return TRUE;
}

static gboolean
choose_source(Recording *rec, GError **error)
{
        g_autoptr(GError) local = NULL, opens_error = NULL;

        rec->trace = trace_new(rec->result->started.pid, rec->options->until,
                               rec->options->buffer_kb, &local);
        if (rec->trace) {
                rec->source = trace_source(rec->trace);
                if (rec->source == PROFILE_SOURCE_READ_IN)
                        note(rec,
                             "the kernel lacks %s: recording what is read in, with the "
                             "kernel's readahead turned down",
                             trace_missing(rec->trace));
                return watch_opens(rec, error);
        }
        rec->source = PROFILE_SOURCE_OPENS;
        if (!watch_opens(rec, &opens_error)) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED, "%s; and %s",
                            local->message, opens_error->message);
                return FALSE;
        }
        note(rec, "%s: recording only which files are opened", local->message);
        if (rec->options->exact)
                note(rec, "--exact has no effect then");
        if (rec->options->until) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                            "--until needs tracing: %s", local->message);
                return FALSE;
        }
        return TRUE;
}

static gboolean
turn_readahead_down(Recording *rec, GError **error)
{
        g_autoptr(GError) local = NULL;

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
        if (rec->source == PROFILE_SOURCE_OPENS ||
            (!rec->options->exact && rec->source != PROFILE_SOURCE_READ_IN))
                return TRUE;
        if (!quiet_lock(READAHEAD_WAIT_S, error))
                return FALSE;
        if (rec->options->exact) {
                if (rec->options->previous)
                        quiet_evict(rec->mounts, rec->options->previous);
                return quiet_readahead(rec->mounts, 0, TRUE, error);
        }
        if (!quiet_readahead(rec->mounts, READ_IN_READAHEAD_KB, FALSE, &local))
                note(rec, "%s, ignoring: the profile will hold readahead too", local->message);
        return TRUE;
}

static gboolean
kernel_at_least(int major_number, int minor_number)
{
        struct utsname name;
        int found_major = 0, found_minor = 0;

        if (uname(&name) != 0 || sscanf(name.release, "%d.%d", &found_major, &found_minor) != 2)
                return FALSE;
        return found_major > major_number ||
               (found_major == major_number && found_minor >= minor_number);
}

static void
make_collector(Recording *rec)
{
        CollectorOptions options = {
                .source = rec->source,
                .exact = rec->options->exact,
                .faults_map_folios = kernel_at_least(6, 18),
                .start_ns = rec->start_us * 1000,
                .gate_tid = rec->trace && trace_has_exec(rec->trace) ? rec->result->started.pid : 0,
        };

        rec->collector = collector_new(&options);
        for (guint i = 0; i < rec->mounts->len; i++) {
                const Mount *mount = rec->mounts->pdata[i];

                collector_add_mounted(rec->collector, mount->dev);
                if (major(mount->dev) != 0)
                        collector_add_block_device(rec->collector, mount->dev);
        }
}

static guint64
since_start(const Recording *rec, guint64 when_us)
{
        return when_us > rec->start_us ? when_us - rec->start_us : 0;
}

static void
look(Recording *rec)
{
        rec->batch_events = 0;
        if (rec->trace)
                trace_read(rec->trace, on_event, rec);
        rec->state.now_us = since_start(rec, start_now_us());
        rec->state.last_new_page_us = collector_last_new_us(rec->collector);
}

static void
watch_start(Recording *rec)
{
        Started *started = &rec->result->started;
        StartEndRule rule = rec->options->rule;

        /* Opens alone say nothing of pages: no quiet spell can be seen between two of them. */
        if (rec->source == PROFILE_SOURCE_OPENS)
                rule.quiet_us = rule.limit_us;
        for (;;) {
                guint64 wait_us = start_end_wait_us(&rule, &rec->state);
                guint64 interval_us =
                        rec->batch_events > BUSY_EVENTS ? READ_INTERVAL_BUSY_US : READ_INTERVAL_US;

                if (rec->trace)
                        wait_us = MIN(wait_us, interval_us);
                if (start_wait(started, (int)MIN(wait_us / 1000 + 1, G_MAXINT))) {
                        rec->state.exited = TRUE;
                        rec->state.exited_us = since_start(rec, started->exited_us);
                }
                look(rec);
                rec->result->end = start_end_check(&rule, &rec->state, &rec->end_us);
                if (rec->result->end != START_GOES_ON)
                        return;
        }
}

static void
stop(Recording *rec)
{
        if (rec->trace)
                rec->lost = trace_stop(rec->trace, on_event, rec);
        rec->cpu_us = start_cpu_us(&rec->result->started);
        if (rec->opens)
                rec->opens_lost = opens_stop(rec->opens) > 0;
        settings_restore_all();
        quiet_unlock();
}

static Profile *
make_profile(Recording *rec, GError **error)
{
        g_autoptr(Profile) profile = profile_new(rec->options->name);
        const Started *started = &rec->result->started;
        BuildInput input = {
                .collector = rec->collector,
                .opens = rec->opens,
                .mounts = rec->mounts,
                .start_ns = rec->start_us * 1000,
                .written_since_ns = rec->wall_ns,
                .rules = rec->options->rules,
                .inode_readahead = rec->inode_readahead,
        };
        /* The command may have mounted something itself. */
        g_autoptr(GPtrArray) mounts_now = mount_table_load(NULL);

        if (mounts_now)
                input.mounts = mounts_now;
        for (guint i = 0; rec->options->argv[i]; i++)
                g_ptr_array_add(profile->argv, g_strdup(rec->options->argv[i]));
        profile->created_us = rec->wall_ns / 1000;
        profile->source = rec->source;
        profile->exact = rec->options->exact && rec->source != PROFILE_SOURCE_OPENS;
        profile->complete = rec->lost == 0 && !rec->opens_lost;
        profile->lost_events = rec->lost;
        profile->page_bytes = (guint32)sysconf(_SC_PAGESIZE);
        profile->elapsed_us = rec->end_us - MIN(rec->end_us, since_start(rec, started->exec_us));
        profile->cpu_us = rec->cpu_us;

        build_files(&input, profile, &rec->result->built);
        if (profile->files->len == 0 && (profile->unnamed_files || rec->lost)) {
                g_set_error(
                        error, COMMON_ERROR, COMMON_ERROR_FAILED,
                        "nothing usable was recorded: no name was found for the %" G_GUINT64_FORMAT
                        " files read, %" G_GUINT64_FORMAT " events were lost",
                        profile->unnamed_files, rec->lost);
                return NULL;
        }
        build_metadata(&input, profile, &rec->result->built);
        return profile_validate(profile, error) ? g_steal_pointer(&profile) : NULL;
}

static Profile *
record(Recording *rec, GError **error)
{
        Started *started = &rec->result->started;
        StartOptions start = {.stdout_to_stderr = rec->options->stdout_to_stderr};

        rec->mounts = mount_table_load(error);
        if (!rec->mounts || !start_command(rec->options->argv, &start, started, error) ||
            !choose_source(rec, error) || !turn_readahead_down(rec, error))
                return NULL;
        rec->start_us = start_now_us();
        rec->wall_ns = wall_clock_ns();
        make_collector(rec);
        start_release(started);
        if (!start_exec_result(started, error))
                return NULL;
        watch_start(rec);
        stop(rec);
        if (rec->result->end == START_ENDED_EXIT && started->interrupted) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_INTERRUPTED,
                            "interrupted before the start had ended; nothing saved");
                return NULL;
        }
        return make_profile(rec, error);
}

Profile *
record_command(const RecordOptions *options, RecordResult *ret, GError **error)
{
        Recording rec = {.options = options, .result = ret};
        Profile *profile;

        *ret = (RecordResult){
                .started = {
                        .pid = -1, .pidfd = -1, .release_fd = -1, .exec_fd = -1, .signal_fd = -1}};
        build_result_init(&ret->built);
        profile = record(&rec, error);
        settings_restore_all();
        quiet_unlock();
        trace_free(rec.trace);
        opens_free(rec.opens);
        collector_free(rec.collector);
        g_clear_pointer(&rec.mounts, g_ptr_array_unref);
        g_clear_pointer(&rec.inode_readahead, g_hash_table_unref);
        return profile;
}

void
record_result_clear(RecordResult *result)
{
        start_clear(&result->started);
        build_result_clear(&result->built);
}
