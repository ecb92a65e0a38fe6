/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The float model and the result by the literal arithmetic: what ONNX defines their operators to
 * compute, without a runtime's integer kernels.
 *
 * In the first runs both are halves of one graph (transform/rewrite/twin.h), so that the outputs of the
 * quantized layers are compared, too. A run of that takes as long as one of each model. So an evaluation
 * that nobody asks for compares layers on QDQI_LAYER_SAMPLES samples, and the result runs alone in the rest,
 * beside outputs of the float model that the job has already (stages/attempt/float_outputs.h).
 */
#ifndef QDQI_STAGES_EVALUATE_LITERAL_H
#define QDQI_STAGES_EVALUATE_LITERAL_H

#include "run/session/session.h"
#include "stages/attempt/attempt.h"

enum { QDQI_LAYER_SAMPLES = 16 };

struct qdqi_literal {
    struct qdqi_attempt *attempt;
    const struct qdq_model *quantized;
    struct qdqi_runtime *runtime;
    struct qdqi_session_options options; /* of f and q */
    /*
     * The twin, or NULL when f and q run separately and layers are not compared. Its
     * float half is the equalized model if there is one, because the outputs of the
     * layers differ from those of the given model.
     */
    struct qdqi_session *twin;
    struct qdqi_session *f; /* the given model; NULL while no run needs it */
    struct qdqi_session *q; /* NULL while the twin has it, and where it does not run */
    /* by comparison: the layer's name and that of its output */
    const char **layers, **tensors;
    struct qdqi_comparisons comparisons;
    const char *no_twin;   /* why layers are not compared at all, or NULL */
    int64_t layer_samples; /* on which layers were compared, and may be */
    int64_t most_layer_samples;
};

/* How the sessions are opened. */
struct qdqi_literal_options {
    bool behind_what_ifs;  /* with the memory and the optimizations that those had */
    const char *no_result; /* why the result does not run; NULL: it does */
    int64_t most_layer_samples; /* INT64_MAX: layers are compared in all runs */
};

/* Makes what qdqi_literal_open() makes, but for the sessions: nothing can run. */
enum qdq_code qdqi_literal_prepare(struct qdqi_literal *literal,
                                   struct qdqi_attempt *attempt,
                                   const struct qdq_model *quantized,
                                   struct qdq_error *err) QDQ_MUST_CHECK;

/* Opens the sessions of the first runs. `quantized` is borrowed. If layers cannot be compared, a warning
   says so. RUN_FAILED, where literal->f tells whether the float model could be opened. The caller
   closes it after a failure, too. */
enum qdq_code qdqi_literal_open(struct qdqi_literal *literal,
                                struct qdqi_attempt *attempt,
                                const struct qdq_model *quantized,
                                struct qdqi_runtime *runtime,
                                const struct qdqi_literal_options *options,
                                struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_literal_close(struct qdqi_literal *literal);

/* Runs both models with samples of the data that results are judged by, from `first` on. Returns *ret_n
   outputs of the float model and as many of the result; the latter are NULL where it does not
   run. Both stay until the next run. */
enum qdq_code qdqi_literal_run(struct qdqi_literal *literal,
                               const struct qdqi_input *inputs, int64_t first,
                               int64_t samples, const struct qdqi_output **ret_f,
                               const struct qdqi_output **ret_q, size_t *ret_n,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* Copies what was compared on a device to the comparisons. Call this after all runs. */
enum qdq_code qdqi_literal_collect(const struct qdqi_literal *literal,
                                   struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns the reason why the output of a quantized layer cannot be compared, or NULL. */
const char *qdqi_literal_hindrance(const struct qdqi_literal *literal,
                                   const struct qdq_layer *layer);

#endif
