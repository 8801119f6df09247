// SPDX-License-Identifier: GPL-2.0-or-later
/* stats.c - the counters as text: a key, a space and a number a line. */
#include "stats.h"

char *
drive_stats_format(const DriveStats *stats, guint64 queued, guint64 unwritten_bytes,
                   gboolean realtime)
{
        const struct {
                const char *key;
                guint64 value;
        } counts[] = {
                {"reads", stats->reads},
                {"writes", stats->writes},
                {"flushes", stats->flushes},
                {"discards", stats->discards},
                {"read_bytes", stats->read_bytes},
                {"write_bytes", stats->write_bytes},
                {"destages", stats->destages},
                {"destage_bytes", stats->destage_bytes},
                {"cache_hits", stats->cache_hits},
                {"first_touches", stats->first_touches},
                {"seeks", stats->seeks},
                {"max_queue", stats->max_queue},
                {"queued", queued},
                {"unwritten_bytes", unwritten_bytes},
                {"realtime", realtime},
        };
        const struct {
                const char *key;
                double value;
        } times[] = {
                {"busy_s", stats->busy_ms / 1e3},
                {"seek_s", stats->seek_ms / 1e3},
                {"rotation_s", stats->rotation_ms / 1e3},
                {"transfer_s", stats->transfer_ms / 1e3},
                {"overhead_s", stats->overhead_ms / 1e3},
                {"wait_s", stats->wait_ms / 1e3},
                {"late_mean_us",
                 stats->answers > 0 ? stats->late_ms * 1e3 / (double)stats->answers : 0},
                {"late_max_us", stats->late_max_ms * 1e3},
        };
        GString *text = g_string_new(NULL);

        for (gsize i = 0; i < G_N_ELEMENTS(counts); i++)
                g_string_append_printf(text, "%s %" G_GUINT64_FORMAT "\n", counts[i].key,
                                       counts[i].value);
        for (gsize i = 0; i < G_N_ELEMENTS(times); i++) {
                char number[G_ASCII_DTOSTR_BUF_SIZE];

                g_ascii_formatd(number, sizeof number, "%.6f", times[i].value);
                g_string_append_printf(text, "%s %s\n", times[i].key, number);
        }
        return g_string_free(text, FALSE);
}
