// SPDX-License-Identifier: GPL-2.0-or-later
/* Which parts of an ELF file are mapped to be executed: the kernel reads ahead otherwise there. */
#pragma once

#include <glib.h>

/* Returns a GArray of PageSpan (measure/readahead-sim.h), or NULL when the file is no ELF file of
 * this machine's byte order or has no such part. Reads at most its first 8 KiB. */
GArray *executable_spans(int fd, guint32 page_bytes);
/* The same from the file's first bytes. Pure; the bytes are untrusted. */
GArray *executable_spans_parse(const void *bytes, gsize length, guint32 page_bytes);
