// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names from disks, traces and lists are untrusted bytes. They go to terminals and into messages
 * through path_quote(), and into JSON through json_add_path() (common/json.h).
 */
#pragma once

#include <glib.h>

/* Returns the bytes as printable UTF-8 on one line: control characters, bytes that are not UTF-8
 * and the backslash become \n, \t, \\ or \xHH; nothing else changes and no quotation marks are
 * added. */
gchar *path_quote(const char *bytes);

/* As path_quote() but for text whose names are quoted already: backslashes stay single. */
gchar *text_quote(const char *text);

/* As path_quote(), for bytes that may hold NUL. */
gchar *bytes_quote(const char *bytes, gsize length);
