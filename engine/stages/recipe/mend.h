/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The advice that costs nothing when the model runs: another member of the spec, such as `equalize`,
 * that mends a poor result without a layer in float.
 */
#ifndef QDQI_STAGES_RECIPE_MEND_H
#define QDQI_STAGES_RECIPE_MEND_H

#include "stages/recipe/variants.h"

struct qdqi_mending {
    const char
        *spec; /* JSON with the members that mend it; NULL: none that was tried does */
    double sqnr_db; /* with them, on the samples of the evaluation */
};

/*
 * Tries changes of the spec, equalize and smooth first, until the candidates' goal is reached on the few samples of their comparer and on those of the evaluation,
 * within `bound` samples and until is_time_up(arg). The attempt stays as it is. A recipe `best` has tried them.
 */
enum qdq_code qdqi_mend(struct qdqi_candidates *candidates, int64_t bound,
                        bool (*is_time_up)(void *arg), void *arg,
                        struct qdqi_mending *ret, struct qdq_error *err) QDQ_MUST_CHECK;

/* Opens a comparer with the samples of the evaluation in the place of the candidates' own, which
   the caller puts back. *ret_none is whether nothing can be compared. */
enum qdq_code qdqi_compare_with_all(struct qdqi_candidates *candidates, bool *ret_none,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

#endif
