/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Range methods: from what was observed of a tensor to the range that is quantized.
 * One file each; a new method is one file and one row of the table in method.c.
 *
 * Methods that choose a threshold t for |x| quantize [-t, t] where the format is used
 * symmetrically; the range they tell is the part of it where values were seen, of which
 * one end is t, and what is quantized where the format is not. All of them tell the
 * range seen, all of it, where nothing better is found, and [0, 0] for a tensor that
 * was always zero.
 */
#ifndef QDQI_RANGE_METHOD_H
#define QDQI_RANGE_METHOD_H

#include "number/format.h"
#include "qdq/spec.h"
#include "range/observer.h"

struct qdqi_range {
    double min, max; /* finite, min <= max */
};

/* What a range is chosen for. */
struct qdqi_range_use {
    const struct qdq_calibration_spec *spec;
    enum qdqi_format format;
    bool symmetric;
};

struct qdqi_method {
    const char *name; /* as in spec and report */
    unsigned needs;   /* of the observer: QDQI_NEEDS_* */
    /* Pure. The observer was reached at least once and saw finite values only. */
    struct qdqi_range (*range)(const struct qdqi_observer *observer,
                               const struct qdqi_range_use *use);
};

/* NULL when there is no such method. */
const struct qdqi_method *qdqi_method_find(const char *name);

/* The range seen, and that within a threshold > 0 for |x|. */
struct qdqi_range qdqi_range_seen(const struct qdqi_observer *observer);
struct qdqi_range qdqi_range_within(const struct qdqi_observer *observer, double t);
/* Steps of an integer format from 0 to t, when that range is quantized. */
double qdqi_steps_within(const struct qdqi_observer *observer,
                         const struct qdqi_range_use *use, double t);

/* The range seen, all of it: exact. */
extern const struct qdqi_method qdqi_method_minmax;

/*
 * The moving average of each sample's extremes, weight 0.01, in the order of the
 * samples; onnxruntime's. Depends on that order, but not on how many samples a run
 * takes, as long as the tensor's axis 0 counts samples (struct qdqi_reached says what
 * else happens).
 */
extern const struct qdqi_method qdqi_method_moving_average;

/*
 * The threshold below which lie `percentile` percent of all |x|, zeros among them;
 * within its bin by proportion, so it is off by at most a bin's width, 1/1024 of the
 * largest |x|. 100 percent is the largest |x| exactly.
 */
extern const struct qdqi_method qdqi_method_percentile;

/*
 * The threshold with the least Kullback-Leibler divergence of the distribution of |x|,
 * cut there, from what n levels keep of it: as many as the integers from 0 to the
 * largest |x| (128 of int8, 256 of uint8 where no x is negative), and 128 of a floating
 * format. Candidates are the upper edges of all bins from the n-th on; the largest |x|
 * takes the place of the last. A format with more levels than there are bins loses
 * nothing that could be told: it gets the range seen.
 *  - P: the counts below the candidate; what lies beyond is added to its last bin.
 *  - Q: the counts below, without what lies beyond; level k of n spreads its sum evenly
 *    over those of its bins floor(k * bins / n) … floor((k + 1) * bins / n) - 1 that are
 *    not empty.
 *  - Zeros: zero is exact at any scale and says nothing about it, so bin 0 (where a Relu
 *    puts half of all values) counts as many as bin 1. A bin that is empty in P adds
 *    nothing. Where only Q is empty, which is in a last bin that has nothing but what
 *    lies beyond, the divergence is infinite and the candidate is out.
 * Of equals the largest wins.
 */
extern const struct qdqi_method qdqi_method_entropy;

/*
 * The threshold t with the least squared error of quantizing with the scale that it
 * gives (t / 127 of symmetric int8), rounding and clipping together. Within a bin values count as spread evenly, and the
 * integral of the squared error over a bin is taken in closed form, not at its centre: a
 * step of the scale may be as narrow as a bin. Candidates are the upper edges of all
 * bins from the 16th on, and the largest |x|: first each 16th, then all next to the
 * best. Of equals the smallest wins.
 */
extern const struct qdqi_method qdqi_method_mse;

/* The same; what-ifs adjust the ranges when all are found. */
extern const struct qdqi_method qdqi_method_output_mse;

#endif
