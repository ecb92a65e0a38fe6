/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measurements of a model and its candidates, in a file for later jobs: the medians of the times
 * of candidates by turns with the float model, the times of single kernels, and figures of outputs, as
 * numbers and words. With the same file a job chooses the same result.
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
 *   numbers KEY N              N numbers, a line for each, follow, and may be infinite or NaN
 *   words KEY N                N texts likewise, in the form of names
 *   sum HASH                   the hash of everything above, 16 digits: 64-bit FNV-1a
 * The rows of a journal (journal.h) are the same, each an entry; there a ratio of 0 is a measurement that failed.
 * In OP and NAME a control character, a space and `%` are %XX. A file may have any content: one that
 * is not of this form, has another sum or belongs to something else counts as empty.
 */
#ifndef QDQI_STAGES_ATTEMPT_KEPT_TIMES_H
#define QDQI_STAGES_ATTEMPT_KEPT_TIMES_H

#include "stages/attempt/attempt.h"

struct qdqi_kept_times;

/* Sets *ret to what the job keeps: the file that the caller has, if it has one, is read at the first
   call. Where a program of the operator's runs the models, that is the journal of a job that searches by patterns, and no file
   of other jobs. The job owns it. NO_MEMORY. */
enum qdq_code qdqi_kept_times_get(const struct qdqi_attempt *attempt,
                                  struct qdqi_kept_times **ret,
                                  struct qdq_error *err) QDQ_MUST_CHECK;
/* Writes what is not written yet, as qdqi_kept_times_write() does but without a warning, and frees it.
   An attempt of NULL: nothing is written. */
void qdqi_kept_times_close(struct qdqi_kept_times **kept,
                           const struct qdqi_attempt *attempt);

/* Returns whether figures of the job's data may be kept: the caller has a file and says which data
   these are, and models run on the processor and in no program of the operator's. */
bool qdqi_keeps_figures(const struct qdqi_attempt *attempt);

/* Returns whether grades of candidates may be kept: likewise, or in a journal. */
bool qdqi_keeps_grades(const struct qdqi_attempt *attempt);

/* Returns the key of a model that runs with these inputs. */
uint64_t qdqi_kept_times_key(const struct qdq_model *model,
                             const struct qdqi_input *inputs, size_t n_inputs);

/* Returns the hash of bytes that the sum of a file is. */
uint64_t qdqi_kept_hash(const void *bytes, size_t n);

/* Return keys of figures: that of what the job feeds and of the build of the engine; with a number more; and
   with the bytes of a model's files more. */
uint64_t qdqi_kept_key_of_data(const struct qdqi_attempt *attempt);
uint64_t qdqi_kept_key_add(uint64_t key, int64_t number);
uint64_t qdqi_kept_key_add_model(uint64_t key, const struct qdq_model *model);

/* Set *ret to the numbers, or the words, of a key, borrowed. Return false when there are none. */
bool qdqi_kept_times_take_numbers(struct qdqi_kept_times *kept, uint64_t key,
                                  const double **ret, size_t *ret_n);
bool qdqi_kept_times_take_words(struct qdqi_kept_times *kept, uint64_t key,
                                const char *const **ret, size_t *ret_n);
/* Add copies of them. More of them than a file may hold are not kept. NO_MEMORY. */
enum qdq_code qdqi_kept_times_add_numbers(struct qdqi_kept_times *kept, uint64_t key,
                                          const double *numbers, size_t n,
                                          struct qdq_error *err) QDQ_MUST_CHECK;
enum qdq_code qdqi_kept_times_add_words(struct qdqi_kept_times *kept, uint64_t key,
                                        const char *const *words, size_t n,
                                        struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns the next ratio of a key that this job has not taken yet; NAN: there is none; 0: a measurement of this job failed
   before it was begun again. */
double qdqi_kept_times_take_ratio(struct qdqi_kept_times *kept, uint64_t key);
/* Sets *ret to the trace of a key, borrowed from the arena. Returns false when there is none. */
bool qdqi_kept_times_take_trace(struct qdqi_kept_times *kept, uint64_t key,
                                struct qdqi_trace *ret);

/* Add what was measured; a trace is borrowed. NO_MEMORY. */
enum qdq_code qdqi_kept_times_add_ratio(struct qdqi_kept_times *kept, uint64_t key,
                                        double ratio,
                                        struct qdq_error *err) QDQ_MUST_CHECK;
/* Adds that a measurement failed, where there is a journal. NO_MEMORY. */
enum qdq_code qdqi_kept_times_add_failure(struct qdqi_kept_times *kept, uint64_t key,
                                          struct qdq_error *err) QDQ_MUST_CHECK;
enum qdq_code qdqi_kept_times_add_trace(struct qdqi_kept_times *kept, uint64_t key,
                                        const struct qdqi_trace *trace,
                                        struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns whether this job added times. */
bool qdqi_kept_times_has_new(const struct qdqi_kept_times *kept);

/* Writes the file, if something was added and the caller keeps times: all rows, or, where they take
   too much room, those of this job. A file that cannot be written is a warning. NO_MEMORY. */
enum qdq_code qdqi_kept_times_write(struct qdqi_kept_times *kept,
                                    const struct qdqi_attempt *attempt,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

#endif
