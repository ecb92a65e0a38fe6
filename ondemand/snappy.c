/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of libsnappy that engine/files/data/parquet/codec.c calls. */
#include "config.h"
#include "ondemand.h"

#include <snappy-c.h>

ON_DEMAND(SONAME_SNAPPY, snappy_status, SNAPPY_INVALID_INPUT,
          snappy_uncompressed_length, (const char *from, size_t packed, size_t *size),
          (from, packed, size))
ON_DEMAND(SONAME_SNAPPY, snappy_status, SNAPPY_INVALID_INPUT, snappy_uncompress,
          (const char *from, size_t packed, char *to, size_t *size),
          (from, packed, to, size))
