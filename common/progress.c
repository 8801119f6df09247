// SPDX-License-Identifier: GPL-2.0-or-later
/* Progress on a terminal, never blocking the work. */
#include "common/progress.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define INTERVAL_US 100000

struct Progress {
        gchar *label;
        gboolean enabled;
        gboolean drawn;
        gint64 last_us, begin_us;
};

Progress *
progress_new(const char *label, gboolean enabled)
{
        Progress *progress = g_new0(Progress, 1);

        progress->label = g_strdup(label);
        progress->enabled = enabled && isatty(STDERR_FILENO);
        progress->begin_us = g_get_monotonic_time();
        return progress;
}

/* A terminal that is stopped (^S) or slow is not ready: then nothing is written. The kernel takes
 * at least a short line once poll says so. */
static void
draw(const char *text)
{
        struct pollfd terminal = {.fd = STDERR_FILENO, .events = POLLOUT};

        if (poll(&terminal, 1, 0) == 1 && (terminal.revents & POLLOUT)) {
                ssize_t ignored = write(STDERR_FILENO, text, strlen(text));

                (void)ignored;
        }
}

void
progress_update(Progress *progress, guint64 done, guint64 total, const char *unit)
{
        g_autofree gchar *line = NULL;
        gint64 now;

        if (!progress->enabled)
                return;
        now = g_get_monotonic_time();
        if (now - progress->last_us < INTERVAL_US)
                return;
        progress->last_us = now;
        if (total > 0) {
                double left_s = done ? (double)(now - progress->begin_us) / 1e6 *
                                                ((double)total / (double)done - 1)
                                     : 0;

                line = g_strdup_printf("\r%s: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
                                       " %s, %.0f s left\033[K",
                                       progress->label, done, total, unit, MAX(left_s, 0));
        } else {
                line = g_strdup_printf("\r%s: %" G_GUINT64_FORMAT " %s\033[K", progress->label,
                                       done, unit);
        }
        draw(line);
        progress->drawn = TRUE;
}

void
progress_free(Progress *progress)
{
        if (!progress)
                return;
        if (progress->drawn)
                draw("\r\033[K");
        g_free(progress->label);
        g_free(progress);
}
