// SPDX-License-Identifier: GPL-2.0-or-later
/* Three estimates for the one line that `run` prints. */
#include "measure/gain.h"

#include <string.h>

#include "common/error.h"
#include "common/json.h"
#include "measure/estimate.h"

#define WORTH_PART 0.95

/* The class's name out of the table, which outlives the layout. */
static const char *
constant_name(const char *name)
{
        for (const char *const *known = disk_model_names(); *known != NULL; known++)
                if (strcmp(*known, name) == 0)
                        return *known;
        return "";
}

gboolean
relocation_gain_estimate(const Profile *profile, const char *root, RelocationGain *ret,
                         GError **error)
{
        LayoutOptions options = {.root = root};
        Profile local = *profile; /* only `meta` is added to */
        g_autoptr(GArray) meta = g_array_copy(profile->meta);
        g_autoptr(GArray) ranges = ranges_from_profile(profile, NULL);
        g_autoptr(Layout) layout = NULL;
        EstimateInput input = {.profile = &local,
                               .cpu_ms = estimate_cpu_ms(profile),
                               .readahead_bytes = G_MAXUINT64,
                               .place_bytes = G_MAXUINT64};
        Estimate cold, prefetch, relocated;
        const LayoutDisk *disk;

        local.meta = meta;
        layout = layout_load(&local, &options, error);
        if (layout == NULL)
                return FALSE;
        if (layout->measured == 0 || layout->disks->len == 0) {
                const Skipped *first = layout->skipped->len > 0 ? layout->skipped->pdata[0] : NULL;

                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                            "nothing of it lies on a disk%s%s", first != NULL ? ": " : "",
                            first != NULL ? first->reason : "");
                return FALSE;
        }
        input.layout = layout;
        estimate_situation(&input, "cold", &cold);
        estimate_situation(&input, "prefetch", &prefetch);
        estimate_situation(&input, "relocated-prefetch", &relocated);
        disk = layout->disks->pdata[layout_main_disk(layout, ranges)];
        ret->model = constant_name(disk->model->name);
        ret->cold_ms = cold.total_ms;
        ret->prefetch_ms = prefetch.total_ms;
        ret->relocated_ms = relocated.total_ms;
        ret->worth_it = disk->model->kind == DISK_ROTATIONAL &&
                        relocated.total_ms <= WORTH_PART * prefetch.total_ms;
        return TRUE;
}
