/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "runtimes/process/remote.h"

#include "runtimes/process/wire.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The least bytes of an output, of a node and of a name in a message, and the most of a text that
   reports repeat. */
enum {
    OUTPUT_BYTES = 3 * 8,
    NODE_BYTES = 4 * 16 + 3 * 8,
    NAME_BYTES = 16,
    MOST_TEXT = 256
};

struct qdqi_remote {
    int socket;
    const char *runtime; /* its name; borrowed */
    bool gone;           /* nothing can be asked before qdqi_remote_renew() */
    uint64_t generation; /* number of processes before this one */
    char *version;
    struct qdq_runtime_about about; /* owned texts */
    bool says_more;                 /* than its version */
};

struct remote_model {
    struct qdqi_remote *remote;
    uint64_t generation, id; /* the process that has the model, and its number there */
    char *precision;
    struct qdqi_wire answer; /* of the last run; the outputs borrow from it */
    double processor_ms;     /* likewise */
    struct qdqi_output *outputs;
};

static enum qdq_code
fail_ended(struct qdq_error *err)
{
    return qdq_error_set(err, QDQ_JUDGE_GONE, QDQ_AT_NOTHING, NULL,
                         "the process that judges has ended or does not answer");
}

/* Fails because nobody answers, or because an answer is not one of the protocol, after which
   no other one can be trusted. */
static enum qdq_code
fail_gone(struct qdqi_remote *r, struct qdq_error *err)
{
    r->gone = true;
    return fail_ended(err);
}

/* Fails with the error that the process answered. */
static enum qdq_code
fail_as_answered(struct qdqi_wire *answer, struct qdq_error *err)
{
    const uint64_t code = qdqi_wire_get(answer);
    const bool known = code == QDQ_NO_MEMORY || code == QDQ_RUNTIME_MISSING ||
                       code == QDQ_RUNNER_FAILED;
    return qdq_error_set(err, known ? (enum qdq_code)code : QDQ_RUN_FAILED,
                         QDQ_AT_NOTHING, NULL, "%.400s", qdqi_wire_get_text(answer));
}

/* Sends a request, whose body it frees, and receives the answer, which the caller frees after
   a success. */
static enum qdq_code
ask(struct qdqi_remote *r, enum qdqi_wire_kind kind, struct qdqi_wire *body,
    const struct qdqi_model_bytes *attached, struct qdqi_wire *ret,
    struct qdq_error *err)
{
    enum qdqi_wire_kind got = QDQI_WIRE_FAILED;
    void *ignored = NULL;
    size_t n;
    const bool full = body->failed;
    *ret = (struct qdqi_wire){0};
    bool ok = !r->gone &&
              qdqi_wire_send(r->socket, kind, body, attached ? attached->data : NULL,
                             attached ? attached->size : 0);
    qdqi_wire_free(body);
    ok = ok && qdqi_wire_receive(r->socket, &got, ret, &ignored, &n);
    free(ignored);
    if (ok && got == QDQI_WIRE_OK)
        return QDQ_OK;
    enum qdq_code code = full                             ? qdqi_no_memory(err)
                         : !ok || got != QDQI_WIRE_FAILED ? fail_gone(r, err)
                                                          : fail_as_answered(ret, err);
    qdqi_wire_free(ret);
    return code;
}

static void
free_about(struct qdqi_remote *r)
{
    free(r->version);
    free((char *)(uintptr_t)r->about.name);
    free((char *)(uintptr_t)r->about.device);
    free((char *)(uintptr_t)r->about.runner);
    r->version = NULL;
    r->about = (struct qdq_runtime_about){0};
}

/* Keeps the answer to a question for the version. */
static enum qdq_code
keep_about(struct qdqi_remote *r, struct qdqi_wire *answer, struct qdq_error *err)
{
    free_about(r);
    r->version = strndup(qdqi_wire_get_text(answer), MOST_TEXT);
    r->about.name = strndup(qdqi_wire_get_text(answer), MOST_TEXT);
    r->about.device = strndup(qdqi_wire_get_text(answer), MOST_TEXT);
    r->about.runner = strndup(qdqi_wire_get_text(answer), MOST_TEXT);
    r->about.only_plans = qdqi_wire_get(answer) != 0;
    if (!r->version || !r->about.name || !r->about.device || !r->about.runner)
        return qdqi_no_memory(err);
    r->says_more = *r->about.runner != '\0';
    return answer->failed ? fail_gone(r, err) : QDQ_OK;
}

/* Asks a process for its version, and keeps it. RUNTIME_MISSING when nobody answers. */
static enum qdq_code
learn_version(struct qdqi_remote *r, struct qdq_error *err)
{
    struct qdqi_wire body = {0}, answer = {0};
    struct qdq_error why = {0};
    qdqi_wire_put_text(&body, r->runtime);
    enum qdq_code code = ask(r, QDQI_WIRE_VERSION, &body, NULL, &answer, &why);
    if (!code)
        code = keep_about(r, &answer, &why);
    qdqi_wire_free(&answer);
    return code ? qdq_error_set(err, code == QDQ_NO_MEMORY ? code : QDQ_RUNTIME_MISSING,
                                QDQ_AT_NOTHING, NULL, "%s", why.text)
                : QDQ_OK;
}

enum qdq_code
qdqi_remote_open(int socket, const char *runtime, struct qdqi_remote **ret,
                 struct qdq_error *err)
{
    struct qdqi_remote *r = calloc(1, sizeof *r);
    if (!r) {
        close(socket);
        return qdqi_no_memory(err);
    }
    r->socket = socket;
    r->runtime = runtime;
    enum qdq_code code = learn_version(r, err);
    if (code)
        qdqi_remote_close(&r);
    else
        *ret = r;
    return code;
}

bool
qdqi_remote_is_gone(const struct qdqi_remote *r)
{
    return r->gone;
}

enum qdq_code
qdqi_remote_renew(struct qdqi_remote *r, int socket, struct qdq_error *err)
{
    close(r->socket);
    r->socket = socket;
    r->generation++;
    r->gone = false;
    enum qdq_code code = learn_version(r, err);
    r->gone = r->gone || code;
    return code;
}

void
qdqi_remote_close(struct qdqi_remote **remote)
{
    struct qdqi_remote *r = *remote;
    if (!r)
        return;
    close(r->socket);
    free_about(r);
    free(r);
    *remote = NULL;
}

static const char *
version(void *place)
{
    return ((const struct qdqi_remote *)place)->version;
}

static const struct qdq_runtime_about *
about(void *place)
{
    const struct qdqi_remote *r = place;
    return r->says_more ? &r->about : NULL;
}

/* --- a model -------------------------------------------------------------- */

static void
put_options(struct qdqi_wire *body, const struct qdqi_deploy_options *options)
{
    qdqi_wire_put(body, (uint64_t)options->threads);
    qdqi_wire_put(body, options->own_precision);
    qdqi_wire_put(body, options->traced);
    qdqi_wire_put(body, options->reads_only);
}

static void
put_inputs(struct qdqi_wire *body, const struct qdqi_input *inputs, size_t n)
{
    qdqi_wire_put(body, n);
    for (size_t i = 0; i < n; i++) {
        qdqi_wire_put_text(body, inputs[i].name);
        qdqi_wire_put(body, inputs[i].dtype);
        qdqi_wire_put_bytes(body, inputs[i].shape,
                            inputs[i].rank * sizeof *inputs[i].shape);
        qdqi_wire_put_bytes(body, inputs[i].data, inputs[i].size);
    }
}

static enum qdq_code
load_model(void *place, const struct qdqi_model_bytes *bytes,
           const struct qdqi_deploy_options *options, void **ret, struct qdq_error *err)
{
    struct qdqi_remote *r = place;
    struct qdqi_wire body = {0}, answer = {0};
    put_options(&body, options);
    enum qdq_code code = ask(r, QDQI_WIRE_OPEN, &body, bytes, &answer, err);
    if (code)
        return code;
    struct remote_model *m = calloc(1, sizeof *m);
    if (m)
        *m = (struct remote_model){.remote = r,
                                   .generation = r->generation,
                                   .id = qdqi_wire_get(&answer),
                                   .precision =
                                       strndup(qdqi_wire_get_text(&answer), MOST_TEXT)};
    const bool broken = answer.failed;
    qdqi_wire_free(&answer);
    if (!m || !m->precision || broken) {
        if (m)
            free(m->precision);
        free(m);
        return broken ? fail_gone(r, err) : qdqi_no_memory(err);
    }
    *ret = m;
    return QDQ_OK;
}

static void
release_outputs(struct remote_model *m)
{
    qdqi_wire_free(&m->answer);
    free(m->outputs);
    m->outputs = NULL;
}

/* Returns whether the process that has the model is still there. */
static bool
is_there(const struct remote_model *m)
{
    return !m->remote->gone && m->generation == m->remote->generation;
}

static void
close_model(void *model)
{
    struct remote_model *m = model;
    struct qdqi_wire body = {0}, answer = {0};
    struct qdq_error ignored = {0};
    if (is_there(m)) {
        qdqi_wire_put(&body, m->id);
        (void)!ask(m->remote, QDQI_WIRE_CLOSE, &body, NULL, &answer, &ignored);
        qdqi_wire_free(&answer);
    }
    release_outputs(m);
    free(m->precision);
    free(m);
}

static const char *
precision(void *model)
{
    return ((const struct remote_model *)model)->precision;
}

/* Reads an output and checks that its sizes fit each other. */
static bool
get_output(struct qdqi_wire *from, struct qdqi_output *ret)
{
    size_t n_shape, n_data, elements = 1;
    ret->dtype = (enum qdqi_dtype)qdqi_wire_get(from);
    ret->shape = qdqi_wire_get_bytes(from, &n_shape);
    ret->data = qdqi_wire_get_bytes(from, &n_data);
    ret->rank = n_shape / sizeof *ret->shape;
    if (from->failed || ret->rank > QDQI_WIRE_MOST_DIMS)
        return false;
    if (ret->dtype == QDQI_UNKNOWN)
        return true;
    size_t each = qdqi_dtype_size((int)ret->dtype);
    for (size_t i = 0; i < ret->rank; i++)
        if (ret->shape[i] < 0 ||
            __builtin_mul_overflow(elements, (size_t)ret->shape[i], &elements))
            return false;
    ret->n = elements;
    return each > 0 && n_data / each == elements && n_data % each == 0;
}

static enum qdq_code
get_outputs(struct remote_model *m, const struct qdqi_output **ret, size_t *ret_n,
            double *ret_ms, struct qdq_error *err)
{
    *ret_ms = qdqi_wire_get_real(&m->answer);
    m->processor_ms = qdqi_wire_get_real(&m->answer);
    size_t n = qdqi_wire_get_count(&m->answer, OUTPUT_BYTES);
    if (m->answer.failed)
        return fail_gone(m->remote, err);
    m->outputs = calloc(n + 1, sizeof *m->outputs);
    if (!m->outputs)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n; i++)
        if (!get_output(&m->answer, &m->outputs[i]))
            return fail_gone(m->remote, err);
    *ret = m->outputs;
    *ret_n = n;
    return QDQ_OK;
}

static enum qdq_code
run_model(void *model, const struct qdqi_input *inputs, size_t n_inputs,
          const struct qdqi_output **ret, size_t *ret_n, double *ret_ms,
          struct qdq_error *err)
{
    struct remote_model *m = model;
    struct qdqi_wire body = {0};
    release_outputs(m);
    if (!is_there(m))
        return fail_ended(err);
    qdqi_wire_put(&body, m->id);
    put_inputs(&body, inputs, n_inputs);
    enum qdq_code code = ask(m->remote, QDQI_WIRE_RUN, &body, NULL, &m->answer, err);
    return code ? code : get_outputs(m, ret, ret_n, ret_ms, err);
}

/* --- the time of nodes ---------------------------------------------------- */

static enum qdq_node_kind
get_kind(struct qdqi_wire *from)
{
    const uint64_t kind = qdqi_wire_get(from);
    from->failed = from->failed || kind >= QDQ_N_NODE_KINDS;
    return from->failed ? QDQ_NODE_BY_NAME : (enum qdq_node_kind)kind;
}

/* Reads the names of the model's nodes that a node computes. */
static bool
get_names(struct qdqi_wire *from, struct qdqi_arena *arena,
          struct qdqi_traced_node *ret)
{
    const size_t n = qdqi_wire_get_count(from, NAME_BYTES);
    if (n == 0)
        return true;
    const char **names = qdqi_arena_array(arena, n, sizeof *names);
    bool ok = names;
    for (size_t i = 0; ok && i < n; i++)
        ok = (names[i] = qdqi_arena_strdup(arena, qdqi_wire_get_text(from))) != NULL;
    ret->names = names;
    ret->n_names = n;
    return ok;
}

/* Reads why a node is not on the runtime's device, which is empty where nothing is known. */
static bool
get_reason(struct qdqi_wire *from, struct qdqi_arena *arena,
           struct qdqi_traced_node *ret)
{
    const char *reason = qdqi_wire_get_text(from);
    if (!*reason)
        return true;
    ret->reason = qdqi_arena_strdup(arena, reason);
    return ret->reason;
}

static enum qdq_code
get_nodes(struct qdqi_remote *r, struct qdqi_wire *from, struct qdqi_arena *arena,
          struct qdqi_trace *ret, struct qdq_error *err)
{
    size_t n = qdqi_wire_get_count(from, NODE_BYTES);
    if (from->failed)
        return fail_gone(r, err);
    if (n == 0) /* the runtime names none */
        return QDQ_OK;
    ret->nodes = qdqi_arena_array(arena, n, sizeof *ret->nodes);
    if (!ret->nodes)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n && !from->failed; i++) {
        struct qdqi_traced_node *node = &ret->nodes[i];
        node->name = qdqi_arena_strdup(arena, qdqi_wire_get_text(from));
        node->op = qdqi_arena_strdup(arena, qdqi_wire_get_text(from));
        node->provider = qdqi_arena_strdup(arena, qdqi_wire_get_text(from));
        node->kind = get_kind(from);
        node->ms = qdqi_wire_get_real(from);
        if (!get_names(from, arena, node) || !node->name || !node->op ||
            !node->provider || !get_reason(from, arena, node))
            return qdqi_no_memory(err);
    }
    ret->n_nodes = n;
    return from->failed ? fail_gone(r, err) : QDQ_OK;
}

static enum qdq_code
nodes_of(void *model, struct qdqi_arena *arena, struct qdqi_trace *ret,
         struct qdq_error *err)
{
    const struct remote_model *m = model;
    struct qdqi_wire body = {0}, answer = {0};
    *ret = (struct qdqi_trace){0};
    if (!is_there(m))
        return fail_ended(err);
    qdqi_wire_put(&body, m->id);
    enum qdq_code code = ask(m->remote, QDQI_WIRE_NODES, &body, NULL, &answer, err);
    if (code)
        return code;
    code = get_nodes(m->remote, &answer, arena, ret, err);
    qdqi_wire_free(&answer);
    return code;
}

static double
processor_ms(void *model)
{
    return ((const struct remote_model *)model)->processor_ms;
}

struct qdqi_deploy_ops
qdqi_remote_ops(const struct qdq_runtime_row *row, const struct qdqi_deploy_ops *linked)
{
    return (struct qdqi_deploy_ops){
        .row = row,
        .kernels = linked ? linked->kernels : &qdqi_told_kernels,
        .chooses_precision = linked && linked->chooses_precision,
        .opens_slowly = true,
        .has_one_thread = linked && linked->has_one_thread,
        .version = version,
        .about = about,
        .load = load_model,
        .run = run_model,
        .processor_ms = processor_ms,
        .precision = precision,
        .nodes = nodes_of,
        .close = close_model,
    };
}
