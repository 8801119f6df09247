// SPDX-License-Identifier: GPL-2.0-or-later
/* systemd-readahead's packs. */
#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        g_autoptr(ImportList) list = import_list_new(4096);
        g_autoptr(GError) error = NULL;
        gboolean taken = import_parse_systemd(list, (const char *)data, size, &error);

        g_assert(taken == (error == NULL));
        check_list(list);
        return 0;
}
