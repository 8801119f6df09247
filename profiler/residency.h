// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What of a file is in the page cache and in which folios: a mapping that is asked, never touched
 * (a file cut off meanwhile must not kill us).
 */
#pragma once

#include <glib.h>

typedef struct Residency Residency;

/* Shared by all files: /proc/self/pagemap and /proc/kpageflags. */
Residency *residency_new(void);
void residency_free(Residency *residency);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Residency, residency_free)

/* FALSE when the file cannot be mapped (fd < 0, empty). One file at a time. */
gboolean residency_open(Residency *residency, int fd, guint64 size_bytes);
void residency_close(Residency *residency);

/* Sets vec[i] to 1 when page first + i is resident (a ResidentFunc). */
void residency_pages(guint64 first, guint n, guint8 *vec, gpointer residency);

/* The pages of the folio that holds the resident page; the page alone when that is not known (a
 * FolioFunc). */
void residency_folio(guint64 page, guint64 *ret_first, guint64 *ret_last, gpointer residency);
