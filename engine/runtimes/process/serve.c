/* SPDX-License-Identifier: Apache-2.0 */
/* The process that judges: it serves a runtime over a socket, with the messages of wire.h. */
#include "config.h"
#include "runtimes/process/serve.h"

#include "runtimes/process/wire.h"

#include <stdlib.h>
#include <string.h>

/* Models that one job has open at the same time, and inputs of a run. */
enum { MOST_MODELS = 8, MOST_INPUTS = 4096 };

struct qdq_judge {
    struct qdqi_deploy runtime;
    qdq_judge_watch_fn watch;  /* NULL: nobody watches */
    void *models[MOST_MODELS]; /* by id; NULL: none */
};

enum qdq_code
qdqi_judge_new(const struct qdqi_deploy *runtime, struct qdq_judge **ret,
               struct qdq_error *err)
{
    struct qdq_judge *judge = calloc(1, sizeof *judge);
    if (!judge) {
        runtime->ops->end(runtime->place);
        return qdqi_no_memory(err);
    }
    judge->runtime = *runtime;
    *ret = judge;
    return QDQ_OK;
}

static void
close_models(struct qdq_judge *judge)
{
    for (size_t i = 0; i < MOST_MODELS; i++) {
        if (judge->models[i])
            judge->runtime.ops->close(judge->models[i]);
        judge->models[i] = NULL;
    }
}

void
qdq_judge_close(struct qdq_judge **judge)
{
    if (!*judge)
        return;
    close_models(*judge);
    (*judge)->runtime.ops->end((*judge)->runtime.place);
    free(*judge);
    *judge = NULL;
}

const char *
qdq_judge_runtime(const struct qdq_judge *judge)
{
    return judge->runtime.ops->row->name;
}

const char *
qdq_judge_version(const struct qdq_judge *judge)
{
    return judge->runtime.ops->version(judge->runtime.place);
}

/* --- requests ------------------------------------------------------------- */

/* A request and its answer. */
struct call {
    struct qdq_judge *judge;
    struct qdqi_wire request, answer;
    struct qdqi_model_bytes model;
    struct qdqi_arena *arena;
};

/* Says how often the runtime opens or runs models from now on until the answer; 0: it has. */
static void
announce(const struct qdq_judge *judge, unsigned times)
{
    if (judge->watch)
        judge->watch(times);
}

static enum qdq_code
fail_request(struct qdq_error *err)
{
    return qdq_error_set(err, QDQ_INTERNAL, QDQ_AT_NOTHING, NULL,
                         "the request is not one of the protocol");
}

static struct qdqi_deploy_options
get_options(struct qdqi_wire *from)
{
    const uint64_t threads = qdqi_wire_get(from);
    const bool own = qdqi_wire_get(from) != 0;
    const bool traced = qdqi_wire_get(from) != 0;
    const bool reads_only = qdqi_wire_get(from) != 0;
    return (struct qdqi_deploy_options){.threads = threads < 1024 ? (int)threads : 1,
                                        .own_precision = own,
                                        .traced = traced,
                                        .reads_only = reads_only};
}

/* Returns the model that a request names, or NULL. */
static void **
find_model(struct call *c)
{
    uint64_t id = qdqi_wire_get(&c->request);
    return id < MOST_MODELS && c->judge->models[id] ? &c->judge->models[id] : NULL;
}

/* Reads an input and checks that its sizes fit each other. */
static bool
get_input(struct qdqi_wire *from, struct qdqi_input *ret)
{
    size_t n_shape, elements = 1;
    ret->name = qdqi_wire_get_text(from);
    ret->dtype = (enum qdqi_dtype)qdqi_wire_get(from);
    ret->shape = qdqi_wire_get_bytes(from, &n_shape);
    ret->data = qdqi_wire_get_bytes(from, &ret->size);
    ret->rank = n_shape / sizeof *ret->shape;
    if (from->failed || ret->rank > QDQI_WIRE_MOST_DIMS)
        return false;
    for (size_t i = 0; i < ret->rank; i++)
        if (ret->shape[i] < 0 ||
            __builtin_mul_overflow(elements, (size_t)ret->shape[i], &elements))
            return false;
    const size_t each = qdqi_dtype_size((int)ret->dtype);
    return each > 0 && ret->size / each == elements && ret->size % each == 0;
}

/* Returns whether an input has the name of one before it, in whose place another one would be
   left out. */
static bool
is_repeated(const struct qdqi_input *inputs, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(inputs[k].name, inputs[i].name) == 0)
            return true;
    return false;
}

static enum qdq_code
get_inputs(struct call *c, struct qdqi_input **ret, size_t *ret_n,
           struct qdq_error *err)
{
    uint64_t n = qdqi_wire_get(&c->request);
    if (c->request.failed || n > MOST_INPUTS)
        return fail_request(err);
    struct qdqi_input *inputs = qdqi_arena_array(c->arena, (size_t)n, sizeof *inputs);
    if (!inputs)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n; i++)
        if (!get_input(&c->request, &inputs[i]) || is_repeated(inputs, i))
            return fail_request(err);
    *ret = inputs;
    *ret_n = (size_t)n;
    return QDQ_OK;
}

static enum qdq_code
open_model(struct call *c, struct qdq_error *err)
{
    const struct qdqi_deploy_options options = get_options(&c->request);
    uint64_t id = 0;
    while (id < MOST_MODELS && c->judge->models[id])
        id++;
    if (c->request.failed || !c->model.data || id == MOST_MODELS)
        return fail_request(err);
    void **model = &c->judge->models[id];
    const struct qdqi_deploy *runtime = &c->judge->runtime;
    enum qdq_code code =
        runtime->ops->load(runtime->place, &c->model, &options, model, err);
    if (code)
        return code;
    qdqi_wire_put(&c->answer, id);
    qdqi_wire_put_text(&c->answer, runtime->ops->precision(*model));
    return QDQ_OK;
}

static void
put_output(struct qdqi_wire *to, const struct qdqi_output *output)
{
    const size_t each = qdqi_dtype_size((int)output->dtype);
    const bool known = output->data && each > 0;
    qdqi_wire_put(to, known ? output->dtype : QDQI_UNKNOWN);
    qdqi_wire_put_bytes(to, output->shape,
                        known ? output->rank * sizeof *output->shape : 0);
    qdqi_wire_put_bytes(to, output->data, known ? output->n * each : 0);
}

static enum qdq_code
run_model(struct call *c, struct qdq_error *err)
{
    void **model = find_model(c);
    struct qdqi_input *inputs = NULL;
    const struct qdqi_output *outputs;
    size_t n = 0, n_outputs;
    double ms;
    if (!model)
        return fail_request(err);
    enum qdq_code code = get_inputs(c, &inputs, &n, err);
    if (!code)
        code = c->judge->runtime.ops->run(*model, inputs, n, &outputs, &n_outputs, &ms,
                                          err);
    if (code)
        return code;
    const struct qdqi_deploy_ops *ops = c->judge->runtime.ops;
    qdqi_wire_put_real(&c->answer, ms);
    qdqi_wire_put_real(&c->answer, ops->processor_ms ? ops->processor_ms(*model) : -1);
    qdqi_wire_put(&c->answer, n_outputs);
    for (size_t i = 0; i < n_outputs; i++)
        put_output(&c->answer, &outputs[i]);
    return QDQ_OK;
}

static enum qdq_code
close_model(struct call *c, struct qdq_error *err)
{
    void **model = find_model(c);
    if (!model)
        return fail_request(err);
    c->judge->runtime.ops->close(*model);
    *model = NULL;
    return QDQ_OK;
}

static void
put_nodes(struct qdqi_wire *to, const struct qdqi_trace *trace)
{
    qdqi_wire_put(to, trace->n_nodes);
    for (size_t i = 0; i < trace->n_nodes; i++) {
        qdqi_wire_put_text(to, trace->nodes[i].name);
        qdqi_wire_put_text(to, trace->nodes[i].op);
        qdqi_wire_put_text(to, trace->nodes[i].provider);
        qdqi_wire_put(to, trace->nodes[i].kind);
        qdqi_wire_put_real(to, trace->nodes[i].ms);
        qdqi_wire_put(to, trace->nodes[i].n_names);
        for (size_t k = 0; k < trace->nodes[i].n_names; k++)
            qdqi_wire_put_text(to, trace->nodes[i].names[k]);
        qdqi_wire_put_text(to, trace->nodes[i].reason ? trace->nodes[i].reason : "");
    }
}

static enum qdq_code
answer_nodes(struct call *c, struct qdq_error *err)
{
    void **model = find_model(c);
    struct qdqi_trace trace = {0};
    if (!model)
        return fail_request(err);
    enum qdq_code code = c->judge->runtime.ops->nodes(*model, c->arena, &trace, err);
    if (!code)
        put_nodes(&c->answer, &trace);
    return code;
}

static enum qdq_code
answer_version(struct call *c, struct qdq_error *err)
{
    const char *wanted = qdqi_wire_get_text(&c->request);
    const char *name = qdq_judge_runtime(c->judge);
    if (c->request.failed || strcmp(wanted, name) != 0)
        return qdq_error_set(err, QDQ_INTERNAL, QDQ_AT_NOTHING, NULL,
                             "the process judges by %s, and not by %s", name, wanted);
    const struct qdqi_deploy *runtime = &c->judge->runtime;
    const struct qdq_runtime_about none = {"", "", "", false}, *about = NULL;
    if (runtime->ops->about)
        about = runtime->ops->about(runtime->place);
    if (!about)
        about = &none;
    qdqi_wire_put_text(&c->answer, qdq_judge_version(c->judge));
    qdqi_wire_put_text(&c->answer, about->name);
    qdqi_wire_put_text(&c->answer, about->device);
    qdqi_wire_put_text(&c->answer, about->runner);
    qdqi_wire_put(&c->answer, about->only_plans);
    return QDQ_OK;
}

static enum qdq_code (*const handlers[])(struct call *, struct qdq_error *) = {
    [QDQI_WIRE_OPEN] = open_model,        [QDQI_WIRE_RUN] = run_model,
    [QDQI_WIRE_NODES] = answer_nodes,     [QDQI_WIRE_CLOSE] = close_model,
    [QDQI_WIRE_VERSION] = answer_version,
};

/* Answers a request. Returns false when the other side is gone, or the runtime is lost. */
static bool
answer(struct call *c, enum qdqi_wire_kind kind, int socket)
{
    struct qdq_error why = {0};
    c->arena = qdqi_arena_new();
    announce(c->judge, 1);
    enum qdq_code code = c->arena ? QDQ_OK : qdqi_no_memory(&why);
    if (!code)
        code = kind < sizeof handlers / sizeof *handlers ? handlers[kind](c, &why)
                                                         : fail_request(&why);
    announce(c->judge, 0);
    if (code == QDQ_JUDGE_GONE) {
        qdqi_arena_free(&c->arena);
        return false;
    }
    if (!code && c->answer.failed)
        code = qdqi_no_memory(&why);
    if (code) {
        qdqi_wire_free(&c->answer);
        qdqi_wire_put(&c->answer, code);
        qdqi_wire_put_text(&c->answer, why.text);
    }
    bool sent = qdqi_wire_send(socket, code ? QDQI_WIRE_FAILED : QDQI_WIRE_OK,
                               &c->answer, NULL, 0);
    qdqi_arena_free(&c->arena);
    return sent;
}

void
qdq_judge_serve(struct qdq_judge *judge, int socket, qdq_judge_watch_fn watch)
{
    bool goes_on = true;
    judge->watch = watch;
    while (goes_on) {
        enum qdqi_wire_kind kind;
        struct call c = {.judge = judge};
        void *model;
        goes_on = qdqi_wire_receive(socket, &kind, &c.request, &model, &c.model.size);
        c.model.data = model;
        goes_on = goes_on && answer(&c, kind, socket);
        qdqi_wire_free(&c.request);
        qdqi_wire_free(&c.answer);
        free(model);
    }
    close_models(judge);
}
