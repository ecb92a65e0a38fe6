/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A weight whose blocks have scales of their own, quantized while the result is written:
 * its scales, zero points and integers are generated in pieces that are independent of
 * each other, so that they are never in memory all at once.
 */
#ifndef QDQI_GRAPH_WEIGHTS_BLOCKS_H
#define QDQI_GRAPH_WEIGHTS_BLOCKS_H

#include "ground/base/arena.h"
#include "files/model/constant.h"
#include "numbers/arithmetic/params.h"
#include "qdq/report.h"

struct qdqi_blocks;

/* The bulks that are generated together. */
struct qdqi_blocks_bulks {
    const struct qdqi_made *scales, *zero_points, *integers;
    uint64_t scales_size, zero_points_size, integers_size; /* in bytes */
};

/* The largest and the smallest scale, and the largest of each part of the scales, in their
   order: as many parts as there are scales, at most QDQI_BLOCKS_PARTS. */
enum { QDQI_BLOCKS_PARTS = QDQ_SCALE_PARTS };
struct qdqi_blocks_summary {
    float low, high, parts[QDQI_BLOCKS_PARTS];
};

/* Returns whether a weight with these params can be quantized that way: a format of
   at most 8 bits in blocks whose scales are floats, and elements that the file stores one by
   one. */
bool qdqi_blocks_can(const struct qdqi_constant *weight, const struct qdqi_params *p);

/*
 * Makes the generator; it is in the arena and borrows the weight's bytes, its shape and
 * `name`. p has the format, the axis and the block; `narrow`: each range is the fraction
 * with the least error. Errors of the elements are those of qdqi_weight_params_find(), when
 * the pieces are written. NULL: out of memory.
 */
struct qdqi_blocks *qdqi_blocks_new(struct qdqi_arena *arena,
                                    const struct qdqi_constant *weight,
                                    const char *name, const struct qdqi_params *p,
                                    bool narrow, bool full);
struct qdqi_blocks_bulks qdqi_blocks_bulks(const struct qdqi_blocks *blocks);
/* Returns the size of the elements in bytes. */
uint64_t qdqi_blocks_bytes(const struct qdqi_blocks *blocks);
/* Summarizes the scales, after all pieces are written. */
struct qdqi_blocks_summary qdqi_blocks_summary(const struct qdqi_blocks *blocks);

#endif
