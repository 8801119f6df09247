// SPDX-License-Identifier: GPL-2.0-or-later
/* /proc/self/mountinfo, which holds names that any user can choose. */
#include "tests/fuzz/fuzz.h"

#include "measure/mounts.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        g_autoptr(GPtrArray) mounts = mount_table_parse((const char *)data, size);
        g_autofree gchar *tail = g_strndup((const char *)data + size / 2, size - size / 2);
        g_autofree gchar *path = g_strconcat("/", tail, NULL);

        mount_find_path(mounts, path);
        for (guint i = 0; i < mounts->len; i++) {
                Mount *mount = g_ptr_array_index(mounts, i);
                g_autofree gchar *outside = mount_path_outside(mount, path);
                g_autofree gchar *inside = outside ? mount_path_inside(mount, outside) : NULL;

                mount_has_option(mount, "rw");
                mount_find_dev(mounts, mount->dev);
                mount_find_path(mounts, mount->dir);
                g_assert(!outside || inside);
        }
        return 0;
}
