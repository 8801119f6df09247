// SPDX-License-Identifier: GPL-2.0-or-later
/* JSON output: one document on standard output, through json-glib. */
#pragma once

#include <json-glib/json-glib.h>

/* Inside an object: adds KEY as escaped text (path_quote()) and, when the bytes are not UTF-8,
 * KEY_base64 with the bytes themselves. UTF-8 text goes in as it is. */
void json_add_path(JsonBuilder *builder, const char *key, const char *bytes);

void json_add_int(JsonBuilder *builder, const char *key, gint64 value);
void json_add_double(JsonBuilder *builder, const char *key, double value);
void json_add_bool(JsonBuilder *builder, const char *key, gboolean value);
void json_add_string(JsonBuilder *builder, const char *key, const char *value);

/* Adds KEY: [{path, reason}]; `skipped` holds Skipped *. */
typedef struct {
        gchar *path;
        gchar *reason;
} Skipped;
Skipped *skipped_new(const char *path, const char *reason_format, ...) G_GNUC_PRINTF(2, 3);
void skipped_free(gpointer skipped);
void json_add_skipped(JsonBuilder *builder, const char *key, const GPtrArray *skipped);

/* Prints the document with a newline to standard output and flushes. FALSE when that fails. */
gboolean json_print(JsonBuilder *builder, GError **error);
