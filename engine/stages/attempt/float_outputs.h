/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outputs of the float model that a job has computed, by the samples of its data, so that no
 * stage computes them again: calibration runs the float model for each of its samples, and a recipe
 * for those that it judges by. Where there is no more room, the oldest are dropped, because
 * an evaluation takes the last samples of the data.
 *
 * ONNX Runtime fuses fewer nodes of a model whose tensors are observed, so outputs that calibration
 * has left may differ from those of the model alone in the last bits of a float.
 */
#ifndef QDQI_STAGES_ATTEMPT_FLOAT_OUTPUTS_H
#define QDQI_STAGES_ATTEMPT_FLOAT_OUTPUTS_H

#include "run/session/session.h"
#include "stages/attempt/attempt.h"

/* One run of the float model. */
struct qdqi_float_run {
    int64_t first, samples; /* of the dataset */
    struct qdqi_output
        *outputs;    /* one block of memory, with shapes and data; NULL: none */
    size_t n, bytes; /* outputs, and bytes of the block */
};

/* Empty where all members are 0. */
struct qdqi_float_outputs {
    size_t n_outputs; /* of each run */
    struct qdqi_float_run *runs;
    size_t begin, end,
        capacity;       /* those that are kept are [begin, end), by ascending samples */
    size_t bytes, most; /* of all, and at most */
};

/* Begins to keep outputs of a model with so many: up to 64 MiB, or a sixteenth of the memory that
   the process may have. */
void qdqi_float_outputs_begin(struct qdqi_float_outputs *kept, size_t n_outputs);

/* Frees everything. */
void qdqi_float_outputs_end(struct qdqi_float_outputs *kept);

/* Returns a copy of the outputs of a run. It has none where one of them is no tensor of whole bytes, where
   they take more than `most` bytes, and where there is no memory. */
struct qdqi_float_run qdqi_float_run_copy(int64_t first, int64_t samples,
                                          const struct qdqi_output *outputs, size_t n,
                                          size_t most);

/* Keeps a run, and clears it. Runs come by ascending samples: one that does not is freed, as
   is one that has not the number of outputs. */
void qdqi_float_outputs_put(struct qdqi_float_outputs *kept,
                            struct qdqi_float_run *run);

/* Returns the outputs of a run of exactly these samples, which stay until the next one is put; NULL:
   there are none. */
const struct qdqi_output *qdqi_float_outputs_of(const struct qdqi_float_outputs *kept,
                                                int64_t first, int64_t samples);

/* Keeps a copy of the outputs that the attempt's model had in a run, for the job. Results are compared
   with the model that was given, so it keeps none of a model that was made of that. */
void qdqi_attempt_put_outputs(const struct qdqi_attempt *attempt, int64_t first,
                              int64_t samples, const struct qdqi_output *outputs,
                              size_t n);

#endif
