// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The profile's file. Its SHA-256 is made right first, or no input would get past it; then all that
 * reads a profile must hold for whatever was taken. The source is included because a profile is
 * parsed from a file only.
 */
#include "tests/fuzz/fuzz.h"

#include "common/profile-file.c"
#include "common/ranges.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        g_autofree guint8 *copy = g_memdup2(data, size ? size : 1);
        g_autoptr(GBytes) bytes = NULL;
        g_autoptr(Profile) profile = NULL;
        g_autoptr(GError) error = NULL;
        Header header;

        if (size > sizeof header) {
                g_autoptr(GBytes) body =
                        g_bytes_new_static(copy + sizeof header, size - sizeof header);

                memcpy(&header, copy, sizeof header);
                digest(body, header.sha256);
                memcpy(copy, &header, sizeof header);
        }
        bytes = g_bytes_new_static(copy, size);
        profile = profile_parse(bytes, &error);
        g_assert((profile == NULL) == (error != NULL));
        if (profile) {
                g_autoptr(GArray) ranges = ranges_from_profile(profile, NULL);

                profile_used_bytes(profile);
                profile_file_bytes(profile);
        }
        return 0;
}
