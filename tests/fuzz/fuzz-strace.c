// SPDX-License-Identifier: GPL-2.0-or-later
/* strace logs, fed in two pieces. */
#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        g_autoptr(ImportList) list = import_list_new(4096);
        g_autoptr(StraceImport) strace = strace_import_new(list, size % 2 ? "/w" : NULL);

        strace_import_feed(strace, (const char *)data, size / 3);
        strace_import_feed(strace, (const char *)data + size / 3, size - size / 3);
        strace_import_finish(strace, NULL);
        check_list(list);
        return 0;
}
