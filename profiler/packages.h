// SPDX-License-Identifier: GPL-2.0-or-later
/* Which package a file belongs to: dpkg's file lists of a tree, or rpm's database. */
#pragma once

#include <glib.h>

/* The packages of these paths (inside the tree `root`, "" = /; NULL entries are passed over): an
 * array of as many names, NULL = in none. Errors: COMMON_ERROR_UNSUPPORTED when the tree has
 * neither dpkg's lists nor an rpm database that can be asked. */
GPtrArray *packages_of(const char *root, const GPtrArray *paths, GError **error);
