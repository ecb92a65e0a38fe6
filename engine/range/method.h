/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Range methods: from what was observed of a tensor to the range that is quantized.
 *
 * Each method is a file engine/range/NAME.c that defines qdqi_method_NAME. The list of these
 * files in engine/local.mk is the table of methods: the build writes a row METHOD(NAME) for
 * each file into range/methods.inc. docs/adding-a-range-method.md has the steps.
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

/* The purpose of a range. */
struct qdqi_range_use {
    const struct qdq_calibration_spec *spec;
    enum qdqi_format format;
    bool symmetric;
};

enum {
#define METHOD(name) QDQI_METHOD_##name,
#include "range/methods.inc"
#undef METHOD
    QDQI_N_METHODS
};

struct qdqi_method {
    const char *name; /* as in specs and reports */
    unsigned needs;   /* of the observer, beyond the extremes: QDQI_NEEDS_* */
    /* Pure. The observer was reached at least once and saw finite values only. */
    struct qdqi_range (*range)(const struct qdqi_observer *observer,
                               const struct qdqi_range_use *use);
    bool uses_percentile; /* calibration.percentile of the spec is its parameter */
    /* What-ifs adjust the ranges of such a method when all are found. Then this is the
       method that found them; else it is NULL. */
    const struct qdqi_method *start;
};

/* Defines the method of that name; its other members follow. */
#define QDQI_METHOD(id, ...) \
    const struct qdqi_method qdqi_method_##id = {.name = #id, __VA_ARGS__}

/* NULL when there is no such method. */
const struct qdqi_method *qdqi_method_find(const char *name);

/* The range seen, and that within a threshold > 0 for |x|. */
struct qdqi_range qdqi_range_seen(const struct qdqi_observer *observer);
struct qdqi_range qdqi_range_within(const struct qdqi_observer *observer, double t);
/* Steps of an integer format from 0 to t, when that range is quantized. */
double qdqi_steps_within(const struct qdqi_observer *observer,
                         const struct qdqi_range_use *use, double t);

#define METHOD(name) extern const struct qdqi_method qdqi_method_##name;
#include "range/methods.inc"
#undef METHOD

#endif
