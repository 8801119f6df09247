// SPDX-License-Identifier: GPL-2.0-or-later
/* show --events: everything that has a time, in its order. */
#include "cli/show.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/json.h"
#include "common/quote.h"

/* In the order in which they come when their times are equal: what leads to the data before it. */
typedef enum { EVENT_START, EVENT_META, EVENT_READ, EVENT_WAIT, EVENT_MARK, EVENT_EXIT } EventKind;

static const char *const KINDS[] = {"start", "metadata", "read", "wait", "mark", "exit"};

typedef struct {
        guint64 time_us;
        guint32 index;
        EventKind kind;
} Entry;

static int
compare_entries(const void *a, const void *b)
{
        const Entry *x = a, *y = b;

        if (x->time_us != y->time_us)
                return x->time_us < y->time_us ? -1 : 1;
        if (x->kind != y->kind)
                return x->kind < y->kind ? -1 : 1;
        return x->index < y->index ? -1 : x->index > y->index;
}

static void
add(GArray *list, EventKind kind, guint32 index, guint64 time_us)
{
        Entry entry = {time_us, index, kind};

        g_array_append_val(list, entry);
}

static GArray *
entries(const Profile *profile)
{
        GArray *list = g_array_new(FALSE, FALSE, sizeof(Entry));

        for (guint i = 0; i < profile->ranges->len; i++)
                add(list, EVENT_READ, i,
                    g_array_index(profile->ranges, ProfileRange, i).first_use_us);
        for (guint i = 0; i < profile->meta->len; i++)
                add(list, EVENT_META, i, g_array_index(profile->meta, ProfileMeta, i).first_use_us);
        for (guint i = 0; i < profile->waits->len; i++)
                add(list, EVENT_WAIT, i, g_array_index(profile->waits, ProfileWait, i).start_us);
        for (guint i = 0; i < profile->marks->len; i++)
                add(list, EVENT_MARK, i, g_array_index(profile->marks, ProfileMark, i).time_us);
        for (guint i = 0; i < profile->processes->len; i++) {
                const ProfileProcess *p = &g_array_index(profile->processes, ProfileProcess, i);

                add(list, EVENT_START, i, p->start_us);
                if (p->exit_us)
                        add(list, EVENT_EXIT, i, p->exit_us);
        }
        if (list->len)
                qsort(list->data, list->len, sizeof(Entry), compare_entries);
        return list;
}

static void
process_members(JsonBuilder *json, const Profile *profile, guint index)
{
        const ProfileProcess *p = &g_array_index(profile->processes, ProfileProcess, index);

        json_add_int(json, "process", (gint64)index + 1);
        json_add_int(json, "parent", p->parent);
        json_add_int(json, "pid", p->pid);
        json_add_path(json, "comm", p->comm);
        json_add_path(json, "executable", p->executable);
}

void
show_events_json(JsonBuilder *json, const Profile *profile)
{
        g_autoptr(GArray) list = entries(profile);

        json_builder_begin_array(json);
        for (guint i = 0; i < list->len; i++) {
                const Entry *entry = &g_array_index(list, Entry, i);

                json_builder_begin_object(json);
                json_add_string(json, "event", KINDS[entry->kind]);
                json_add_double(json, "time_ms", ms(entry->time_us));
                switch (entry->kind) {
                case EVENT_READ:
                        show_range_members(
                                json, profile,
                                &g_array_index(profile->ranges, ProfileRange, entry->index));
                        break;
                case EVENT_META:
                        show_meta_members(json, profile,
                                          &g_array_index(profile->meta, ProfileMeta, entry->index));
                        break;
                case EVENT_WAIT:
                        show_wait_members(
                                json, profile,
                                &g_array_index(profile->waits, ProfileWait, entry->index));
                        break;
                case EVENT_MARK:
                        json_add_path(
                                json, "text",
                                g_array_index(profile->marks, ProfileMark, entry->index).text);
                        break;
                default: process_members(json, profile, entry->index); break;
                }
                json_builder_end_object(json);
        }
        json_builder_end_array(json);
}

static void
print_read(const Profile *profile, const ProfileRange *range)
{
        g_autofree gchar *path = path_quote(file_at(profile, range->file)->path);
        g_autofree gchar *name = miss_process_name(profile, range->process);
        g_autofree gchar *who = path_quote(name);

        printf("%-8s %12" G_GUINT64_FORMAT " %10" G_GUINT64_FORMAT " %s",
               profile_cause_name(range->cause), range->offset_bytes, range->length_bytes, path);
        if (range->process)
                printf(", by %s", who);
        if (range->flags & PROFILE_RANGE_MISS)
                printf(", from the disk");
        if (range->stall_us)
                printf(", waited %.3f ms", ms(range->stall_us));
        printf("\n");
}

static void
print_entry(const Profile *profile, const Entry *entry)
{
        const ProfileMeta *meta;
        const ProfileWait *wait;
        g_autofree gchar *name = NULL, *quoted = NULL;

        printf("%10.3f ", ms(entry->time_us));
        switch (entry->kind) {
        case EVENT_READ:
                print_read(profile, &g_array_index(profile->ranges, ProfileRange, entry->index));
                break;
        case EVENT_META:
                meta = &g_array_index(profile->meta, ProfileMeta, entry->index);
                printf("%-8s %s, inode %" G_GUINT64_FORMAT ", number %" G_GUINT64_FORMAT "%s\n",
                       "metadata", profile_meta_kind_name(meta->kind), meta->inode, meta->index,
                       meta->flags & PROFILE_META_SEEN ? ", seen read" : "");
                break;
        case EVENT_WAIT:
                wait = &g_array_index(profile->waits, ProfileWait, entry->index);
                name = miss_process_name(profile, wait->process);
                quoted = path_quote(name);
                printf("%-8s %s, %.3f ms, by %s\n", "wait", profile_wait_reason_name(wait->reason),
                       ms(wait->length_us), quoted);
                break;
        case EVENT_MARK:
                quoted = path_quote(g_array_index(profile->marks, ProfileMark, entry->index).text);
                printf("%-8s %s\n", "mark", quoted);
                break;
        default:
                name = miss_process_name(profile, entry->index + 1);
                quoted = path_quote(name);
                printf("%-8s %s, pid %d\n", KINDS[entry->kind], quoted,
                       g_array_index(profile->processes, ProfileProcess, entry->index).pid);
                break;
        }
}

void
show_events_text(const Profile *profile)
{
        g_autoptr(GArray) list = entries(profile);

        for (guint i = 0; i < list->len; i++)
                print_entry(profile, &g_array_index(list, Entry, i));
}
