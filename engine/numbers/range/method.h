/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Range methods: each computes the range of a tensor from its observations.
 *
 * Each method is a file engine/numbers/range/NAME.c that defines qdqi_method_NAME. The list of
 * these files in engine/local.mk is the table of methods: the build writes a row
 * METHOD(NAME) for each file into range/methods.inc. docs/extend/adding-a-range-method.md has
 * the steps.
 *
 * Some methods choose a threshold t for |x|. If the format is used symmetrically, [-t,
 * t] is quantized, otherwise the range that the method returns. That is the part of
 * [-t, t] in which values were observed; one end of it is t or -t. If no other range is
 * better, a method returns the whole observed range. For a tensor that was always zero
 * it returns [0, 0].
 */
#ifndef QDQI_NUMBERS_RANGE_METHOD_H
#define QDQI_NUMBERS_RANGE_METHOD_H

#include "numbers/arithmetic/format.h"
#include "qdq/spec.h"
#include "numbers/range/observer.h"

struct qdqi_range {
    double min, max; /* finite, min <= max */
};

/* The format for which a range is computed. */
struct qdqi_range_use {
    const struct qdq_calibration_spec *spec;
    enum qdqi_format format;
    bool symmetric;
};

enum {
#define METHOD(name) QDQI_METHOD_##name,
#include "numbers/range/methods.inc"
#undef METHOD
    QDQI_N_METHODS
};

struct qdqi_method {
    const char *name; /* name in specs and reports */
    unsigned needs;   /* observations it needs beyond the extremes: QDQI_NEEDS_* */
    /* Computes the range. Has no side effects. The observer was reached at least
       once and observed only finite values. */
    struct qdqi_range (*range)(const struct qdqi_observer *observer,
                               const struct qdqi_range_use *use);
    /* whether calibration.percentile of the spec is its parameter */
    bool uses_percentile;
    /* The method with whose ranges what-ifs begin to adjust the ranges; NULL for a
       method whose ranges are not adjusted. */
    const struct qdqi_method *start;
};

/* Defines the method of that name. The arguments behind the name are its other
   members. */
#define QDQI_METHOD(id, ...) \
    const struct qdqi_method qdqi_method_##id = {.name = #id, __VA_ARGS__}

/* Returns the method, or NULL when there is none of that name. */
const struct qdqi_method *qdqi_method_find(const char *name);

/* seen_range.c: return the observed range, and its part within a threshold t > 0 for |x|. */
struct qdqi_range qdqi_range_seen(const struct qdqi_observer *observer);
struct qdqi_range qdqi_range_within(const struct qdqi_observer *observer, double t);
/* Returns the number of an integer format's steps from 0 to t when the part of the
   observed range within t is quantized. */
double qdqi_steps_within(const struct qdqi_observer *observer,
                         const struct qdqi_range_use *use, double t);

/* mse.c: returns the sum of the squared errors of all values, in bins of the observer's
   histogram, when values beyond t > 0 bins are clipped. */
double qdqi_mse_error(const struct qdqi_observer *observer,
                      const struct qdqi_range_use *use, double t);

#define METHOD(name) extern const struct qdqi_method qdqi_method_##name;
#include "numbers/range/methods.inc"
#undef METHOD

#endif
