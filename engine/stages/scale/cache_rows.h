/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that a decoder's cache held at some positions, and the magnitudes that scales are made of. */
#ifndef QDQI_STAGES_SCALE_CACHE_ROWS_H
#define QDQI_STAGES_SCALE_CACHE_ROWS_H

#include "qdq/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Rows of `channels` numbers of float16. */
struct qdqi_cache_rows {
    uint16_t *halves; /* [n][channels]; owned */
    size_t n, room, channels;
};

/* Makes room for n more rows. False when out of memory. */
bool qdqi_cache_rows_grow(struct qdqi_cache_rows *rows, size_t channels, size_t n);
/* Adds a row, for which there is room. A number beyond float16 becomes its largest one. */
void qdqi_cache_rows_add(struct qdqi_cache_rows *rows, const float *row);
void qdqi_cache_rows_fini(struct qdqi_cache_rows *rows);

/* Returns the position that is kept as row k of `kept` where they are spread over all of
   `positions`, from the first to the last. */
size_t qdqi_cache_rows_place(size_t k, size_t kept, size_t positions);

/* Writes for each channel the magnitude below which `percent` of the rows are, between two of
   them in proportion. There is at least one row. */
void qdqi_cache_percentile(const struct qdqi_cache_rows *rows, double percent,
                           float *to);

/* Writes for each channel the share of `largest` with which the squared error of integers from
   -divisor to divisor - 1 is least. NO_MEMORY. */
enum qdq_code qdqi_cache_mse(const struct qdqi_cache_rows *rows, const float *largest,
                             double divisor, float *to,
                             struct qdq_error *err) QDQ_MUST_CHECK;

#endif
