// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The ranges of a merged profile: see merge.h. Kept ranges take their place in the order of the
 * last start: the moment it first used a page of them, or else that of the range used before them.
 */
#include "profiler/merge-internal.h"

#include <stdlib.h>

typedef enum {
        USE_LAST,    /* the last start's */
        KEEP_EXACT,  /* the earlier exact ones, and what the last start surely used beside them */
        KEEP_BETTER, /* the earlier ones alone */
        KEEP_BOTH,   /* the earlier ones and all of the last start's */
} Choice;

void
merge_renumber(Profile *profile, const guint32 *moved)
{
        guint kept = 0;

        for (guint i = 0; i < profile->ranges->len; i++) {
                ProfileRange range = g_array_index(profile->ranges, ProfileRange, i);

                range.file = moved[range.file];
                if (range.file != G_MAXUINT32)
                        g_array_index(profile->ranges, ProfileRange, kept++) = range;
        }
        g_array_set_size(profile->ranges, kept);
        for (guint i = 0; i < profile->waits->len; i++) {
                ProfileWait *wait = &g_array_index(profile->waits, ProfileWait, i);

                if (wait->file)
                        wait->file = moved[wait->file - 1] == G_MAXUINT32
                                             ? 0
                                             : moved[wait->file - 1] + 1;
        }
}

/* The ranges of all files, sorted by file, those of a file by offset, and where each file's begin.
 */
typedef struct {
        GArray *ranges;
        guint32 *first; /* files + 1 */
} ByFile;

static int
compare_place(const void *a, const void *b)
{
        const ProfileRange *x = a, *y = b;

        if (x->file != y->file)
                return x->file < y->file ? -1 : 1;
        return (x->offset_bytes > y->offset_bytes) - (x->offset_bytes < y->offset_bytes);
}

static int
compare_use(const void *a, const void *b)
{
        const ProfileRange *x = a, *y = b;

        if (x->first_use_us != y->first_use_us)
                return x->first_use_us < y->first_use_us ? -1 : 1;
        return compare_place(a, b);
}

static ByFile
by_file(const Profile *profile)
{
        ByFile sorted = {g_array_copy(profile->ranges), g_new0(guint32, profile->files->len + 1)};
        guint at = 0;

        if (sorted.ranges->len)
                qsort(sorted.ranges->data, sorted.ranges->len, sizeof(ProfileRange), compare_place);
        for (guint file = 0; file <= profile->files->len; file++) {
                while (at < sorted.ranges->len &&
                       g_array_index(sorted.ranges, ProfileRange, at).file < file)
                        at++;
                sorted.first[file] = at;
        }
        return sorted;
}

static void
by_file_clear(ByFile *sorted)
{
        g_array_unref(sorted->ranges);
        g_free(sorted->first);
}

static const ProfileRange *
range_at(const ByFile *sorted, guint i)
{
        return &g_array_index(sorted->ranges, ProfileRange, i);
}

static guint64
end_of(const ProfileRange *range)
{
        return range->offset_bytes + range->length_bytes;
}

static Choice
choose(const Profile *last, const Profile *earlier, const ByFile *before, guint32 source)
{
        gboolean any = before->first[source] < before->first[source + 1], exact = FALSE;

        for (guint i = before->first[source]; i < before->first[source + 1]; i++)
                exact |= (range_at(before, i)->flags & PROFILE_RANGE_EXACT) != 0;
        /* profiles from before ranges had the flag */
        exact |= any && earlier->exact;
        if (exact && !last->exact)
                return KEEP_EXACT;
        if (any && !last->exact && last->source > earlier->source)
                return KEEP_BETTER;
        return any && earlier->complete && !last->complete ? KEEP_BOTH : USE_LAST;
}

/* The first of the ranges from `low` to before `high` (sorted by offset, apart) that ends behind
 * `offset`. */
static guint
first_behind(const GArray *ranges, guint low, guint high, guint64 offset)
{
        while (low < high) {
                guint middle = low + (high - low) / 2;

                if (end_of(&g_array_index(ranges, ProfileRange, middle)) <= offset)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* What of `range` none of the ranges in `kept` (sorted by offset) holds. */
static void
add_uncovered(const ProfileRange *range, const GArray *kept, GArray *out)
{
        ProfileRange rest = *range;

        for (guint i = first_behind(kept, 0, kept->len, rest.offset_bytes);
             i < kept->len && rest.length_bytes; i++) {
                const ProfileRange *k = &g_array_index(kept, ProfileRange, i);

                if (k->offset_bytes >= end_of(&rest))
                        break;
                if (k->offset_bytes > rest.offset_bytes) {
                        ProfileRange piece = rest;

                        piece.length_bytes = k->offset_bytes - rest.offset_bytes;
                        g_array_append_val(out, piece);
                }
                rest.length_bytes = end_of(k) >= end_of(&rest) ? 0 : end_of(&rest) - end_of(k);
                rest.offset_bytes = end_of(k);
        }
        if (rest.length_bytes)
                g_array_append_val(out, rest);
}

typedef struct {
        ProfileRange range;
        guint64 then_us; /* its place in the earlier order */
        gboolean used;   /* by the last start: range.first_use_us is of that */
} Kept;

static int
compare_then(const void *a, const void *b)
{
        const Kept *x = a, *y = b;

        if (x->then_us != y->then_us)
                return x->then_us < y->then_us ? -1 : 1;
        return compare_place(&x->range, &y->range);
}

/* When the last start first used a page of the range. */
static Kept
time_kept(const ProfileRange *range, const ByFile *now, guint32 file)
{
        Kept kept = {.range = *range, .then_us = range->first_use_us};

        kept.range.file = file;
        kept.range.process = kept.range.stall_us = 0;
        kept.range.flags &= (guint16) ~(PROFILE_RANGE_HIT | PROFILE_RANGE_MISS);
        for (guint i = first_behind(now->ranges, now->first[file], now->first[file + 1],
                                    range->offset_bytes);
             i < now->first[file + 1]; i++) {
                const ProfileRange *use = range_at(now, i);

                if (use->offset_bytes >= end_of(range))
                        break;
                if (kept.used && use->first_use_us >= kept.range.first_use_us)
                        continue;
                kept.used = TRUE;
                kept.range.first_use_us = use->first_use_us;
                kept.range.process = use->process;
                kept.range.stall_us = use->stall_us;
                kept.range.flags = (guint16)((range->flags & PROFILE_RANGE_EXACT) |
                                             (use->flags & ~PROFILE_RANGE_EXACT));
        }
        return kept;
}

/* The earlier ranges of one file, sorted by offset, with the times of the last start. */
static GArray *
kept_ranges(const Profile *earlier, const ByFile *before, guint32 source, gboolean exact_only,
            const ByFile *now, const ProfileFile *file, guint32 number)
{
        GArray *out = g_array_new(FALSE, TRUE, sizeof(ProfileRange));
        g_autoptr(GArray) kept = g_array_new(FALSE, TRUE, sizeof(Kept));
        guint64 time_us = file->first_use_us;

        for (guint i = before->first[source]; i < before->first[source + 1]; i++) {
                ProfileRange range = *range_at(before, i);
                Kept one;

                if (earlier->exact)
                        range.flags |= PROFILE_RANGE_EXACT;
                if (exact_only && !(range.flags & PROFILE_RANGE_EXACT))
                        continue;
                one = time_kept(&range, now, number);
                g_array_append_val(kept, one);
        }
        if (kept->len)
                qsort(kept->data, kept->len, sizeof(Kept), compare_then);
        for (guint i = 0; i < kept->len; i++) {
                Kept *one = &g_array_index(kept, Kept, i);

                if (!one->used)
                        one->range.first_use_us = time_us;
                time_us = one->range.first_use_us;
                g_array_append_val(out, one->range);
        }
        if (out->len)
                qsort(out->data, out->len, sizeof(ProfileRange), compare_place);
        return out;
}

/* A look-up or a fault is of the page itself, whatever readahead does. */
static gboolean
is_sure(const Profile *last, const ProfileRange *use)
{
        return last->source == PROFILE_SOURCE_USED_PAGES &&
               (use->cause == PROFILE_CAUSE_READ || use->cause == PROFILE_CAUSE_FAULT);
}

/* Adds what the last start surely used beside the ranges kept: pages that it looked up or that
 * faulted, and windows of fault-around that no page known explains (a page that is cached is mapped
 * by its window without a fault). */
static void
add_sure(const Profile *last, const ByFile *now, guint32 number, const GArray *kept, GArray *out)
{
        guint end = now->first[number + 1], next;

        for (guint first = now->first[number]; first < end; first = next) {
                guint64 begin_bytes = range_at(now, first)->offset_bytes;
                guint64 end_bytes = begin_bytes;
                gboolean explained = last->source != PROFILE_SOURCE_USED_PAGES;
                guint at = first_behind(kept, 0, kept->len, begin_bytes);

                for (next = first; next < end && range_at(now, next)->offset_bytes == end_bytes;
                     next++) {
                        explained |= is_sure(last, range_at(now, next));
                        end_bytes = end_of(range_at(now, next));
                }
                explained |= at < kept->len &&
                             g_array_index(kept, ProfileRange, at).offset_bytes < end_bytes;
                for (guint i = first; i < next; i++)
                        if (!explained || is_sure(last, range_at(now, i)))
                                add_uncovered(range_at(now, i), kept, out);
        }
}

static void
take_file(const Profile *last, const Profile *earlier, const ByFile *now, const ByFile *before,
          guint32 number, guint32 source, Choice choice, GArray *out)
{
        g_autoptr(GArray) kept =
                kept_ranges(earlier, before, source, choice == KEEP_EXACT, now,
                            &g_array_index(last->files, ProfileFile, number), number);

        g_array_append_vals(out, kept->data, kept->len);
        if (choice == KEEP_EXACT)
                add_sure(last, now, number, kept, out);
        for (guint i = now->first[number]; choice == KEEP_BOTH && i < now->first[number + 1]; i++)
                add_uncovered(range_at(now, i), kept, out);
}

/* The ranges of files that the last start did not use, in their earlier order after all others. */
static void
take_low(const Profile *last, const Profile *earlier, const guint32 *sources, const ByFile *before,
         guint64 base_us, GArray *out)
{
        g_autoptr(GArray) low = g_array_new(FALSE, TRUE, sizeof(ProfileRange));

        for (guint32 file = 0; file < last->files->len; file++) {
                if (!(g_array_index(last->files, ProfileFile, file).flags & PROFILE_FILE_LOW))
                        continue;
                for (guint i = before->first[sources[file]]; i < before->first[sources[file] + 1];
                     i++) {
                        ProfileRange range = *range_at(before, i);

                        range.file = file;
                        range.process = range.stall_us = 0;
                        range.flags = (guint16)(earlier->exact ? PROFILE_RANGE_EXACT
                                                               : range.flags & PROFILE_RANGE_EXACT);
                        g_array_append_val(low, range);
                }
        }
        if (low->len)
                qsort(low->data, low->len, sizeof(ProfileRange), compare_use);
        for (guint i = 0; i < low->len; i++)
                g_array_index(low, ProfileRange, i).first_use_us = base_us + i;
        g_array_append_vals(out, low->data, low->len);
}

static gboolean
all_exact(const Profile *profile)
{
        for (guint i = 0; i < profile->ranges->len; i++)
                if (!(g_array_index(profile->ranges, ProfileRange, i).flags & PROFILE_RANGE_EXACT))
                        return FALSE;
        return profile->ranges->len > 0;
}

guint
merge_ranges(Profile *last, const Profile *earlier, const guint32 *sources, guint64 base_us)
{
        ByFile before = by_file(earlier), now = by_file(last);
        GArray *out = g_array_new(FALSE, TRUE, sizeof(ProfileRange));
        ProfileSource source = last->source;
        guint kept = 0;

        for (guint32 i = 0; i < last->files->len; i++) {
                Choice choice = USE_LAST;

                if (g_array_index(last->files, ProfileFile, i).flags & PROFILE_FILE_LOW)
                        continue;
                if (sources[i] != G_MAXUINT32)
                        choice = choose(last, earlier, &before, sources[i]);
                if (choice == USE_LAST) {
                        g_array_append_vals(out,
                                            now.ranges->data + now.first[i] * sizeof(ProfileRange),
                                            now.first[i + 1] - now.first[i]);
                        continue;
                }
                take_file(last, earlier, &now, &before, i, sources[i], choice, out);
                kept++;
                /* what most is known by names the source */
                if (choice != KEEP_BOTH)
                        source = MIN(source, earlier->source);
        }
        take_low(last, earlier, sources, &before, base_us, out);
        if (out->len)
                qsort(out->data, out->len, sizeof(ProfileRange), compare_use);
        g_array_unref(last->ranges);
        last->ranges = out;
        last->source = source;
        last->exact = all_exact(last);
        by_file_clear(&before);
        by_file_clear(&now);
        return kept;
}
