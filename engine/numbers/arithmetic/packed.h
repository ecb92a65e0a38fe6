/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Integers of a weight that stay in memory until the result is written. Two that have at most 4
 * bits share a byte, the first one in the lower bits; others have a byte each.
 */
#ifndef QDQI_NUMBERS_ARITHMETIC_PACKED_H
#define QDQI_NUMBERS_ARITHMETIC_PACKED_H

#include "numbers/arithmetic/format.h"

#include <stddef.h>
#include <stdint.h>

/* Returns the bytes of n integers. */
static inline size_t
qdqi_packed_size(const struct qdqi_format_row *format, size_t n)
{
    return format->bits > 4 ? n : n / 2 + n % 2;
}

/* Writes integer i, whose bits are 0. */
static inline void
qdqi_packed_put(const struct qdqi_format_row *format, uint8_t *to, size_t i,
                int integer)
{
    if (format->bits > 4)
        to[i] = (uint8_t)integer;
    else
        to[i / 2] = (uint8_t)(to[i / 2] | (integer & 15) << (i % 2 * 4));
}

static inline int
qdqi_packed_get(const struct qdqi_format_row *format, const uint8_t *from, size_t i)
{
    const int sign = format->lowest >= 0 ? 0 : format->bits > 4 ? 128 : 8;
    const int code = format->bits > 4 ? from[i] : from[i / 2] >> (i % 2 * 4) & 15;
    return (code ^ sign) - sign;
}

#endif
