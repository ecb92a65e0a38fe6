/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recipe leaves two things to the evaluation: the outputs of the float model, and the candidate
 * that was judged last. This one stays open in a runtime that opens models slowly:
 * the result is the same model in most jobs, and the evaluation runs the one that is open.
 */
#ifndef QDQI_STAGES_EVALUATE_LAST_CANDIDATE_H
#define QDQI_STAGES_EVALUATE_LAST_CANDIDATE_H

#include "stages/evaluate/reference.h"

/* The job has one. */
struct qdqi_last_candidate {
    struct qdq_model *model;             /* NULL: there is none */
    struct qdqi_deployed_model deployed; /* without ops once it was taken */
    struct qdqi_reference *reference;    /* NULL: there is none */
    /* the runtime has loaded the model that was given, which it had read before */
    bool is_given_loaded;
};

/* Takes ownership of a model and of the same model as deployed, opened `traced`, where its
   runtime opens models slowly, and clears both; else it does nothing. */
void qdqi_last_candidate_keep(const struct qdqi_context *context,
                              struct qdq_model **model,
                              struct qdqi_deployed_model *deployed);

/* Hands the model that is kept to the caller, who closes it before the end of the job, if it
   is the result but for the metadata, and the process that has it is there. Else it closes
   the model and returns false. */
bool qdqi_last_candidate_take(const struct qdqi_context *context,
                              const struct qdq_model *result,
                              struct qdqi_deployed_model *ret);

/* Closes the model that is kept. Nothing may write to its file before that. */
void qdqi_last_candidate_drop(const struct qdqi_context *context);

/* Takes ownership of the outputs of the float model, and clears *reference. */
void qdqi_last_candidate_keep_reference(const struct qdqi_context *context,
                                        struct qdqi_reference **reference);

/* Hands over the outputs that are kept, if they were made for the given samples; else closes
   them and returns NULL. */
struct qdqi_reference *
qdqi_last_candidate_take_reference(const struct qdqi_context *context,
                                   const struct qdqi_feed_options *samples);

#endif
