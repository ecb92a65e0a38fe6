/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "runner/session.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    PROTOCOL = 1,
    MOST_NODES = 100000,
    MOST_NAME = 1024,
    MOST_TEXT = 128,
    MOST_REASON = 401
};

static enum qdq_code
fail_memory(struct qdq_error *err)
{
    return qdq_error_set(err, QDQ_NO_MEMORY, QDQ_AT_NOTHING, NULL, "out of memory");
}

/* --- one request --------------------------------------------------------------- */

/* Fails as the program answered. */
static enum qdq_code
fail_as_answered(struct runner_session *s, const json_t *error, struct qdq_error *err)
{
    static const struct {
        const char *kind;
        enum qdq_code code;
    } kinds[] = {{"model", QDQ_RUN_FAILED},
                 {"unavailable", QDQ_RUNTIME_MISSING},
                 {"memory", QDQ_NO_MEMORY},
                 {"failed", QDQ_RUNNER_FAILED}};
    const char *kind = json_string_value(json_object_get(error, "kind"));
    const char *text = json_string_value(json_object_get(error, "text"));
    if (!kind || !text)
        return program_fail(&s->program, err, "answered an error without kind or text");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kind, kinds[i].kind))
            return qdq_error_set(
                err, kinds[i].code, QDQ_AT_NOTHING, NULL, "%s%.32s%s%.400s",
                kinds[i].code == QDQ_RUN_FAILED ? "" : "the runner '",
                kinds[i].code == QDQ_RUN_FAILED ? "" : s->program.runner->name,
                kinds[i].code == QDQ_RUN_FAILED ? "" : "': ", text);
    return program_fail(&s->program, err,
                        "answered an error of the unknown kind '%.32s'", kind);
}

/* Reads the answer to the last request. *ret is its result, which the caller releases. */
static enum qdq_code
read_answer(struct runner_session *s, json_t **ret, struct qdq_error *err)
{
    json_error_t broken;
    struct program *p = &s->program;
    json_t *answer = json_loadb(p->line, p->line_len, JSON_REJECT_DUPLICATES, &broken);
    if (!answer)
        return program_fail(p, err, "answered no JSON: %.100s", broken.text);
    const json_t *id = json_object_get(answer, "id");
    json_t *result = json_object_get(answer, "result");
    const json_t *error = json_object_get(answer, "error");
    enum qdq_code code = QDQ_OK;
    if (!json_is_integer(id) || json_integer_value(id) != s->id)
        code = program_fail(p, err, "answered another request than the one with id %d",
                            s->id);
    else if (json_is_object(error) && !result)
        code = fail_as_answered(s, error, err);
    else if (!json_is_object(result) || error)
        code = program_fail(p, err, "answered neither a result nor an error");
    else
        *ret = json_incref(result);
    json_decref(answer);
    return code;
}

/* Sends a request, which is released, with an id and its name, and waits for the answer. */
static enum qdq_code
ask(struct runner_session *s, const char *name, json_t *request, json_t **ret,
    struct qdq_error *err)
{
    s->id++;
    bool ok = request && !json_object_set_new(request, "id", json_integer(s->id)) &&
              !json_object_set_new(request, "request", json_string(name));
    char *line = ok ? json_dumps(request, JSON_COMPACT) : NULL;
    json_decref(request);
    if (!line)
        return fail_memory(err);
    enum qdq_code code =
        program_ask(&s->program, line, s->program.runner->timeout, err);
    free(line);
    return code ? code : read_answer(s, ret, err);
}

/* --- hello --------------------------------------------------------------------- */

/* Copies a text of the result that is there, not empty, not too long, and printable. */
static bool
take_text(const json_t *result, const char *key, char *to, size_t size)
{
    const json_t *value = json_object_get(result, key);
    const char *text = json_string_value(value);
    if (!text || !*text || json_string_length(value) >= size)
        return false;
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return false;
    memcpy(to, text, json_string_length(value) + 1);
    return true;
}

static json_t *
options_of(const struct runner_config *r)
{
    json_t *options = json_object();
    for (size_t i = 0; i < r->n_options; i++)
        json_object_set_new(options, r->options[i].key,
                            json_string(r->options[i].value));
    return options;
}

/* Reads whether the program runs models, which it does where it says nothing. */
static bool
take_runs(const json_t *result, bool *ret_only_plans)
{
    const json_t *runs = json_object_get(result, "runs");
    *ret_only_plans = json_is_false(runs);
    return !runs || json_is_boolean(runs);
}

static enum qdq_code
greet(struct runner_session *s, struct qdq_error *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789._-";
    struct runner_about *about = &s->about;
    json_t *result;
    enum qdq_code code = ask(s, "hello",
                             json_pack("{s:i, s:o}", "protocol", PROTOCOL, "options",
                                       options_of(s->program.runner)),
                             &result, err);
    if (code)
        return code;
    if (json_integer_value(json_object_get(result, "protocol")) != PROTOCOL)
        code = program_fail(&s->program, err, "speaks another protocol than version %d",
                            PROTOCOL);
    else if (!take_text(result, "name", about->name, sizeof about->name) ||
             about->name[strspn(about->name, letters)] ||
             !take_text(result, "version", about->version, sizeof about->version) ||
             !take_text(result, "device", about->device, sizeof about->device))
        code = program_fail(&s->program, err,
                            "answered hello without a name, version or device");
    else if (!take_runs(result, &about->only_plans))
        code = program_fail(&s->program, err,
                            "answered hello with a 'runs' that is not true or false");
    json_decref(result);
    return code;
}

enum qdq_code
runner_session_open(const struct runner_config *runner, const char *above,
                    struct runner_session *ret, struct qdq_error *err)
{
    *ret = (struct runner_session){0};
    enum qdq_code code = program_start(runner, above, &ret->program, err);
    return code ? code : greet(ret, err);
}

static void
forget_nodes(struct runner_session *s)
{
    free(s->nodes);
    free(s->names);
    json_decref(s->nodes_json);
    s->nodes = NULL;
    s->names = NULL;
    s->nodes_json = NULL;
}

void
runner_session_close(struct runner_session *s)
{
    struct qdq_error ignored = {0};
    json_t *result = NULL;
    const bool asked = s->program.pid && !s->program.failed &&
                       !ask(s, "end", json_object(), &result, &ignored);
    json_decref(result);
    program_end(&s->program, asked);
    sent_inputs_fini(&s->inputs);
    received_fini(&s->outputs);
    forget_nodes(s);
}

/* --- the model ------------------------------------------------------------------ */

enum qdq_code
runner_session_load(struct runner_session *s, const void *bytes, size_t size,
                    const struct qdq_run_options *options, struct qdq_error *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    json_t *result;
    s->times = options->threads > 0 && !options->traced;
    enum qdq_code code =
        runner_folder_write(&s->program.folder, "model.onnx", bytes, size, err);
    if (!code)
        code =
            ask(s, "load",
                json_pack("{s:s, s:i, s:b, s:b, s:b}", "model", "model.onnx", "threads",
                          options->threads, "own_precision", options->own_precision,
                          "traced", options->traced, "reads_only", options->reads_only),
                &result, err);
    if (code)
        return code;
    if (!take_text(result, "precision", s->precision, sizeof s->precision) ||
        s->precision[strspn(s->precision, letters)])
        code = program_fail(&s->program, err, "answered load without a precision");
    json_decref(result);
    return code;
}

/* Reads a time in milliseconds. */
static bool
take_time(const json_t *value, bool may_be_zero, double *ret)
{
    *ret = json_number_value(value);
    return json_is_number(value) && isfinite(*ret) &&
           (may_be_zero ? *ret >= 0 : *ret > 0);
}

static enum qdq_code
read_outputs(struct runner_session *s, const json_t *result, double *ret_ms,
             struct qdq_error *err)
{
    if (!take_time(json_object_get(result, "ms"), false, ret_ms))
        return program_fail(&s->program, err, "answered outputs without their time");
    return tensors_receive(&s->program, json_object_get(result, "outputs"), &s->outputs,
                           err);
}

static enum qdq_code
read_latency(struct runner_session *s, const json_t *result, double *ret_ms,
             struct qdq_error *err)
{
    const json_t *list = json_object_get(result, "ms");
    char reason[MOST_REASON];
    if (json_is_null(list) && take_text(result, "reason", reason, sizeof reason))
        return qdq_error_set(err, QDQ_RUNTIME_MISSING, QDQ_AT_NOTHING, NULL,
                             "the runner '%.32s' measures no times: %s",
                             s->program.runner->name, reason);
    return json_array_size(list) == 1 &&
                   take_time(json_array_get(list, 0), false, ret_ms)
               ? QDQ_OK
               : program_fail(&s->program, err, "answered latency without a time");
}

enum qdq_code
runner_session_run(struct runner_session *s, const struct qdq_tensor *inputs, size_t n,
                   double *ret_ms, struct qdq_error *err)
{
    json_t *list, *result;
    received_fini(&s->outputs);
    enum qdq_code code = tensors_send(&s->program, &s->inputs, inputs, n, &list, err);
    if (code)
        return code;
    if (s->times)
        code =
            ask(s, "latency",
                json_pack("{s:o, s:i, s:i}", "inputs", list, "warm_up", 0, "runs", 1),
                &result, err);
    else
        code = ask(s, "outputs", json_pack("{s:o}", "inputs", list), &result, err);
    if (code)
        return code;
    code = s->times ? read_latency(s, result, ret_ms, err)
                    : read_outputs(s, result, ret_ms, err);
    json_decref(result);
    return code;
}

/* --- kernels -------------------------------------------------------------------- */

/* Returns a text of at most so many bytes, borrowed; NULL: it is missing or too long. */
static const char *
text_of(const json_t *json, const char *key, size_t most)
{
    const json_t *value = json_object_get(json, key);
    return json_is_string(value) && json_string_length(value) <= most
               ? json_string_value(value)
               : NULL;
}

static bool
read_kind(const char *computes, enum qdq_node_kind *ret)
{
    static const struct {
        const char *name;
        enum qdq_node_kind kind;
    } kinds[] = {{"integer", QDQ_NODE_INTEGER},
                 {"float", QDQ_NODE_FLOAT_LAYER},
                 {"conversion", QDQ_NODE_CONVERSION},
                 {"other", QDQ_NODE_OTHER}};
    for (size_t i = 0; computes && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(computes, kinds[i].name)) {
            *ret = kinds[i].kind;
            return true;
        }
    return false;
}

/* Puts the names of the model's nodes that a kernel computes into a list, from which they are
   borrowed. */
static bool
read_names(const json_t *json, const char **names, struct qdq_run_node *ret)
{
    const json_t *list = json_object_get(json, "nodes"), *name;
    size_t i;
    json_array_foreach ((json_t *)(uintptr_t)list, i, name) {
        if (!json_is_string(name) || json_string_length(name) > MOST_NAME)
            return false;
        names[i] = json_string_value(name);
    }
    ret->names = names;
    ret->n_names = json_array_size(list);
    return !list || json_is_array(list);
}

/* Returns how many names of the model's nodes a list of kernels has. */
static size_t
count_names(const json_t *kernels)
{
    const json_t *kernel;
    size_t i, n = 0;
    json_array_foreach ((json_t *)(uintptr_t)kernels, i, kernel)
        n += json_array_size(json_object_get(kernel, "nodes"));
    return n;
}

static bool
read_node(const json_t *json, const char **names, struct qdq_run_node *ret)
{
    ret->name = text_of(json, "name", MOST_NAME);
    ret->op = text_of(json, "op", MOST_TEXT);
    ret->kernel = text_of(json, "device", MOST_TEXT);
    ret->reason = text_of(json, "reason", MOST_REASON - 1);
    return ret->name && ret->op && ret->kernel &&
           read_kind(text_of(json, "computes", MOST_TEXT), &ret->kind) &&
           take_time(json_object_get(json, "ms"), true, &ret->ms) &&
           read_names(json, names, ret);
}

enum qdq_code
runner_session_ask_kernels(struct runner_session *s, size_t *ret_n,
                           struct qdq_error *err)
{
    json_t *result;
    enum qdq_code code = ask(s, "kernels", json_object(), &result, err);
    if (code)
        return code;
    forget_nodes(s);
    s->nodes_json = result;
    const json_t *list = json_object_get(result, "nodes");
    const size_t n = json_array_size(list);
    if (!json_is_array(list) || n > MOST_NODES)
        return program_fail(&s->program, err, "answered no list of kernels");
    s->nodes = calloc(n + 1, sizeof *s->nodes);
    s->names = calloc(count_names(list) + 1, sizeof *s->names);
    if (!s->nodes || !s->names)
        return fail_memory(err);
    const char **names = s->names;
    for (size_t i = 0; i < n; names += s->nodes[i++].n_names)
        if (!read_node(json_array_get(list, i), names, &s->nodes[i]))
            return program_fail(&s->program, err, "answered kernel %zu badly", i);
    *ret_n = n;
    return QDQ_OK;
}

/* --- the compiled model ----------------------------------------------------------- */

enum qdq_code
runner_session_make_context(struct runner_session *s, void **ret, size_t *ret_size,
                            struct qdq_error *err)
{
    char name[64 + 1], why[160];
    json_t *result;
    enum qdq_code code = ask(s, "context", json_object(), &result, err);
    if (code)
        return code;
    const json_int_t size = json_integer_value(json_object_get(result, "bytes"));
    const bool ok = take_text(result, "file", name, sizeof name) &&
                    !strchr(name, '/') && *name != '.' && size > 0 && size <= INT32_MAX;
    json_decref(result);
    if (!ok)
        return program_fail(&s->program, err,
                            "answered context without a file of at most 2 GiB");
    if (!runner_folder_read(&s->program.folder, name, (size_t)size, ret, why))
        return program_fail(&s->program, err, "%s", why);
    *ret_size = (size_t)size;
    return QDQ_OK;
}
