// SPDX-License-Identifier: GPL-2.0-or-later
/* What can go wrong in the relocator that a caller wants to tell apart. */
#pragma once

#include <glib.h>

#define RELOCATOR_ERROR (relocator_error_quark())
GQuark relocator_error_quark(void);

typedef enum {
        RELOCATOR_ERROR_NOT_EXT4, /* nothing of the profile can be moved here: exit 77 */
        RELOCATOR_ERROR_REFUSED,  /* moving would be dangerous (no journal, snapshot below): exit 77
                                   */
        RELOCATOR_ERROR_NO_SPACE, /* nothing changed: exit 1 */
        RELOCATOR_ERROR_MOVE,     /* a move failed; what was moved of the file is put back */
        RELOCATOR_ERROR_VERIFY,   /* contents read back differ: exit 1 */
        RELOCATOR_ERROR_FAILED,
} RelocatorError;
