// SPDX-License-Identifier: GPL-2.0-or-later
/* Heads of executed files. */
#include "tests/fuzz/fuzz.h"

#include "measure/executable.h"
#include "profiler/resolve-open.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        g_autofree gchar *interpreter = resolve_interpreter_parse(data, size);
        g_autoptr(GArray) spans = executable_spans_parse(data, size, 4096);

        g_assert(!interpreter || interpreter[0] == '/');
        for (guint i = 0; spans && i < spans->len; i++)
                g_assert(((const guint64 *)(const void *)spans->data)[2 * i] <= G_MAXINT64);
        return 0;
}
