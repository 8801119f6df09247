// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a start leaves behind and does not need again: rules on paths, in files that people edit.
 *
 * A line is a pattern, "!pattern" (takes such files in again), a comment ("#") or empty; the last
 * line that matches decides. Bytes are compared, no character set is assumed. In a pattern a star
 * stands for any bytes but the slash, two stars for any bytes (alone between two slashes also for
 * no folder at all), ? for one byte but the slash, [a-z] and [!a-z] for one byte of a set (never
 * the slash); a backslash takes the special meaning away, and \n, \t, \xHH are bytes as headstart
 * prints them. A pattern that begins with a slash counts from the top of the tree, any other at
 * every depth; one that ends in a slash means everything below. A line that is none of this is
 * reported and ignored.
 *
 * Pure but for rules_load_folders() and rules_default_folder(). A look costs at most the length of
 * the path times that of the pattern for each rule; most are decided by their last bytes.
 */
#pragma once

#include <glib.h>

typedef struct Rules Rules;

Rules *rules_new(void);
void rules_free(Rules *rules);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Rules, rules_free)

/* Adds the lines of one file. `source` names it in messages and reasons. What is wrong is added to
 * `problems` (gchar *, "SOURCE:LINE: what, ignoring"), which may be NULL. */
void rules_add_text(Rules *rules, const char *text, gsize length, const char *source,
                    GPtrArray *problems);

/* The rules of all files "*.conf" of every folder: a file of a later folder takes the place of one
 * with the same name in an earlier one; all in the order of their names, bytewise. A folder that
 * does not exist counts as empty; a file that cannot be read is a problem. */
Rules *rules_load_folders(const char *const *folders, GPtrArray *problems);

/* The folder of the defaults, found from the place of the running program (PREFIX/bin ->
 * PREFIX/lib/headstart/exclude.d; not installed: exclude.d beside it); NULL when there is none. */
gchar *rules_default_folder(void);
#define RULES_FOLDER_OF_THE_MACHINE "/etc/headstart/exclude.d"

guint rules_count(const Rules *rules);

/* Where the rule stands that leaves `path` (absolute, in the tree) out: "SOURCE:LINE"; NULL when it
 * stays in. Borrowed. */
const char *rules_left_out_by(const Rules *rules, const char *path);
