// SPDX-License-Identifier: GPL-2.0-or-later
/* The shared error domain. */
#include "common/error.h"

#include <errno.h>
#include <unistd.h>

#include "common/quote.h"

G_DEFINE_QUARK(headstart - common - error, common_error)

void
error_set_errno(GError **error, CommonError code, int errnum, const char *operation,
                const char *path)
{
        g_autofree gchar *quoted = path ? path_quote(path) : NULL;

        if ((errnum == EPERM || errnum == EACCES) && geteuid() != 0)
                code = COMMON_ERROR_UNSUPPORTED;
        g_set_error(error, COMMON_ERROR, code, "%s%s%s: %s", operation, quoted ? " " : "",
                    quoted ? quoted : "", g_strerror(errnum));
}
