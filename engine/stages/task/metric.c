/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/task/metric.h"

#include "files/model/model.h"
#include "ground/base/seconds.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_NODES = 2000,
    MOST_BYTES = 16 << 20, /* of the file */
    MOST_SECONDS = 60      /* of all calls for one model */
};

struct qdqi_metric {
    const struct qdq_judging *by; /* borrowed */
    struct qdq_model *model;
    struct qdqi_session *session;
    size_t numerator, denominator; /* places among the outputs */
    double seconds;                /* of the calls for this model so far */
};

static enum qdq_code
refuse(enum qdq_code code, struct qdq_error *err, const char *what)
{
    return qdq_error_set(err, code, QDQ_AT_POINTER, "/task/model", "the metric %s",
                         what);
}

size_t
qdqi_find_output(const struct qdq_model_info *info, const char *name)
{
    size_t i = 0;
    while (i < info->n_outputs && strcmp(info->outputs[i].name, name) != 0)
        i++;
    return i;
}

static enum qdq_code
check(struct qdqi_metric *metric, struct qdq_error *err)
{
    const struct qdqi_graph *graph = &metric->model->graph;
    const struct qdq_model_info *info = &metric->model->info;
    metric->numerator = qdqi_find_output(info, "numerator");
    metric->denominator = qdqi_find_output(info, "denominator");
    if (metric->numerator == info->n_outputs || metric->denominator == info->n_outputs)
        return refuse(QDQ_INVALID_SPEC, err,
                      "has no outputs of the names numerator and denominator");
    if (graph->n_nodes > MOST_NODES)
        return refuse(QDQ_LIMIT_EXCEEDED, err, "has more than 2000 nodes");
    if (info->size > MOST_BYTES)
        return refuse(QDQ_LIMIT_EXCEEDED, err, "is larger than 16 MiB");
    if (metric->model->proto->n_functions > 0)
        return refuse(QDQ_UNSUPPORTED, err, "has functions of its own");
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (!qdqi_is_onnx_domain(graph->nodes[i].proto->domain))
            return refuse(QDQ_UNSUPPORTED, err,
                          "has an operator that is not one of ONNX's own");
    return QDQ_OK;
}

/* Opens the graph, whose errors are those of the spec's member. */
static enum qdq_code
open_graph(struct qdqi_metric *metric, struct qdq_error *err)
{
    struct qdq_error why = {0};
    enum qdq_code code = qdq_model_open(metric->by->metric, &metric->model, &why);
    return code ? qdq_error_set(err, code, QDQ_AT_POINTER, "/task/model",
                                "the metric cannot be used: %s", why.text)
                : check(metric, err);
}

/* Begins a call that may take so many seconds; 0: ends it. */
static void
bound(const struct qdqi_metric *metric, double seconds)
{
    const struct qdq_judging *by = metric->by;
    if (by->bound)
        by->bound(by->bound_arg, (unsigned)ceil(seconds));
}

enum qdq_code
qdqi_metric_open(const struct qdq_judging *by, struct qdqi_runtime *runtime,
                 struct qdqi_metric **ret, struct qdq_error *err)
{
    const struct qdqi_session_options options = {.one_thread = true, .basic = true};
    struct qdq_error why = {0};
    struct qdqi_metric *metric = calloc(1, sizeof *metric);
    if (!metric)
        return qdq_error_set(err, QDQ_NO_MEMORY, QDQ_AT_NOTHING, NULL, "out of memory");
    metric->by = by;
    enum qdq_code code = open_graph(metric, err);
    if (!code) {
        bound(metric, MOST_SECONDS);
        code = qdqi_session_open(runtime, metric->model, metric->model->proto, &options,
                                 &metric->session, &why);
        bound(metric, 0);
        if (code)
            qdq_error_set(err, code, QDQ_AT_POINTER, "/task/model",
                          "the metric does not load: %s", why.text);
    }
    if (code)
        qdqi_metric_close(&metric);
    else
        *ret = metric;
    return code;
}

void
qdqi_metric_close(struct qdqi_metric **metric)
{
    if (!*metric)
        return;
    qdqi_session_close(&(*metric)->session);
    qdq_model_free(&(*metric)->model);
    free(*metric);
    *metric = NULL;
}

const struct qdq_model_info *
qdqi_metric_info(const struct qdqi_metric *metric)
{
    return &metric->model->info;
}

/* Returns the number that an output is; NaN where it is none. */
static double
number_of(const struct qdqi_output *output)
{
    if (output->n != 1)
        return NAN;
    switch (output->dtype) {
    case QDQI_FLOAT32:
        return (double)*(const float *)output->data;
    case QDQI_FLOAT64:
        return *(const double *)output->data;
    case QDQI_INT32:
        return (double)*(const int32_t *)output->data;
    case QDQI_INT64:
        return (double)*(const int64_t *)output->data;
    default:
        return NAN;
    }
}

static enum qdq_code
run(struct qdqi_metric *metric, const struct qdqi_input *inputs,
    struct qdqi_fraction *ret, struct qdq_error *err)
{
    const struct qdqi_output *outputs;
    size_t n;
    enum qdq_code code = qdqi_session_run(
        metric->session, inputs, metric->model->info.n_inputs, &outputs, &n, err);
    if (!code)
        *ret = (struct qdqi_fraction){number_of(&outputs[metric->numerator]),
                                      number_of(&outputs[metric->denominator])};
    return code;
}

void
qdqi_metric_begin(struct qdqi_metric *metric)
{
    metric->seconds = 0;
}

double
qdqi_metric_used(const struct qdqi_metric *metric)
{
    return metric->seconds / MOST_SECONDS;
}

enum qdq_code
qdqi_metric_call(struct qdqi_metric *metric, const struct qdqi_input *inputs,
                 struct qdqi_fraction *ret, struct qdq_error *err)
{
    struct qdq_error why = {0};
    if (metric->seconds >= MOST_SECONDS)
        return refuse(QDQ_LIMIT_EXCEEDED, err,
                      "has taken more than 60 seconds for one model");
    const double began = qdqi_seconds_now();
    bound(metric, MOST_SECONDS - metric->seconds);
    enum qdq_code code = run(metric, inputs, ret, &why);
    bound(metric, 0);
    metric->seconds += qdqi_seconds_now() - began;
    if (code)
        return qdq_error_set(err, code, QDQ_AT_POINTER, "/task/model",
                             "the metric failed: %s", why.text);
    if (!isfinite(ret->numerator) || !isfinite(ret->denominator))
        return refuse(QDQ_RUN_FAILED, err,
                      "answered something else than one finite number of float32, "
                      "float64, int32 or int64 for numerator and denominator");
    return QDQ_OK;
}
