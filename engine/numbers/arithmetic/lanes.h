/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The moments (moment.h) of many groups whose rows are short: those of a depthwise
 * convolution. Each group would fill a small part of a tile alone. Here 16 groups lie side
 * by side, each in a lane of its own, and a product of two elements is computed for all 16
 * at once. The sums are the same bits as those of moments whose rows are pending apart.
 */
#ifndef QDQI_NUMBERS_ARITHMETIC_LANES_H
#define QDQI_NUMBERS_ARITHMETIC_LANES_H

#include "numbers/arithmetic/moment.h"

enum {
    QDQI_LANES = 16,
    QDQI_LANES_ELEMENTS = 32, /* of a row, at most */
};

struct qdqi_lanes {
    size_t groups, k;
    /* Rows that are to be added: [strip of 16 groups][QDQI_MOMENT_ROWS][k][QDQI_LANES]. The
       lanes behind the last group may hold anything. */
    float *pending;
    /* [strip][QDQI_MOMENT_ROWS]: a bit for each lane whose row has a NaN or an infinity. Such
       a row is left out. */
    uint16_t *left_out;
    size_t n_pending;
};

/* Returns whether the rows of so many groups, of k elements each, may be pending here. */
bool qdqi_lanes_fit(size_t groups, size_t k);

/* Makes room for the pending rows; NULL when out of memory. */
struct qdqi_lanes *qdqi_lanes_new(size_t groups, size_t k);
void qdqi_lanes_free(struct qdqi_lanes **lanes);

size_t qdqi_lanes_strips(const struct qdqi_lanes *l);
/* Returns how many rows of a strip stay in the processor's first cache. */
size_t qdqi_lanes_near(const struct qdqi_lanes *l);
/* Returns where the elements of pending row `at` are written: [k][QDQI_LANES]. */
float *qdqi_lanes_row(const struct qdqi_lanes *l, size_t strip, size_t at);
/* Must follow when n rows of a strip from place `at` on were written. They are searched for
   numbers that are not finite unless the caller knows that there are none. */
void qdqi_lanes_check(struct qdqi_lanes *l, size_t strip, size_t at, size_t n,
                      bool is_finite);

/* Adds the pending rows of a strip to the moments of its groups. Strips may be added at the
   same time. The caller sets n_pending to 0 when all are added. */
void qdqi_lanes_add(const struct qdqi_lanes *l, size_t strip,
                    struct qdqi_moment *moments);

#endif
