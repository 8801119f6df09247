// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A set of pages (or of any numbers) kept as spans that do not touch. Adding tells which of the
 * pages are new. Memory grows with the number of spans, time with their logarithm.
 */
#pragma once

#include <glib.h>

typedef struct PageSet PageSet;

PageSet *page_set_new(void);
void page_set_free(PageSet *set);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PageSet, page_set_free)

/* Called with pages [first, end) that were not in the set, in ascending order. */
typedef void (*PageSetNew)(guint64 first, guint64 end, gpointer data);

/* Adds [first, end); `added` may be NULL. */
void page_set_add(PageSet *set, guint64 first, guint64 end, PageSetNew added, gpointer data);
