/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's own metric, an ONNX graph. Its inputs are named as outputs of the model or as arrays of
 * the data to judge by; its outputs `numerator` and `denominator` are single numbers. It has no
 * external data, no operators but ONNX's own, and not too many of them. It is called within the bounds of
 * the caller's (struct qdq_judging): a graph that takes more than its time ends the process.
 */
#ifndef QDQI_STAGES_TASK_METRIC_H
#define QDQI_STAGES_TASK_METRIC_H

#include "qdq/quantize.h"
#include "run/session/session.h"
#include "stages/task/resampling.h"

struct qdqi_metric;

/* Finds an output of a model. Returns the number of outputs where there is none. */
size_t qdqi_find_output(const struct qdq_model_info *info, const char *name);

/* Opens a metric in the runtime. INVALID_MODEL, UNSUPPORTED and LIMIT_EXCEEDED name task.model. */
enum qdq_code qdqi_metric_open(const struct qdq_judging *by,
                               struct qdqi_runtime *runtime, struct qdqi_metric **ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_metric_close(struct qdqi_metric **metric);

/* Describes the inputs. */
const struct qdq_model_info *qdqi_metric_info(const struct qdqi_metric *metric);

/* Begins the calls for another model, which have their own time. */
void qdqi_metric_begin(struct qdqi_metric *metric);
/* Returns which part of that time the calls have taken. */
double qdqi_metric_used(const struct qdqi_metric *metric);

/* Calls the metric with its inputs in their order. RUN_FAILED where it fails or answers no finite
   numbers, LIMIT_EXCEEDED where all calls for one model together have taken too long. */
enum qdq_code qdqi_metric_call(struct qdqi_metric *metric,
                               const struct qdqi_input *inputs,
                               struct qdqi_fraction *ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;

#endif
