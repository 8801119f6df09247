// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One recording: see record.h. While the command starts this process sleeps but for a few reads a
 * second of the trace buffers; names, sizes and metadata are looked up afterwards.
 */
#include "profiler/record-internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "common/error.h"
#include "common/settings.h"
#include "profiler/process-files.h"
#include "profiler/process-scan.h"
#include "profiler/quiet.h"

#define READ_INTERVAL_US 200000U
#define READ_INTERVAL_BUSY_US 40000U
#define BUSY_EVENTS 50000U

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
        guint64 dev = event->dev, last_new_us = collector_last_new_us(rec->collector);

        rec->batch_events++;
        if (rec->outside && event->kind <= ACCESS_MAP && g_hash_table_contains(rec->outside, &dev))
                return;
        if (event->kind == ACCESS_MARK && event->first && !rec->state.marked) {
                rec->state.marked = TRUE;
                rec->state.marked_us = event->time_ns / 1000 > rec->start_us
                                               ? event->time_ns / 1000 - rec->start_us
                                               : 0;
        }
        collector_add(rec->collector, event);
        /* File systems mounted meanwhile are kept until their place is known, but may belong to
         * others, who must not keep the recording going. */
        if (collector_last_new_us(rec->collector) > last_new_us &&
            (!rec->inside || g_hash_table_contains(rec->inside, &dev)))
                rec->last_new_us = collector_last_new_us(rec->collector);
        if (rec->why)
                why_recorder_event(rec->why, event);
}

/* One of them may be mounted only later, after its metadata was read. */
static void
add_all_block_devices(Collector *collector)
{
        g_autoptr(GDir) dir = g_dir_open("/sys/class/block", 0, NULL);
        const char *name;

        while (dir && (name = g_dir_read_name(dir))) {
                g_autofree gchar *file = g_strdup_printf("/sys/class/block/%s/dev", name);
                g_autofree gchar *text = NULL;
                guint device_major, device_minor;

                if (g_file_get_contents(file, &text, NULL, NULL) &&
                    sscanf(text, "%u:%u", &device_major, &device_minor) == 2)
                        collector_add_block_device(collector, makedev(device_major, device_minor));
        }
}

static void
make_collector(Recording *rec)
{
        CollectorOptions options = {
                .source = rec->source,
                .exact = rec->options->exact && !rec->by_faults,
                .faults_map_folios = record_kernel_at_least(6, 18),
                .start_ns = rec->start_us * 1000,
                .log_accesses = rec->options->why,
                .gate_tid = rec->trace && trace_has_exec(rec->trace)
                                    ? MAX(rec->result->started.pid, 0)
                                    : 0,
        };

        rec->collector = collector_new(&options);
        for (guint i = 0; i < rec->mounts->len; i++) {
                const Mount *mount = rec->mounts->pdata[i];

                collector_add_mounted(rec->collector, mount->dev);
                if (major(mount->dev) != 0)
                        collector_add_block_device(rec->collector, mount->dev);
        }
        if (rec->options->whole_machine)
                add_all_block_devices(rec->collector);
}

static guint64
since_start(const Recording *rec, guint64 when_us)
{
        return when_us > rec->start_us ? when_us - rec->start_us : 0;
}

/* A boot is not over before its goal is reached, however quiet the disk is. */
static void
look_for_goal(Recording *rec)
{
        pid_t helper = 0;

        rec->state.last_new_page_us = MAX(rec->state.last_new_page_us, rec->goal_us);
        if (!rec->goal)
                return;
        if (goal_reached(rec->goal, start_now_us(), &helper)) {
                rec->goal_us = MAX(rec->state.now_us, 1);
                g_clear_pointer(&rec->goal, goal_free);
        }
        if (helper && rec->opens)
                opens_ignore_process(rec->opens, helper);
        rec->state.last_new_page_us = MAX(rec->state.now_us, rec->state.last_new_page_us);
}

static void
look(Recording *rec)
{
        rec->batch_events = 0;
        if (rec->trace)
                trace_read(rec->trace, on_event, rec);
        if (rec->why)
                why_recorder_read(rec->why);
        rec->state.now_us = since_start(rec, start_now_us());
        rec->state.last_new_page_us = rec->last_new_us;
        if (rec->source == PROFILE_SOURCE_OPENS && rec->options->whole_machine)
                rec->state.last_new_page_us =
                        since_start(rec, opens_last_new_ns(rec->opens) / 1000);
        look_for_goal(rec);
}

static void
watch_start(Recording *rec)
{
        Started *started = &rec->result->started;
        StartEndRule rule = rec->options->rule;

        /* Opens alone say nothing of pages: no quiet spell can be seen between two of them. */
        if (rec->source == PROFILE_SOURCE_OPENS && !rec->options->whole_machine)
                rule.quiet_us = rule.limit_us;
        for (;;) {
                guint64 wait_us = start_end_wait_us(&rule, &rec->state);
                guint64 interval_us =
                        rec->batch_events > BUSY_EVENTS ? READ_INTERVAL_BUSY_US : READ_INTERVAL_US;

                if (rec->trace || rec->options->whole_machine)
                        wait_us = MIN(wait_us, interval_us);
                if (start_wait(started, (int)MIN(wait_us / 1000 + 1, G_MAXINT))) {
                        rec->state.exited = TRUE;
                        rec->state.exited_us = since_start(rec, started->exited_us);
                }
                look(rec);
                if (started->pid <= 0 && started->interrupted)
                        return;
                rec->result->end = start_end_check(&rule, &rec->state, &rec->end_us);
                if (rec->result->end != START_GOES_ON)
                        return;
        }
}

static void
stop(Recording *rec)
{
        if (rec->trace)
                rec->lost += trace_stop(rec->trace, on_event, rec);
        if (rec->why)
                rec->lost += why_recorder_stop(rec->why);
        rec->cpu_us = start_cpu_us(&rec->result->started);
        if (rec->opens)
                rec->lost += opens_stop(rec->opens);
        settings_restore_all();
        quiet_unlock();
        for (guint i = 0; rec->opens && i < opens_refused_late(rec->opens)->len; i++)
                record_note(rec, "opens on %s, not watched there",
                            (const char *)opens_refused_late(rec->opens)->pdata[i]);
}

/* The wall clock may have been set since (a machine without a clock of its own boots in the past):
 * the start by the clock of now counts when that is later. */
static gint64
start_by_wall_clock(const Recording *rec)
{
        gint64 by_now = wall_clock_ns() - (gint64)since_start(rec, start_now_us()) * 1000;

        /* Steps only; the two clocks drift and tick. */
        return by_now > rec->wall_ns + G_GINT64_CONSTANT(2000000000) ? by_now : rec->wall_ns;
}

static gint
compare_marks(gconstpointer a, gconstpointer b)
{
        const ProfileMark *x = a, *y = b;

        return x->time_us < y->time_us ? -1 : x->time_us > y->time_us;
}

static void
add_goal_mark(const Recording *rec, Profile *profile)
{
        gchar text[] = RECORD_GOAL_MARK;
        ProfileMark mark = {.time_us = rec->goal_us, .text = text};

        if (!rec->goal_us)
                return;
        profile_add_mark(profile, &mark);
        g_array_sort(profile->marks, compare_marks);
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
                .by_residency = rec->by_residency,
                .root = rec->options->root,
                .written_since_ns = start_by_wall_clock(rec),
                .rules = rec->options->rules,
                .inode_readahead = rec->inode_readahead,
        };
        /* The command may have mounted something itself. */
        g_autoptr(GPtrArray) mounts_now = mount_table_load(NULL);

        if (mounts_now)
                input.mounts = mounts_now;
        for (guint i = 0; rec->options->argv && rec->options->argv[i]; i++)
                g_ptr_array_add(profile->argv, g_strdup(rec->options->argv[i]));
        profile->created_us = rec->wall_ns / 1000;
        profile->source = rec->source;
        profile->exact =
                rec->options->exact && (rec->source != PROFILE_SOURCE_OPENS || rec->by_residency);
        profile->complete = rec->lost == 0;
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
        process_files_mark(profile, &rec->result->built, rec->opens, rec->options->root,
                           rec->start_us * 1000);
        if (rec->why)
                why_recorder_fill(rec->why, rec->collector, profile);
        add_goal_mark(rec, profile);
        rec->result->goal_us = rec->goal_us;
        rec->result->method = record_method(rec);
        return profile_validate(profile, error) ? g_steal_pointer(&profile) : NULL;
}

static void
keep_early(const AccessEvent *event, gpointer events)
{
        g_array_append_val((GArray *)events, *event);
}

static void
on_access_mark(const AccessEvent *event, gpointer data)
{
        Recording *rec = data;
        AccessEvent mark = *event;

        mark.first = g_strcmp0(event->text, rec->options->until) == 0;
        on_event(&mark, data);
}

/* Reasons for waiting, and the marks of access(): the end may be one of these. */
static gboolean
choose_why(Recording *rec, GError **error)
{
        pid_t pid = rec->options->whole_machine ? 0 : rec->result->started.pid;
        g_autofree gchar *missing = NULL;

        if (!rec->options->why && !rec->options->until)
                return TRUE;
        rec->why = why_recorder_new(pid, rec->trace, rec->options->why_way, rec->options->why,
                                    &missing, rec->options->why ? error : NULL);
        if (rec->options->why && !rec->why)
                return FALSE;
        if (!rec->why)
                return TRUE;
        if (missing)
                record_note(rec, "%s: reasons for waiting through switches in tracefs", missing);
        if (rec->options->why)
                rec->result->why_source = why_recorder_source(rec->why);
        rec->result->access_marks = why_recorder_has_marks(rec->why);
        return TRUE;
}

/* Time zero is now, or the first event of what ran before us. */
static void
begin(Recording *rec)
{
        g_autoptr(GArray) early = g_array_new(FALSE, FALSE, sizeof(AccessEvent));
        guint64 events = 0, lost = 0, first_ns;

        rec->start_us = start_now_us();
        rec->wall_ns = wall_clock_ns();
        if (rec->trace && rec->options->whole_machine &&
            trace_read_early(rec->trace, keep_early, early, &events, &lost, &first_ns)) {
                record_note(rec,
                            "%" G_GUINT64_FORMAT " events of the tracing instance of the kernel "
                            "command line, from before",
                            events);
                rec->lost += lost;
                if (events) {
                        rec->wall_ns -= (gint64)(rec->start_us - first_ns / 1000) * 1000;
                        rec->start_us = first_ns / 1000;
                }
        }
        make_collector(rec);
        if (rec->options->whole_machine)
                process_scan(collector_processes(rec->collector));
        if (rec->why)
                why_recorder_begin(rec->why, rec->collector, rec->start_us * 1000, on_access_mark,
                                   rec);
        for (guint i = 0; i < early->len; i++)
                on_event(&g_array_index(early, AccessEvent, i), rec);
}

static gboolean
prepare_command(Recording *rec, GError **error)
{
        StartOptions start = {.stdout_to_stderr = rec->options->stdout_to_stderr};

        if (rec->options->argv)
                return start_command(rec->options->argv, &start, &rec->result->started, error);
        return start_nothing(&rec->result->started, error);
}

static Profile *
record(Recording *rec, GError **error)
{
        Started *started = &rec->result->started;

        rec->mounts = mount_table_load(error);
        if (!rec->mounts || !prepare_command(rec, error) || !record_choose_source(rec, error) ||
            !record_change_settings(rec, error) || !choose_why(rec, error))
                return NULL;
        record_find_outside(rec);
        if (rec->options->wait_goal)
                rec->goal = goal_new();
        begin(rec);
        if (rec->options->argv) {
                start_release(started);
                if (!start_exec_result(started, error))
                        return NULL;
        }
        watch_start(rec);
        stop(rec);
        if (started->interrupted && (started->pid <= 0 || rec->result->end == START_ENDED_EXIT)) {
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
        why_recorder_free(rec.why);
        collector_free(rec.collector);
        g_clear_pointer(&rec.mounts, g_ptr_array_unref);
        g_clear_pointer(&rec.inode_readahead, g_hash_table_unref);
        g_clear_pointer(&rec.outside, g_hash_table_unref);
        g_clear_pointer(&rec.inside, g_hash_table_unref);
        goal_free(rec.goal);
        return profile;
}

void
record_result_clear(RecordResult *result)
{
        start_clear(&result->started);
        build_result_clear(&result->built);
}
