// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Who used the pages and how long it waited for them.
 *
 * A read(2) waits before its look-up is reported: the wait began where the kernel began to read
 * ahead for this thread. A fault waits after it is reported, with the fault taken back and tried
 * again: the wait ended with the thread's next window or fault that holds the page. Between a fault
 * that needed no second try and an unrelated window there may lie anything, so a window ends a wait
 * only when the fault had found the page missing: in a window just before, or it was added for the
 * fault (then it is always tried again). A wait for pages that are being read in already (readahead
 * of before, another thread) has no beginning that these events tell; waits do (see why.h).
 */
#include "profiler/collect-internal.h"

/* Beyond this many, waits are not joined with files any more. */
#define ACCESSES_MAX 4000000U
/* Two clocks' readings of the same moment; from the end of a wait to the look-up that is reported.
 */
#define WAIT_SLACK_US 20U
#define WAIT_NEAR_US 1000U

ThreadState *
collector_thread(Collector *c, gint32 tid, guint32 *ret_thread)
{
        guint32 thread = process_table_thread(c->processes, tid);

        if (thread >= c->thread_states->len)
                g_array_set_size(c->thread_states, thread + 1);
        if (ret_thread)
                *ret_thread = thread;
        return &g_array_index(c->thread_states, ThreadState, thread);
}

static void
add_mark(Collector *c, const AccessEvent *event, guint64 time_us)
{
        guint32 thread = process_table_find(c->processes, event->tid);
        CollectedMark mark = {
                .time_us = time_us,
                .process = thread == G_MAXUINT32 ? 0 : process_table_process(c->processes, thread),
                .text = g_strdup(event->text ? event->text : ""),
        };

        if (c->marks->len < PROFILE_FILES_MAX)
                g_array_append_val(c->marks, mark);
        else
                g_free(mark.text);
}

void
collector_add_task(Collector *c, const AccessEvent *event, guint64 time_us)
{
        switch (event->kind) {
        case ACCESS_FORK:
                process_table_fork(c->processes, time_us, event->tid, (gint32)event->first,
                                   event->last != 0, event->text);
                break;
        case ACCESS_EXEC: process_table_exec(c->processes, time_us, event->tid, event->text); break;
        case ACCESS_NAME:
                process_table_name(c->processes, (gint32)event->first, event->text);
                break;
        case ACCESS_EXIT:
                process_table_exit(c->processes, time_us, event->tid, event->first != 0);
                break;
        case ACCESS_MARK: add_mark(c, event, time_us); break;
        default: break;
        }
}

static void
log_access(Collector *c, guint32 thread, guint32 begin_us, guint32 file)
{
        ThreadAccess access = {thread, begin_us, c->event_us, file};

        if (c->options.log_accesses && c->accesses->len < ACCESSES_MAX)
                g_array_append_val(c->accesses, access);
}

static void
end_fault(Collector *c, guint32 thread, ThreadState *state, const AccessEvent *event, guint32 file)
{
        gboolean again = state->fault_file == file + 1 && event->first <= state->fault_page &&
                         state->fault_page <= event->last &&
                         (event->kind == ACCESS_FAULT || state->fault_missed);

        if (again && state->fault_use && c->event_us > state->fault_us)
                collector_use(c, state->fault_use)->stall_us += c->event_us - state->fault_us;
        if (again)
                log_access(c, thread, state->fault_us, file);
        state->fault_file = 0;
}

/* Before the pages count as used. */
void
collector_note_event(Collector *c, const AccessEvent *event, guint32 file)
{
        guint32 thread;
        ThreadState *state = collector_thread(c, event->tid, &thread);

        c->event_process = process_table_process(c->processes, thread);
        switch (event->kind) {
        case ACCESS_RA:
                c->saw_readahead = TRUE;
                state->ra_file = file + 1;
                state->ra_us = c->event_us;
                break;
        case ACCESS_ADD:
                /* Kernels without the events of readahead: the first page tells. */
                if (!c->saw_readahead && state->ra_file != file + 1) {
                        state->ra_file = file + 1;
                        state->ra_us = c->event_us;
                }
                if (state->fault_file == file + 1 && event->first <= state->fault_page &&
                    state->fault_page <= event->last)
                        state->fault_missed = TRUE;
                break;
        case ACCESS_FAULT:
        case ACCESS_MAP:
                if (state->fault_file)
                        end_fault(c, thread, state, event, file);
                G_GNUC_FALLTHROUGH;
        default: collector_file_at(c, file)->last_us = c->event_us; break;
        }
}

static guint32
page_use(Collector *c, guint32 file, guint64 page)
{
        const FileEntry *entry = collector_file_at(c, file);
        const Chunk *chunk;

        for (guint32 i = entry->big_reads; i;
             i = g_array_index(c->big_reads, BigRead, i - 1).next) {
                const BigRead *big = &g_array_index(c->big_reads, BigRead, i - 1);

                if (big->first <= page && page <= big->last)
                        return big->use;
        }
        if (!entry->chunks)
                return 0;
        chunk = collector_find_chunk(c, file, page / CHUNK_PAGES);
        return chunk->used & (1U << page % CHUNK_PAGES) ? chunk->use[page % CHUNK_PAGES] : 0;
}

/* After the pages count as used. */
void
collector_note_use(Collector *c, const AccessEvent *event, guint32 file)
{
        guint32 thread;
        ThreadState *state = collector_thread(c, event->tid, &thread);
        guint32 begin_us = c->event_us, use;

        switch (event->kind) {
        case ACCESS_READ:
                state->map_file = 0;
                use = page_use(c, file, event->first);
                if (state->ra_file == file + 1) {
                        begin_us = MIN(state->ra_us, c->event_us);
                        if (use && collector_use(c, use)->process == c->event_process)
                                collector_use(c, use)->stall_us += c->event_us - begin_us;
                }
                state->ra_file = 0;
                state->open_use = use;
                log_access(c, thread, begin_us, file);
                break;
        case ACCESS_FAULT:
                use = page_use(c, file, event->first);
                state->fault_file = file + 1;
                state->fault_page = event->first;
                state->fault_us = c->event_us;
                state->fault_use = use;
                state->fault_missed = state->map_file == file + 1 &&
                                      state->map_first <= event->first &&
                                      event->first <= state->map_last;
                state->open_use = use;
                state->ra_file = state->map_file = 0;
                break;
        case ACCESS_MAP:
                state->map_file = file + 1;
                state->map_first = event->first;
                state->map_last = event->last;
                state->ra_file = 0;
                break;
        default: break;
        }
}

static gint
compare_accesses(gconstpointer a, gconstpointer b)
{
        const ThreadAccess *x = a, *y = b;

        if (x->thread != y->thread)
                return x->thread < y->thread ? -1 : 1;
        return (x->end_us > y->end_us) - (x->end_us < y->end_us);
}

/* The first access of the thread that ends with or after the wait; NULL = none. */
static const ThreadAccess *
access_after(const GArray *accesses, guint32 thread, guint64 end_us)
{
        guint low = 0, high = accesses->len;

        while (low < high) {
                guint middle = low + (high - low) / 2;
                const ThreadAccess *at = &g_array_index(accesses, ThreadAccess, middle);

                if (at->thread < thread ||
                    (at->thread == thread && at->end_us + WAIT_SLACK_US < end_us))
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == accesses->len || g_array_index(accesses, ThreadAccess, low).thread != thread)
                return NULL;
        return &g_array_index(accesses, ThreadAccess, low);
}

void
collector_name_waits(Collector *c, Profile *profile)
{
        g_array_sort(c->accesses, compare_accesses);
        for (guint i = 0; i < profile->waits->len; i++) {
                ProfileWait *wait = &g_array_index(profile->waits, ProfileWait, i);
                guint32 thread = process_table_find(c->processes, wait->tid);
                guint64 end_us = wait->start_us + wait->length_us;
                const ThreadAccess *access;

                if (wait->reason != PROFILE_WAIT_DISK || !wait->tid || thread == G_MAXUINT32)
                        continue;
                access = access_after(c->accesses, thread, end_us);
                if (access &&
                    (access->begin_us <= wait->start_us + WAIT_SLACK_US ||
                     access->end_us <= end_us + WAIT_NEAR_US) &&
                    c->profile_file[access->file] < profile->files->len)
                        wait->file = c->profile_file[access->file] + 1;
        }
}

static gint
compare_marks(gconstpointer a, gconstpointer b)
{
        const CollectedMark *x = a, *y = b;

        return (x->time_us > y->time_us) - (x->time_us < y->time_us);
}

void
collector_causes(Collector *c, const guint32 *profile_file, Profile *profile)
{
        g_free(c->profile_file);
        c->profile_file = g_memdup2(profile_file, c->files->len * sizeof *profile_file);
        process_table_fill(c->processes, profile);
        /* Those of access() come by another way than the others. */
        g_array_sort(c->marks, compare_marks);
        for (guint i = 0; i < c->marks->len; i++) {
                const CollectedMark *mark = &g_array_index(c->marks, CollectedMark, i);
                ProfileMark out = {mark->time_us, mark->process, mark->text};

                profile_add_mark(profile, &out);
        }
        for (guint i = 0; i < c->files->len; i++) {
                if (profile_file[i] < profile->files->len)
                        g_array_index(profile->files, ProfileFile, profile_file[i]).last_use_us =
                                collector_file_at(c, i)->last_us;
        }
}

ProcessTable *
collector_processes(Collector *c)
{
        return c->processes;
}
