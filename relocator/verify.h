// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Contents by hash, through fresh reads: what is on the disk counts, not what is in the page cache.
 */
#pragma once

#include <glib.h>

#include "measure/extents.h"

/* Files with more data than this are compared only where they are moved. */
#define VERIFY_WHOLE_BYTES_MAX (256ULL << 20)

/* Opens the file of `fd` once more for contents_hash(): reads of it go around the page cache where
 * the file system can. To be kept from the first hash to the last, so that a limit on open files or
 * a moment without memory in between is never taken for damaged contents. -1 with
 * COMMON_ERROR_FAILED. */
int contents_open(int fd, GError **error);

/* SHA-256 (hex) of the parts (Extents; only their logical places count), each with its place.
 * `fresh` is of contents_open(); call fsync first. Access times are not touched. NULL with
 * COMMON_ERROR_FAILED. */
gchar *contents_hash(int fresh, const GArray *parts, GError **error);

/* The emergency exit: the contents came back different. Copies what the old blocks hold (parts with
 * the places they had; the donor keeps them from being used again) from the device into the file,
 * and reads it back. TRUE when the hash is `expected` afterwards. */
gboolean contents_restore(int fd, int fresh, const char *device_node, const GArray *parts,
                          const GArray *hashed_parts, const char *expected, GError **error);
