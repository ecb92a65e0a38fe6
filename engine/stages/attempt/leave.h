/* SPDX-License-Identifier: Apache-2.0 */
/* Plans in which further layers stay in float, exactly as they will be made when the frozen spec
   is run: by an additional entry of the spec. */
#ifndef QDQI_STAGES_ATTEMPT_LEAVE_H
#define QDQI_STAGES_ATTEMPT_LEAVE_H

#include "stages/attempt/attempt.h"

/* Layers that are to stay in float. */
struct qdqi_left {
    const char *const *names; /* must live as long as the attempt */
    size_t n;
    const char *reason; /* a literal */
    /* Layers that only follow their neighbours may follow these; the others must keep their
       plan. Else all may change, so that no integers are left between layers in float. */
    bool alone;
};

/* Returns the spec with an entry that leaves these layers in float; NULL when out of memory. */
const struct qdq_spec *qdqi_spec_leaving(const struct qdq_spec *spec,
                                         const char *const *names, size_t n,
                                         struct qdqi_arena *arena);

/*
 * Plans the attempt, or plans it again, with these layers in float. It takes over the ranges
 * that it had, or that its base has. An old plan is freed: nothing may refer to it any more.
 * CASE_FAILED where the plan of other layers changes and may not; NOT_OBSERVED where the plan
 * has an activation that the one before has not.
 */
enum qdq_code qdqi_attempt_leave(struct qdqi_attempt *attempt,
                                 const struct qdqi_left *left,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

/* Plans the attempt, or plans it again, by a copy of `planned_by` with other rules, which it borrows,
   with the ranges that it had or that its base has. NOT_OBSERVED likewise. */
enum qdq_code qdqi_attempt_replan(struct qdqi_attempt *attempt,
                                  const struct qdq_spec *spec,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns whether each activation that `part` quantizes is one that `whole` quantizes, whose range
   is known then. */
bool qdqi_plan_has_ranges(const struct qdq_plan_view *whole,
                          const struct qdq_plan_view *part, struct qdqi_map *known);

/* Makes the plan in which these layers stay in float, too. The plan refers to the arena. */
enum qdq_code qdqi_plan_leaving(const struct qdqi_attempt *attempt,
                                const char *const *names, size_t n,
                                struct qdqi_arena *arena, struct qdq_plan **ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;

#endif
