/* SPDX-License-Identifier: Apache-2.0 */
/* The warnings of an attempt in the order in which they were given, each with the stage that
   gave it: a stage that is repeated replaces its own. */
#ifndef QDQI_STAGES_ATTEMPT_WARNINGS_H
#define QDQI_STAGES_ATTEMPT_WARNINGS_H

#include "ground/base/warnings.h"
#include "qdq/quantize.h"

struct qdqi_stage_warnings {
    struct qdqi_arena *arena; /* borrowed */
    enum qdq_stage stage;     /* that gives the next ones */
    struct qdqi_warnings list;
    enum qdq_stage *stages; /* by warning */
    size_t room;
};

/* Adds a copy of a warning. */
enum qdq_code qdqi_stage_warnings_add(struct qdqi_stage_warnings *warnings,
                                      const struct qdq_warning *warning,
                                      struct qdq_error *err) QDQ_MUST_CHECK;

/* Removes the warnings of a stage, which is going to be repeated. */
void qdqi_stage_warnings_remove(struct qdqi_stage_warnings *warnings,
                                enum qdq_stage stage);

/* Completes the warnings of an attempt that went through the stages from the equalized model
   to the scales: those that another attempt was given before, and behind, come from there. */
enum qdq_code qdqi_stage_warnings_complete(struct qdqi_stage_warnings *warnings,
                                           const struct qdqi_stage_warnings *other,
                                           struct qdq_error *err) QDQ_MUST_CHECK;

#endif
