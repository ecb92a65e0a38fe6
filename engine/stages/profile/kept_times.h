/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times that were measured for a model and its candidates, in a file for later jobs: the medians of
 * candidates by turns with the float model, and the times of single kernels. With the same file a
 * job chooses the same result.
 *
 * A time is found by a key, a hash of the graph that ran, with the types and sizes of its constants
 * and without their values, and of the sizes of the inputs: other weights take as long. A candidate
 * that is measured again has a second time; a job takes those of a key in their order.
 *
 * The file is text:
 *   QDQ_TIMES_MAGIC
 *   what the times belong to, a line for each: engine, processor, runtime with the size and time of
 *     its library, threads, batch
 *   an empty line, then rows in the order in which they were measured:
 *   ratio KEY RATIO            KEY: 16 hexadecimal digits; numbers: the C form that strtod() reads
 *   trace KEY N                the times of N kernels, a line for each, follow:
 *   kernel KIND LEAST_MS MADE_BYTES OP NAME
 *   sum HASH                   the hash of everything above, 16 digits: 64-bit FNV-1a
 * In OP and NAME a control character, a space and `%` are %XX. A file may have any content: one that
 * is not of this form, has another sum or belongs to something else counts as empty.
 */
#ifndef QDQI_STAGES_PROFILE_KEPT_TIMES_H
#define QDQI_STAGES_PROFILE_KEPT_TIMES_H

#include "stages/attempt/attempt.h"

struct qdqi_kept_times;

/* Reads the file that the caller keeps times in, if it does, in the arena. `threads` and `batch` are
   those of the runs. The attempt's job must outlive it. NO_MEMORY. */
enum qdq_code qdqi_kept_times_read(const struct qdqi_attempt *attempt, int threads,
                                   int64_t batch, struct qdqi_arena *arena,
                                   struct qdqi_kept_times **ret,
                                   struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns the key of a model that runs with these inputs. */
uint64_t qdqi_kept_times_key(const struct qdq_model *model,
                             const struct qdqi_input *inputs, size_t n_inputs);

/* Returns the next ratio of a key that this job has not taken yet; NAN: there is none. */
double qdqi_kept_times_take_ratio(struct qdqi_kept_times *kept, uint64_t key);
/* Sets *ret to the trace of a key, borrowed from the arena. Returns false when there is none. */
bool qdqi_kept_times_take_trace(struct qdqi_kept_times *kept, uint64_t key,
                                struct qdqi_trace *ret);

/* Add what was measured; a trace is borrowed. NO_MEMORY. */
enum qdq_code qdqi_kept_times_add_ratio(struct qdqi_kept_times *kept, uint64_t key,
                                        double ratio,
                                        struct qdq_error *err) QDQ_MUST_CHECK;
enum qdq_code qdqi_kept_times_add_trace(struct qdqi_kept_times *kept, uint64_t key,
                                        const struct qdqi_trace *trace,
                                        struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns whether this job added any. */
bool qdqi_kept_times_has_new(const struct qdqi_kept_times *kept);

/* Writes the file, if something was added and the caller keeps times: all rows, or, where they take
   too much room, those of this job. A file that cannot be written is a warning. NO_MEMORY. */
enum qdq_code qdqi_kept_times_write(const struct qdqi_kept_times *kept,
                                    const struct qdqi_attempt *attempt,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

#endif
