// SPDX-License-Identifier: GPL-2.0-or-later
/* Looking one name up without any risk. Used by profiler/resolve.c only. */
#pragma once

#include <glib.h>
#include <sys/stat.h>

/* Follows links, below `root_fd` when that is not -1. An O_PATH descriptor, or -1 with errno. */
int resolve_open(int root_fd, const char *path);

/* What a thing that is no regular file is: "a FIFO, not a file". */
const char *resolve_type_name(mode_t mode);

/* TRUE for file systems in memory: reading them costs no disk, or is no reading at all. */
gboolean resolve_is_memory(const char *fs_type);

/* Opens the regular file behind the O_PATH descriptor for reading. -1 with errno. */
int resolve_reopen(int path_fd);

/* FS_IOC_GETVERSION, 0 where the file system has none. */
guint32 resolve_generation(int fd);

/* What the kernel reads beside an executed file: the interpreter of a script ("#!") or of an ELF
 * program (PT_INTERP). NULL = none. The head of the file is untrusted. */
gchar *resolve_interpreter(int fd);
/* The same from the first bytes of a file. Pure. */
gchar *resolve_interpreter_parse(const void *head, gsize length);
