// SPDX-License-Identifier: GPL-2.0-or-later
/* From an error's domain and code to the exit status of the command line contract. */
#include "cli/cli.h"

#include "measure/device.h"

ExitStatus
cli_exit_status(const GError *error)
{
        if (error->domain == DEVICE_ERROR)
                return EXIT_STATUS_UNSUPPORTED;
        if (error->domain == G_OPTION_ERROR)
                return EXIT_STATUS_USAGE;
        if (error->domain != COMMON_ERROR)
                return EXIT_STATUS_FAILED;
        switch ((CommonError)error->code) {
        case COMMON_ERROR_FAILED: return EXIT_STATUS_FAILED;
        case COMMON_ERROR_USAGE:
        case COMMON_ERROR_INPUT: return EXIT_STATUS_USAGE;
        case COMMON_ERROR_UNSUPPORTED: return EXIT_STATUS_UNSUPPORTED;
        case COMMON_ERROR_INTERRUPTED: return EXIT_STATUS_INTERRUPTED;
        }
        return EXIT_STATUS_FAILED;
}
