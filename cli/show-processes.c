// SPDX-License-Identifier: GPL-2.0-or-later
/* show --processes: who ran, below whom, what each read and why it waited. */
#include "cli/show.h"

#include <stdio.h>

#include "common/json.h"
#include "common/quote.h"

#define N_REASONS (PROFILE_WAIT_OTHER + 1)
#define INDENT_MAX 40

/* Waits of each process (index 0 = none known) by reason, microseconds. */
static guint64 (*waits_by_process(const Profile *profile))[N_REASONS]
{
        guint64(*sums)[N_REASONS] =
                g_malloc0((profile->processes->len + 1) * sizeof(guint64[N_REASONS]));

        for (guint i = 0; i < profile->waits->len; i++) {
                const ProfileWait *wait = &g_array_index(profile->waits, ProfileWait, i);

                sums[wait->process][wait->reason] += wait->length_us;
        }
        return sums;
}

static void
waits_json(JsonBuilder *json, const guint64 *sums)
{
        json_builder_set_member_name(json, "waits_ms");
        json_builder_begin_object(json);
        for (guint reason = 0; reason < N_REASONS; reason++)
                json_add_double(json, profile_wait_reason_name((ProfileWaitReason)reason),
                                ms(sums[reason]));
        json_builder_end_object(json);
}

void
show_processes_json(JsonBuilder *json, const Profile *profile)
{
        g_autofree MissCount *counts = miss_count_processes(profile);
        guint64(*waits)[N_REASONS] = waits_by_process(profile);

        json_builder_begin_array(json);
        for (guint i = 0; i < profile->processes->len; i++) {
                const ProfileProcess *p = &g_array_index(profile->processes, ProfileProcess, i);
                const MissCount *count = &counts[i + 1];

                json_builder_begin_object(json);
                json_add_int(json, "process", i + 1);
                json_add_int(json, "parent", p->parent);
                json_add_int(json, "pid", p->pid);
                json_add_path(json, "comm", p->comm);
                json_add_path(json, "executable", p->executable);
                json_add_double(json, "start_ms", ms(p->start_us));
                json_builder_set_member_name(json, "exit_ms");
                if (p->exit_us)
                        json_builder_add_double_value(json, ms(p->exit_us));
                else
                        json_builder_add_null_value(json);
                json_add_int(json, "reads", (gint64)count->reads);
                json_add_int(json, "used_bytes", (gint64)count->used_bytes);
                json_add_int(json, "disk_bytes", (gint64)count->disk_bytes);
                json_add_int(json, "cached_bytes", (gint64)count->cached_bytes);
                json_add_double(json, "stall_ms", ms(count->stall_us));
                if (profile->waits->len)
                        waits_json(json, waits[i + 1]);
                json_builder_end_object(json);
        }
        json_builder_end_array(json);
        g_free(waits);
}

static void
print_process(const Profile *profile, guint32 number, guint depth, const MissCount *count,
              const guint64 *waits)
{
        const ProfileProcess *p = &g_array_index(profile->processes, ProfileProcess, number - 1);
        g_autofree gchar *name = miss_process_name(profile, number), *quoted = path_quote(name);
        g_autofree gchar *executable = path_quote(p->executable);
        g_autofree gchar *end = p->exit_us ? g_strdup_printf("%.3f", ms(p->exit_us)) : NULL;

        printf("%10.3f %10s %7d %12" G_GUINT64_FORMAT " %12" G_GUINT64_FORMAT " %10.3f %*s%s%s%s",
               ms(p->start_us), end ? end : "-", p->pid, count->disk_bytes, count->cached_bytes,
               ms(count->stall_us), (int)MIN(2 * depth, INDENT_MAX), "", quoted,
               *executable ? " " : "", executable);
        for (guint reason = 0; reason < N_REASONS; reason++)
                if (waits[reason])
                        printf("; %s %.1f ms", profile_wait_reason_name((ProfileWaitReason)reason),
                               ms(waits[reason]));
        printf("\n");
}

/* Depth first, without recursion: a tree may be as deep as there are processes. */
void
show_processes_text(const Profile *profile)
{
        guint n = profile->processes->len;
        g_autofree MissCount *counts = miss_count_processes(profile);
        guint64(*waits)[N_REASONS] = waits_by_process(profile);
        g_autofree guint32 *first_child = g_new0(guint32, n + 1);
        g_autofree guint32 *next = g_new0(guint32, n + 1);
        g_autofree guint *depth = g_new0(guint, n + 1);
        g_autoptr(GArray) stack = g_array_new(FALSE, FALSE, sizeof(guint32));

        printf("%10s %10s %7s %12s %12s %10s %s\n", "START MS", "EXIT MS", "PID", "DISK", "CACHED",
               "STALL MS", "PROCESS");
        for (guint32 number = n; number > 0; number--) {
                guint32 parent =
                        g_array_index(profile->processes, ProfileProcess, number - 1).parent;

                next[number] = first_child[parent];
                first_child[parent] = number;
        }
        if (first_child[0])
                g_array_append_val(stack, first_child[0]);
        while (stack->len) {
                guint32 number = g_array_index(stack, guint32, stack->len - 1);

                g_array_set_size(stack, stack->len - 1);
                print_process(profile, number, depth[number], &counts[number], waits[number]);
                if (next[number]) {
                        depth[next[number]] = depth[number];
                        g_array_append_val(stack, next[number]);
                }
                if (first_child[number]) {
                        depth[first_child[number]] = depth[number] + 1;
                        g_array_append_val(stack, first_child[number]);
                }
        }
        if (counts[0].reads)
                printf("%10s %10s %7s %12" G_GUINT64_FORMAT " %12" G_GUINT64_FORMAT
                       " %10.3f (unknown)\n",
                       "-", "-", "-", counts[0].disk_bytes, counts[0].cached_bytes,
                       ms(counts[0].stall_us));
        g_free(waits);
}

void
show_wait_members(JsonBuilder *json, const Profile *profile, const ProfileWait *wait)
{
        json_add_int(json, "process", wait->process);
        json_add_int(json, "tid", wait->tid);
        json_add_string(json, "reason", profile_wait_reason_name(wait->reason));
        json_add_int(json, "syscall", wait->syscall);
        if (wait->file)
                json_add_path(json, "path", file_at(profile, wait->file - 1)->path);
        json_add_double(json, "start_ms", ms(wait->start_us));
        json_add_double(json, "length_ms", ms(wait->length_us));
}

void
show_waits_json(JsonBuilder *json, const Profile *profile)
{
        json_builder_begin_array(json);
        for (guint i = 0; i < profile->waits->len; i++) {
                json_builder_begin_object(json);
                show_wait_members(json, profile, &g_array_index(profile->waits, ProfileWait, i));
                json_builder_end_object(json);
        }
        json_builder_end_array(json);
}

void
show_marks_json(JsonBuilder *json, const Profile *profile)
{
        json_builder_begin_array(json);
        for (guint i = 0; i < profile->marks->len; i++) {
                const ProfileMark *mark = &g_array_index(profile->marks, ProfileMark, i);

                json_builder_begin_object(json);
                json_add_path(json, "text", mark->text);
                json_add_int(json, "process", mark->process);
                json_add_double(json, "time_ms", ms(mark->time_us));
                json_builder_end_object(json);
        }
        json_builder_end_array(json);
}
