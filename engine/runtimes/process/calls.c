/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime by functions of the caller's (qdq/runtime.h), as a row of deploy.h. */
#include "config.h"
#include "runtimes/process/serve.h"

#include "runtimes/process/wire.h"

#include <stdlib.h>
#include <string.h>

struct place {
    const struct qdq_runtime_calls *calls;
    void *arg;
    struct qdq_runtime_row row;
    struct qdqi_deploy_ops ops;
};

struct called_model {
    const struct qdq_runtime_calls *calls;
    void *model;
    bool traced;
    struct qdqi_arena *arena; /* memory of the last run */
};

/* Passes on what an error may say to the engine. */
static enum qdq_code
pass_on(enum qdq_code code, const struct qdq_error *why, struct qdq_error *err)
{
    const bool known = code == QDQ_NO_MEMORY || code == QDQ_JUDGE_GONE ||
                       code == QDQ_RUNTIME_MISSING || code == QDQ_RUNNER_FAILED;
    return qdq_error_set(err, known ? code : QDQ_RUN_FAILED, QDQ_AT_NOTHING, NULL, "%s",
                         why->text);
}

static const char *
version(void *place)
{
    const struct place *p = place;
    return p->calls->version(p->arg);
}

static const struct qdq_runtime_about *
about(void *place)
{
    const struct place *p = place;
    return p->calls->about ? p->calls->about(p->arg) : NULL;
}

static void
end(void *place)
{
    struct place *p = place;
    if (p->calls->end)
        p->calls->end(p->arg);
    free(p);
}

static enum qdq_code
load_model(void *place, const struct qdqi_model_bytes *bytes,
           const struct qdqi_deploy_options *options, void **ret, struct qdq_error *err)
{
    const struct place *p = place;
    const struct qdq_run_options passed = {.threads = options->threads,
                                           .own_precision = options->own_precision,
                                           .traced = options->traced,
                                           .reads_only = options->reads_only};
    struct called_model *m = calloc(1, sizeof *m);
    struct qdq_error why = {0};
    if (!m)
        return qdqi_no_memory(err);
    *m = (struct called_model){.calls = p->calls, .traced = options->traced};
    enum qdq_code code =
        p->calls->open(p->arg, bytes->data, bytes->size, &passed, &m->model, &why);
    if (!code) {
        *ret = m;
        return QDQ_OK;
    }
    free(m);
    return pass_on(code, &why, err);
}

static void
close_model(void *model)
{
    struct called_model *m = model;
    m->calls->close(m->model);
    qdqi_arena_free(&m->arena);
    free(m);
}

static const char *
precision(void *model)
{
    const struct called_model *m = model;
    return m->calls->precision(m->model);
}

static struct qdq_tensor *
tensors_of(struct called_model *m, const struct qdqi_input *inputs, size_t n)
{
    struct qdq_tensor *ret = qdqi_arena_array(m->arena, n, sizeof *ret);
    for (size_t i = 0; ret && i < n; i++)
        ret[i] = (struct qdq_tensor){.name = inputs[i].name,
                                     .dtype = (int)inputs[i].dtype,
                                     .rank = inputs[i].rank,
                                     .shape = inputs[i].shape,
                                     .data = inputs[i].data,
                                     .size = inputs[i].size};
    return ret;
}

/* Takes an output over, and checks that its sizes fit each other. */
static enum qdq_code
take_output(struct called_model *m, const struct qdq_tensor *from, size_t i,
            struct qdqi_output *ret, struct qdq_error *err)
{
    const size_t each = qdqi_dtype_size(from->dtype);
    bool fits = each > 0 && from->rank <= QDQI_WIRE_MOST_DIMS;
    size_t n = 1;
    *ret = (struct qdqi_output){0};
    if (from->dtype == QDQI_UNKNOWN)
        return QDQ_OK;
    for (size_t k = 0; fits && k < from->rank; k++)
        fits = from->shape[k] >= 0 &&
               !__builtin_mul_overflow(n, (size_t)from->shape[k], &n);
    if (!fits || from->size % each || from->size / each != n)
        return qdq_error_set(err, QDQ_RUN_FAILED, QDQ_AT_NOTHING, NULL,
                             "the runtime's output %zu has type %d, %zu axes and %zu "
                             "bytes, which do not fit each other",
                             i, from->dtype, from->rank, from->size);
    *ret = (struct qdqi_output){.dtype = (enum qdqi_dtype)from->dtype,
                                .rank = from->rank,
                                .shape = from->shape,
                                .n = n,
                                .data = from->data};
    return qdqi_output_to_float32(ret, m->arena, err);
}

static enum qdq_code
run_model(void *model, const struct qdqi_input *inputs, size_t n_inputs,
          const struct qdqi_output **ret, size_t *ret_n, double *ret_ms,
          struct qdq_error *err)
{
    struct called_model *m = model;
    const struct qdq_tensor *outputs;
    struct qdq_error why = {0};
    qdqi_arena_free(&m->arena);
    struct qdq_tensor *passed =
        (m->arena = qdqi_arena_new()) != NULL ? tensors_of(m, inputs, n_inputs) : NULL;
    if (!passed)
        return qdqi_no_memory(err);
    enum qdq_code code =
        m->calls->run(m->model, passed, n_inputs, &outputs, ret_n, ret_ms, &why);
    if (code)
        return pass_on(code, &why, err);
    struct qdqi_output *taken = qdqi_arena_array(m->arena, *ret_n, sizeof *taken);
    if (!taken)
        return qdqi_no_memory(err);
    for (size_t i = 0; !code && i < *ret_n; i++)
        code = take_output(m, &outputs[i], i, &taken[i], err);
    *ret = taken;
    return code;
}

static enum qdq_code
nodes_of(void *model, struct qdqi_arena *arena, struct qdqi_trace *ret,
         struct qdq_error *err)
{
    const struct called_model *m = model;
    const struct qdq_run_node *nodes = NULL;
    struct qdq_error why = {0};
    size_t n = 0;
    *ret = (struct qdqi_trace){0};
    enum qdq_code code = m->calls->nodes && m->traced
                             ? m->calls->nodes(m->model, &nodes, &n, &why)
                             : QDQ_OK;
    if (code)
        return pass_on(code, &why, err);
    if (n == 0)
        return QDQ_OK;
    if (!(ret->nodes = qdqi_arena_array(arena, n, sizeof *ret->nodes)))
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n; i++)
        ret->nodes[i] = (struct qdqi_traced_node){.name = nodes[i].name,
                                                  .op = nodes[i].op,
                                                  .provider = nodes[i].kernel,
                                                  .kind = nodes[i].kind,
                                                  .ms = nodes[i].ms,
                                                  .names = nodes[i].names,
                                                  .n_names = nodes[i].n_names,
                                                  .reason = nodes[i].reason};
    ret->n_nodes = n;
    return QDQ_OK;
}

static const struct qdqi_deploy_ops functions = {
    .kernels = &qdqi_told_kernels,
    .opens_slowly = true,
    .end = end,
    .version = version,
    .about = about,
    .load = load_model,
    .run = run_model,
    .precision = precision,
    .nodes = nodes_of,
    .close = close_model,
};

enum qdq_code
qdq_judge_new(const struct qdq_runtime_calls *calls, void *arg, struct qdq_judge **ret,
              struct qdq_error *err)
{
    struct place *p = malloc(sizeof *p);
    if (!p) {
        if (calls->end)
            calls->end(arg);
        return qdqi_no_memory(err);
    }
    *p = (struct place){.calls = calls,
                        .arg = arg,
                        .row = {.name = calls->name,
                                .title = calls->name,
                                .library = "",
                                .installed = "",
                                .own_process = true},
                        .ops = functions};
    p->ops.row = &p->row;
    const struct qdqi_deploy runtime = {&p->ops, p};
    return qdqi_judge_new(&runtime, ret, err);
}
