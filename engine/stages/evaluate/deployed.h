/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result as deployed: run by a plain session of the target's runtime, on the
 * processor that the result is made for. Its integer kernels saturate, fold and
 * requantize, which the literal arithmetic of pairs does not show.
 */
#ifndef QDQI_STAGES_EVALUATE_DEPLOYED_H
#define QDQI_STAGES_EVALUATE_DEPLOYED_H

#include "stages/report/report.h"

/* Returns whether the result runs here as deployed; opens the target's runtime. */
bool qdqi_deployed_runs(const struct qdqi_context *context);

/* Returns whether the runtime of the target only loads models and names their kernels, because it
   has no device that runs them. */
bool qdqi_deployed_only_plans(const struct qdqi_context *context);

/* Returns the row of the target's runtime, where one may run the result; NULL: none does. */
const struct qdqi_deploy_ops *qdqi_judging_ops(const struct qdqi_context *context);

/* Opens the runtime of the target, which runs models. RUNTIME_MISSING, NO_MEMORY. */
enum qdq_code qdqi_deployed_runtime(const struct qdqi_context *context,
                                    struct qdqi_deploy *ret,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

/* Checks that the target's runtime, where it is there and the job has it run anything, can read
   the model that was given, and load it where the job does not evaluate its result.
   CANNOT_LOAD, IO, NO_MEMORY. */
enum qdq_code qdqi_deployed_check(const struct qdqi_context *context,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

/* Checks, once in a job, that the runtime can load the model that was given: a result that it
   cannot load may not be at fault. Errors are those of qdqi_deployed_check(). */
enum qdq_code qdqi_deployed_check_given(const struct qdqi_context *context,
                                        struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * Opens the quantized model in the runtime of the target, to run it and to learn its nodes, not
 * to measure latencies; it may be open already (judged.h). ret->ops is NULL where the
 * target's kernels do not run here, or where no process judges any more; the warning
 * deployed_not_measured says so. CANNOT_LOAD, IO, NO_MEMORY.
 */
enum qdq_code qdqi_deployed_open(const struct qdqi_attempt *attempt,
                                 struct qdqi_result *result,
                                 const struct qdq_model *quantized,
                                 struct qdqi_deployed_model *ret,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

/* Loads the quantized model into the runtime of the target, to learn its nodes. CANNOT_LOAD, IO,
   NO_MEMORY, and where nothing is said about the model, a code of qdqi_costs_figures(). */
enum qdq_code qdqi_deployed_load(const struct qdqi_attempt *attempt,
                                 struct qdqi_result *result,
                                 const struct qdq_model *quantized,
                                 struct qdqi_deployed_model *ret,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns whether an error costs the figures as deployed alone: it says nothing about the
   model. */
bool qdqi_costs_figures(enum qdq_code code);

/* Adds the warning deployed_not_measured, with the reason. NO_MEMORY. */
enum qdq_code qdqi_deployed_warn(const struct qdqi_attempt *attempt, const char *why,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

/* Fills the report's `deployed` with the figures of n outputs. NO_MEMORY. */
enum qdq_code qdqi_deployed_report(const struct qdqi_attempt *attempt,
                                   struct qdqi_result *result,
                                   const struct qdq_output_report *outputs, size_t n,
                                   struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns whether ONNX Runtime's optimizations of float16 may break the result. */
bool qdqi_halves_matter(const struct qdqi_attempt *attempt);

/*
 * Opens the result in a plain session of ONNX Runtime, whatever the target, where it computes in
 * float16 and `deployed` is not such a session already: the runtime's optimizations break some
 * models of float16. *ret has no ops where that is not needed or not possible.
 */
enum qdq_code qdqi_halves_open(const struct qdqi_attempt *attempt,
                               const struct qdq_model *quantized,
                               const struct qdqi_deployed_model *deployed,
                               struct qdqi_deployed_model *ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* Compares the figures of such a session with the literal ones, by output. UNSUPPORTED when
   the optimizations break the result. */
enum qdq_code qdqi_halves_check(const struct qdqi_attempt *attempt,
                                const struct qdq_output_report *literal, size_t n,
                                const struct qdq_output_report *ran, size_t n_ran,
                                struct qdq_error *err) QDQ_MUST_CHECK;

#endif
