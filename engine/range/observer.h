/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The accumulator of an activation while a model runs. Its size is fixed,
 * whatever the number of samples and elements, with no more in it than the range method
 * needs.
 *
 * An observer belongs to one session; the runtime runs a session's nodes one after
 * another, so it needs no lock. A session that is run by several threads at once needs
 * a set of observers for each. Within one node the elements of a large tensor are
 * shared over threads, each with a part of its own; parts are merged in their order,
 * and merging is exact. What is averaged is cut at the samples' borders before that, so
 * averages do not depend on the parts either.
 */
#ifndef QDQI_RANGE_OBSERVER_H
#define QDQI_RANGE_OBSERVER_H

#include "base/arena.h"
#include "base/dtype.h"
#include "number/histogram.h"
#include "number/minmax.h"

/* Observations that a range method needs beyond the extremes. */
enum {
    QDQI_NEEDS_HISTOGRAM = 1 << 0,
    QDQI_NEEDS_AVERAGE = 1 << 1, /* of each sample's extremes */
};

/* The part of an observer that can be merged. */
struct qdqi_accumulator {
    struct qdqi_extremes extremes;
    struct qdqi_histogram *histogram; /* NULL: not needed */
};

/*
 * Moving average of the samples' extremes, in their order:
 * average += weight * (extreme - average), beginning with the first sample's.
 */
struct qdqi_average {
    double min, max;
    bool begun;
};

struct qdqi_observer {
    const char *tensor;
    struct qdqi_accumulator all;
    struct qdqi_average average;
    int64_t runs; /* how often the tensor was reached */
};

/* A thread's share of a tensor. */
struct qdqi_thread_share {
    struct qdqi_accumulator all;
    struct qdqi_extremes rest; /* of the sample that began in the part before */
};

struct qdqi_observers {
    struct qdqi_observer *rows;    /* by slot */
    const enum qdqi_dtype *dtypes; /* likewise, what is expected; NULL: float32 */
    size_t n;
    unsigned needs;
    int64_t samples; /* of the run under way */
    struct qdqi_thread_share *parts;
    size_t n_parts;             /* threads that may share a tensor, >= 1 */
    struct qdqi_extremes *each; /* by sample of the run, where that is needed */
    size_t room;                /* samples that it can hold */
    struct qdqi_arena *arena;
};

/* Observers of all these tensors, in the arena; false when out of memory. */
bool qdqi_observers_init(struct qdqi_observers *observers, const char *const *tensors,
                         size_t n, unsigned needs, size_t n_parts,
                         struct qdqi_arena *arena);
/* Before a run of so many samples; false when out of memory. */
bool qdqi_observers_begin(struct qdqi_observers *observers,
                          int64_t samples) QDQ_MUST_CHECK;
/* Makes `to`, of the same tensors and needs, hold what `from` has taken in, no more. */
void qdqi_observers_copy(struct qdqi_observers *to, const struct qdqi_observers *from);

/* Makes these, by slot, empty again. */
void qdqi_observers_reset(struct qdqi_observers *observers, const bool *which);
/* Takes the extremes of further samples into the average. */
void qdqi_observer_average(struct qdqi_observer *observer,
                           const struct qdqi_extremes *samples, size_t n);

/* A float32 or float16 tensor that a run has reached. */
struct qdqi_reached {
    struct qdqi_observer *observer;
    enum qdqi_dtype dtype;
    const void *data;
    size_t n;
    /*
     * Samples that lie in it one behind the other: those of the run where axis 0 has as
     * many indices, else 1, for then the tensor is one sample's or cannot be cut. (An
     * axis 0 that has as many indices as the run has samples by chance is cut, too.)
     */
    size_t samples;
    struct qdqi_extremes *each; /* NULL: not needed */
    struct qdqi_thread_share *parts;
    size_t n_parts; /* 1: too small to be shared */
};

/* `axis0`: its number of indices, or 0 for a tensor without axes. */
struct qdqi_reached qdqi_reached(struct qdqi_observers *observers, size_t slot,
                                 enum qdqi_dtype dtype, const void *data, size_t n,
                                 int64_t axis0);
/* Takes in part i of n_parts; different ones may be taken in at once. */
void qdqi_reached_part(const struct qdqi_reached *reached, size_t i);
/* When all parts are in. */
void qdqi_reached_end(const struct qdqi_reached *reached);

#endif
