/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The accumulators of an activation while a model runs. Their size is fixed for any
 * number of samples and elements, and they have only what the range method needs.
 *
 * An observer belongs to one session. The runtime runs a session's nodes one after the
 * other, so it needs no lock. A session that several threads run at once would need a
 * set of observers for each. Within a node, threads share the elements of a large
 * tensor, and each has its own part. The parts are merged in their order, and merging
 * is exact. Averages use the extremes of whole samples, so they do not depend on the
 * parts either.
 */
#ifndef QDQI_NUMBERS_RANGE_OBSERVER_H
#define QDQI_NUMBERS_RANGE_OBSERVER_H

#include "ground/base/arena.h"
#include "ground/base/dtype.h"
#include "numbers/arithmetic/histogram.h"
#include "numbers/arithmetic/minmax.h"

/* Observations that a range method needs beyond the extremes. */
enum {
    QDQI_NEEDS_HISTOGRAM = 1 << 0,
    QDQI_NEEDS_AVERAGE = 1 << 1, /* average of the extremes of each sample */
};

/* The part of an observer that can be merged. */
struct qdqi_accumulator {
    struct qdqi_extremes extremes;
    struct qdqi_histogram *histogram; /* NULL when it is not needed */
};

/* The moving average of the samples' extremes, in their order: average += weight *
   (extreme - average). It begins with the extremes of the first sample. */
struct qdqi_average {
    double min, max;
    bool begun;
};

struct qdqi_observer {
    const char *tensor;
    struct qdqi_accumulator all;
    struct qdqi_average average;
    int64_t runs; /* number of runs that reached the tensor */
};

/* A thread's part of a tensor. */
struct qdqi_thread_share {
    struct qdqi_accumulator all;
    /* extremes of the rest of a sample that began in an earlier part */
    struct qdqi_extremes rest;
};

/* The extremes of samples by which an average is still to be updated. */
struct qdqi_postponed {
    struct qdqi_extremes *samples;
    size_t n; /* more than there is room for: some are lost */
};

struct qdqi_observers {
    struct qdqi_observer *rows; /* by slot */
    /* by slot: the expected type; NULL: all are float32 */
    const enum qdqi_dtype *dtypes;
    /* by slot: the channels of a tensor that the runtime may hold in blocks, or 0; NULL:
       all are 0 (transform/rewrite/blocked.h) */
    const size_t *channels;
    size_t n;
    unsigned needs;
    int64_t samples; /* samples of the current run */
    struct qdqi_thread_share *parts;
    size_t n_parts; /* maximum number of threads that share a tensor, >= 1 */
    /* by sample of the run: its extremes; NULL when averages are not needed */
    struct qdqi_extremes *each;
    size_t room; /* number of samples for which `each` has room */
    /* by slot: what averages wait for; NULL: they are updated at once */
    struct qdqi_postponed *postponed;
    size_t most_postponed; /* samples of a tensor */
    struct qdqi_arena *arena;
};

/* Initializes an observer for each of the tensors, in the arena. Returns false when
   out of memory. */
bool qdqi_observers_init(struct qdqi_observers *observers, const char *const *tensors,
                         size_t n, unsigned needs, size_t n_parts,
                         struct qdqi_arena *arena);
/* Prepares for a run of that many samples. Returns false when out of memory. */
bool qdqi_observers_begin(struct qdqi_observers *observers,
                          int64_t samples) QDQ_MUST_CHECK;
/* Copies the observations of `from` to `to`, which has the same tensors and
   accumulators. */
void qdqi_observers_copy(struct qdqi_observers *to, const struct qdqi_observers *from);

/* Empties the observers for which which[slot] is true. */
void qdqi_observers_reset(struct qdqi_observers *observers, const bool *which);
/* Has averages wait for qdqi_observers_average(), for as many samples of each tensor. Returns
   false when out of memory. */
bool qdqi_observers_postpone(struct qdqi_observers *observers,
                             size_t samples) QDQ_MUST_CHECK;
/* Returns whether no tensor held a NaN or an infinity, and all samples are there by which
   averages are to be updated. */
bool qdqi_observers_can_merge(const struct qdqi_observers *observers);
/* Updates the averages of `to` by the samples for which those of `from` wait. */
void qdqi_observers_average(struct qdqi_observers *to, struct qdqi_observers *from);
/* Moves all other observations of `from` to `to`, which has the same tensors and
   accumulators. */
void qdqi_observers_merge(struct qdqi_observers *to, struct qdqi_observers *from);

/* Updates the average with the extremes of n more samples. */
void qdqi_observer_average(struct qdqi_observer *observer,
                           const struct qdqi_extremes *samples, size_t n);

/* A float32 or float16 tensor that a run has reached, while it is observed. */
struct qdqi_reached {
    struct qdqi_observer *observer;
    enum qdqi_dtype dtype;
    const void *data;
    size_t n;
    /*
     * Number of samples in the tensor. If axis 0 has as many indices as the run has
     * samples, each index counts as a sample. (That can be by chance.) Otherwise it is
     * 1, because the tensor is about one sample or cannot be divided.
     */
    size_t samples;
    /* extremes by sample; NULL when averages are not needed */
    struct qdqi_extremes *each;
    struct qdqi_postponed *postponed; /* what the average waits for, or NULL */
    size_t most_postponed;
    struct qdqi_thread_share *parts;
    size_t n_parts; /* 1 when the tensor is too small to be shared */
};

/* Begins the observation of a tensor. `axis0` is the number of indices of its axis
   0, or 0 for a tensor without axes. */
struct qdqi_reached qdqi_reached(struct qdqi_observers *observers, size_t slot,
                                 enum qdqi_dtype dtype, const void *data, size_t n,
                                 int64_t axis0);
/* Observes part i of n_parts. Several threads may observe different parts at the
   same time. */
void qdqi_reached_part(const struct qdqi_reached *reached, size_t i);
/* Ends the observation, after all parts were observed. */
void qdqi_reached_end(const struct qdqi_reached *reached);

#endif
