/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "qdq/quantize.h"

const char *
qdq_version(void)
{
    return PACKAGE_VERSION;
}
