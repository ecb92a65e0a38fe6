/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The moments of the inputs of weighted layers, which rounding that compensates errors
 * and the correction of biases use. They are collected while calibration runs the model,
 * by a Moment node at each input.
 */
#ifndef QDQI_STAGES_CALIBRATE_MOMENTS_H
#define QDQI_STAGES_CALIBRATE_MOMENTS_H

#include "stages/attempt/attempt.h"
#include "numbers/range/observations.h"

/* The moments that are to be collected; all members are 0 when there are none. */
struct qdqi_collection {
    struct qdqi_attempt *attempt;
    const struct qdqi_tensor **tensors; /* by slot: the layer's input */
    struct qdqi_layer_moments **owners; /* by slot */
    struct qdqi_moments all;
    struct qdqi_map *by_sources;     /* weights with moments of their own */
    struct qdqi_layer_moments *last; /* of the attempt's list */
    uint64_t bytes, most;            /* of all moments */
};

/* Fills in a->moments and the collection if the spec asks for them. NO_CALIBRATION when
   there are no data. */
enum qdq_code qdqi_moments_plan(struct qdqi_attempt *a, struct qdqi_collection *ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * Returns whether the attempt has moments whose last bits are those of another plan: their tensors,
 * or those that were observed beside them, are not those of the plan as it stands.
 */
bool qdqi_moments_are_stale(const struct qdqi_attempt *a);

/* Returns whether an earlier calibration kept all of them. */
bool qdqi_moments_are_kept(const struct qdqi_collection *collection,
                           const struct qdqi_observations *earlier);
/* Takes the moments that an earlier calibration kept. Their slots are removed. */
void qdqi_moments_reuse(struct qdqi_collection *collection,
                        const struct qdqi_observations *earlier);

/* Allocates what the runs over so many samples need, and frees it after them. If runs may be
   rejected, the inputs of each are held until qdqi_moments_settle(), which takes them in or
   discards them. */
enum qdq_code qdqi_moments_begin(struct qdqi_collection *collection, int64_t samples,
                                 bool may_reject, struct qdq_error *err) QDQ_MUST_CHECK;
/* Forgets what was collected. */
void qdqi_moments_restart(struct qdqi_collection *collection);
void qdqi_moments_finish(struct qdqi_collection *collection);

/* Must be called before and after each run; the first with the number of its samples.
   RUN_FAILED when an input does not fit. */
void qdqi_moments_expect(struct qdqi_collection *collection, int64_t samples);
enum qdq_code qdqi_moments_settle(struct qdqi_collection *collection, bool keep,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

/* Warns where rounding by the moments that were collected has few rows to go by. */
enum qdq_code qdqi_moments_warn(const struct qdqi_collection *collection,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns the moments that are to be kept and that `earlier` lacks, as a list in the attempt's
   scratch; NULL: none, or out of memory. */
const struct qdqi_kept_moments *
qdqi_moments_new(const struct qdqi_collection *collection,
                 const struct qdqi_observations *earlier);

#endif
