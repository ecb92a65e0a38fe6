/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/check.h"
#include "base/log.h"

#include <stdlib.h>

void
check_failed(const char *expression, const char *file, int line)
{
    char quoted[LOG_QUOTED];
    log_error("check_failed", "check=%s file=%s line=%d", log_quote(quoted, expression),
              file, line);
    abort();
}
