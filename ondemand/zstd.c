/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of libzstd that engine/files/data/parquet/codec.c calls. */
#include "config.h"
#include "ondemand.h"

#include <stdint.h>
#include <zstd.h>

/* The largest number is an error. */
ON_DEMAND(SONAME_ZSTD, size_t, SIZE_MAX, ZSTD_decompress,
          (void *to, size_t size, const void *from, size_t packed),
          (to, size, from, packed))
ON_DEMAND(SONAME_ZSTD, unsigned, 1, ZSTD_isError, (size_t code), (code))
