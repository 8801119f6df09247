// SPDX-License-Identifier: GPL-2.0-or-later
/* Plain lists, with newlines and with NULs. */
#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        for (guint null = 0; null < 2; null++) {
                g_autoptr(ImportList) list = import_list_new(4096);

                import_parse_list(list, (const char *)data, size, null);
                check_list(list);
        }
        return 0;
}
