// SPDX-License-Identifier: GPL-2.0-or-later
/* Whole small files: read with a limit, replaced atomically. */
#pragma once

#include <glib.h>
#include <sys/types.h>

/* Reads a regular file whole; refuses other types without blocking (a FIFO is not waited for) and
 * files over `limit_bytes`. Errors: COMMON_ERROR_INPUT (missing, unreadable, not a regular file,
 * too large). */
GBytes *file_read(const char *path, guint64 limit_bytes, GError **error);

/* Mode: `mode` without the bits of the umask. Writes to a temporary name in the same folder,
 * fsyncs, renames over `path`, fsyncs the folder. On failure the old file is untouched and the
 * temporary one removed. A symbolic link is followed; a device or pipe is written to and stays what
 * it is. Errors: COMMON_ERROR_FAILED. */
gboolean file_replace(const char *path, const void *data, gsize length, mode_t mode,
                      GError **error);

/* write(2) until all is written. 0 or a negative errno. */
int file_write_all(int fd, const void *data, gsize length);
