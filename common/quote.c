// SPDX-License-Identifier: GPL-2.0-or-later
/* Escaping of untrusted bytes for terminals and messages. */
#include "common/quote.h"

#include <string.h>

static gchar *
escape(const char *bytes, gsize length, gboolean double_backslash)
{
        GString *out = g_string_sized_new(length + 8);
        const char *p = bytes, *end = bytes + length;

        while (p < end) {
                gunichar c = g_utf8_get_char_validated(p, end - p);

                if (c == (gunichar)-1 || c == (gunichar)-2 || c == 0) {
                        g_string_append_printf(out, "\\x%02x", (guint8)*p);
                        p++;
                        continue;
                }
                if (c == '\\' && double_backslash)
                        g_string_append(out, "\\\\");
                else if (c == '\n')
                        g_string_append(out, "\\n");
                else if (c == '\t')
                        g_string_append(out, "\\t");
                else if (!g_unichar_isprint(c))
                        /* also bidirectional overrides and other format characters */
                        for (const char *q = p; q < g_utf8_next_char(p); q++)
                                g_string_append_printf(out, "\\x%02x", (guint8)*q);
                else
                        g_string_append_unichar(out, c);
                p = g_utf8_next_char(p);
        }
        return g_string_free(out, FALSE);
}

gchar *
bytes_quote(const char *bytes, gsize length)
{
        return escape(bytes, length, TRUE);
}

gchar *
path_quote(const char *bytes)
{
        /* an empty name would be read as none at all */
        return *bytes ? bytes_quote(bytes, strlen(bytes)) : g_strdup("\"\"");
}

gchar *
text_quote(const char *text)
{
        return escape(text, strlen(text), FALSE);
}
