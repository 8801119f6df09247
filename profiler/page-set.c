// SPDX-License-Identifier: GPL-2.0-or-later
/* Spans in a balanced tree, by their first page. */
#include "profiler/page-set.h"

typedef struct {
        guint64 first, end;
} Span;

struct PageSet {
        GTree *spans; /* Span *: both key and value */
        Span *latest; /* what was added to last: sequential reads need no look-up */
};

static gint
compare_first(gconstpointer a, gconstpointer b, gpointer data)
{
        const Span *x = a, *y = b;

        (void)data;
        return (x->first > y->first) - (x->first < y->first);
}

PageSet *
page_set_new(void)
{
        PageSet *set = g_new0(PageSet, 1);

        set->spans = g_tree_new_full(compare_first, NULL, g_free, NULL);
        return set;
}

void
page_set_free(PageSet *set)
{
        if (!set)
                return;
        g_tree_unref(set->spans);
        g_free(set);
}

/* The last span that begins at `first` or before it. */
static Span *
find_before(PageSet *set, guint64 first)
{
        const Span key = {.first = first};
        GTreeNode *node = g_tree_upper_bound(set->spans, &key);

        node = node ? g_tree_node_previous(node) : g_tree_node_last(set->spans);
        return node ? g_tree_node_key(node) : NULL;
}

static Span *
find_after(PageSet *set, guint64 first)
{
        const Span key = {.first = first};
        GTreeNode *node = g_tree_upper_bound(set->spans, &key);

        return node ? g_tree_node_key(node) : NULL;
}

void
page_set_add(PageSet *set, guint64 first, guint64 end, PageSetNew added, gpointer data)
{
        Span *span = set->latest, *next;
        guint64 from;

        if (first >= end)
                return;
        if (span && span->first <= first && end <= span->end)
                return;
        if (!span || first < span->first || first > span->end)
                span = find_before(set, first);
        if (!span || first > span->end) {
                span = g_new(Span, 1);
                span->first = span->end = first;
                g_tree_insert(set->spans, span, span);
        }
        set->latest = span;
        from = MAX(first, span->end);
        while (from < end && (next = find_after(set, span->first)) && next->first <= end) {
                if (next->first > from && added)
                        added(from, next->first, data);
                from = next->end;
                span->end = from;
                g_tree_remove(set->spans, next);
        }
        if (from < end) {
                if (added)
                        added(from, end, data);
                span->end = end;
        }
}
