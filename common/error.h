// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The error domain that every module shares for what is not its own, and the exit statuses of the
 * command line contract.
 *
 * Functions that can fail return gboolean (or a pointer) and take a GError last; a message says
 * the operation and the object, quoted with path_quote(), and no trailing newline or full stop.
 * Modules with failures that a caller wants to tell apart have a domain of their own
 * (RELOCATOR_ERROR_...); cli/exit-status.c turns all of them into a status.
 */
#pragma once

#include <glib.h>

#define COMMON_ERROR (common_error_quark())
GQuark common_error_quark(void);

typedef enum {
        COMMON_ERROR_FAILED,      /* an operation failed, nothing changed or all undone: exit 1 */
        COMMON_ERROR_USAGE,       /* bad option, bad or unknown name: exit 2 */
        COMMON_ERROR_INPUT,       /* unreadable, damaged or too new input: exit 2 */
        COMMON_ERROR_UNSUPPORTED, /* cannot work here; the message names what is missing: exit 77 */
        COMMON_ERROR_INTERRUPTED, /* stopped by SIGINT, cleanly: exit 130 */
} CommonError;

typedef enum {
        EXIT_STATUS_DONE = 0,
        EXIT_STATUS_FAILED = 1,
        EXIT_STATUS_USAGE = 2,
        EXIT_STATUS_PARTIAL = 3,
        EXIT_STATUS_UNSUPPORTED = 77,
        EXIT_STATUS_OWN_FAILURE = 125, /* run, record -- CMD: headstart itself failed */
        EXIT_STATUS_NOT_EXECUTABLE = 126,
        EXIT_STATUS_NOT_FOUND = 127,
        EXIT_STATUS_INTERRUPTED = 130,
} ExitStatus;

/* Sets COMMON_ERROR/code "OPERATION PATH: strerror(errnum)"; PATH (bytes, quoted here) may be NULL.
 * EPERM and EACCES become COMMON_ERROR_UNSUPPORTED when the caller is not privileged. */
void error_set_errno(GError **error, CommonError code, int errnum, const char *operation,
                     const char *path);
