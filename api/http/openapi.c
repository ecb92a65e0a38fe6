/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api/openapi.h"

const char *
api_openapi(void)
{
    static const char text[] =
#include "openapi.inc"
        ;
    return text;
}
