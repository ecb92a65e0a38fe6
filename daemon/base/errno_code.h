/* SPDX-License-Identifier: Apache-2.0 */
/* The error code that a client gets for an errno. */
#ifndef QDQD_BASE_ERRNO_CODE_H
#define QDQD_BASE_ERRNO_CODE_H

#include "api/problem.h"

#include <errno.h>

static inline enum api_code
errno_code(int number)
{
    switch (number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return API_DISK_FULL;
    case EMFILE:
    case ENFILE:
    case EAGAIN: /* the limit of processes and threads is reached */
    case EROFS:
        return API_UNAVAILABLE;
    case ENOMEM:
        return API_NO_MEMORY;
    default:
        return API_IO;
    }
}

#endif
