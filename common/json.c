// SPDX-License-Identifier: GPL-2.0-or-later
/* JSON output. */
#include "common/json.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/error.h"
#include "common/quote.h"

void
json_add_path(JsonBuilder *builder, const char *key, const char *bytes)
{
        gsize length = strlen(bytes);

        json_builder_set_member_name(builder, key);
        if (g_utf8_validate(bytes, length, NULL)) {
                json_builder_add_string_value(builder, bytes);
                return;
        }
        {
                g_autofree gchar *text = path_quote(bytes);
                g_autofree gchar *base64 = g_base64_encode((const guchar *)bytes, length);
                g_autofree gchar *base64_key = g_strconcat(key, "_base64", NULL);

                json_builder_add_string_value(builder, text);
                json_builder_set_member_name(builder, base64_key);
                json_builder_add_string_value(builder, base64);
        }
}

void
json_add_int(JsonBuilder *builder, const char *key, gint64 value)
{
        json_builder_set_member_name(builder, key);
        json_builder_add_int_value(builder, value);
}

void
json_add_double(JsonBuilder *builder, const char *key, double value)
{
        json_builder_set_member_name(builder, key);
        json_builder_add_double_value(builder, value);
}

void
json_add_bool(JsonBuilder *builder, const char *key, gboolean value)
{
        json_builder_set_member_name(builder, key);
        json_builder_add_boolean_value(builder, value);
}

void
json_add_string(JsonBuilder *builder, const char *key, const char *value)
{
        json_builder_set_member_name(builder, key);
        json_builder_add_string_value(builder, value);
}

Skipped *
skipped_new(const char *path, const char *reason_format, ...)
{
        Skipped *skipped = g_new0(Skipped, 1);
        va_list args;

        skipped->path = g_strdup(path);
        va_start(args, reason_format);
        skipped->reason = g_strdup_vprintf(reason_format, args);
        va_end(args);
        return skipped;
}

void
skipped_free(gpointer data)
{
        Skipped *skipped = data;

        if (!skipped)
                return;
        g_free(skipped->path);
        g_free(skipped->reason);
        g_free(skipped);
}

void
json_add_skipped(JsonBuilder *builder, const char *key, const GPtrArray *skipped)
{
        json_builder_set_member_name(builder, key);
        json_builder_begin_array(builder);
        for (guint i = 0; skipped && i < skipped->len; i++) {
                const Skipped *entry = skipped->pdata[i];

                json_builder_begin_object(builder);
                json_add_path(builder, "path", entry->path);
                json_add_string(builder, "reason", entry->reason);
                json_builder_end_object(builder);
        }
        json_builder_end_array(builder);
}

gboolean
json_print(JsonBuilder *builder, GError **error)
{
        g_autoptr(JsonNode) root = json_builder_get_root(builder);
        g_autoptr(JsonGenerator) generator = json_generator_new();
        g_autofree gchar *text = NULL;
        gsize length;

        json_generator_set_root(generator, root);
        json_generator_set_pretty(generator, TRUE);
        text = json_generator_to_data(generator, &length);
        if (fwrite(text, 1, length, stdout) != length || fputc('\n', stdout) == EOF ||
            fflush(stdout) != 0) {
                error_set_errno(error, COMMON_ERROR_FAILED, errno,
                                "cannot write to standard output", NULL);
                return FALSE;
        }
        return TRUE;
}
