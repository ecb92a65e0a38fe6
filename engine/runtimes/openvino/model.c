/* SPDX-License-Identifier: Apache-2.0 */
/* Models in OpenVINO's CPU plugin, and the row of the runtime. */
#include "config.h"
#include "libraries.h"
#include "runtimes/openvino/library.h"

#include "ground/base/seconds.h"
#include "ground/base/unused.h"
#include "qdq/quantize.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct loaded {
    struct qdqi_openvino *o;
    void *compiled, *request;
    char *precision;
    size_t n_inputs, n_outputs;
    void **tensors; /* outputs of the last run */
    struct qdqi_output *outputs;
    struct qdqi_arena *arena; /* memory of the last run */
    double processor_ms; /* of the last run; below 0: more than one thread worked */
    bool has_one_thread, is_traced;
    int64_t runs;
    struct first_time *first; /* of each node, where it is traced and has run */
    size_t n_first;
};

/* The profile of a node after the first run. */
struct first_time {
    int64_t us;
    bool ran; /* in any run */
};

static void
release_outputs(struct loaded *m)
{
    for (size_t i = 0; m->tensors && i < m->n_outputs; i++) {
        if (m->tensors[i])
            m->o->ov_tensor_free(m->tensors[i]);
        m->tensors[i] = NULL;
    }
    qdqi_arena_free(&m->arena);
}

static void
close_loaded(void *model)
{
    struct loaded *m = model;
    release_outputs(m);
    if (m->request)
        m->o->ov_infer_request_free(m->request);
    if (m->compiled)
        m->o->ov_compiled_model_free(m->compiled);
    if (m->precision)
        m->o->ov_free(m->precision);
    free(m->tensors);
    free(m->outputs);
    free(m->first);
    free(m);
}

#define PRECISION "INFERENCE_PRECISION_HINT"

static enum qdq_code
compile(struct loaded *m, const void *model, const struct qdqi_deploy_options *options,
        struct qdq_error *err)
{
    struct qdqi_openvino *o = m->o;
    char threads[16];
    snprintf(threads, sizeof threads, "%d", options->threads ? options->threads : 1);
    const char *profile = options->traced ? "YES" : "NO";
    int status =
        options->own_precision
            ? o->ov_core_compile_model(o->core, model, "CPU", 4, &m->compiled,
                                       "INFERENCE_NUM_THREADS", threads, "PERF_COUNT",
                                       profile)
            : o->ov_core_compile_model(o->core, model, "CPU", 6, &m->compiled,
                                       "INFERENCE_NUM_THREADS", threads, "PERF_COUNT",
                                       profile, PRECISION, "f32");
    enum qdq_code code =
        qdqi_openvino_check(o, status, "OpenVINO cannot load the model", err);
    if (!code)
        code = qdqi_openvino_check(
            o, o->ov_compiled_model_get_property(m->compiled, PRECISION, &m->precision),
            "its precision", err);
    return code ? code
                : qdqi_openvino_check(o,
                                      o->ov_compiled_model_create_infer_request(
                                          m->compiled, &m->request),
                                      "OpenVINO cannot prepare the model", err);
}

static enum qdq_code
load(struct loaded *m, const struct qdqi_model_bytes *bytes,
     const struct qdqi_deploy_options *options, struct qdq_error *err)
{
    struct qdqi_openvino *o = m->o;
    void *model = NULL;
    enum qdq_code code =
        qdqi_openvino_check(o,
                            o->ov_core_read_model_from_memory_buffer(
                                o->core, bytes->data, bytes->size, NULL, &model),
                            "OpenVINO cannot read the model", err);
    if (!code)
        code = qdqi_openvino_check(o, o->ov_model_inputs_size(model, &m->n_inputs),
                                   "its inputs", err);
    if (!code)
        code = qdqi_openvino_check(o, o->ov_model_outputs_size(model, &m->n_outputs),
                                   "its outputs", err);
    if (!code && !options->reads_only)
        code = compile(m, model, options, err);
    if (model)
        o->ov_model_free(model);
    qdqi_release_unused();
    if (code)
        return code;
    m->tensors = calloc(m->n_outputs + 1, sizeof *m->tensors);
    m->outputs = calloc(m->n_outputs + 1, sizeof *m->outputs);
    return m->tensors && m->outputs ? QDQ_OK : qdqi_no_memory(err);
}

static enum qdq_code
load_model(void *place, const struct qdqi_model_bytes *bytes,
           const struct qdqi_deploy_options *options, void **ret, struct qdq_error *err)
{
    struct loaded *m = calloc(1, sizeof *m);
    if (!m)
        return qdqi_no_memory(err);
    m->o = place;
    m->has_one_thread = options->threads <= 1;
    m->is_traced = options->traced;
    enum qdq_code code = load(m, bytes, options, err);
    if (code)
        close_loaded(m);
    else
        *ret = m;
    return code;
}

/* --- running -------------------------------------------------------------- */

static enum qdq_code
fail_unprepared(struct qdq_error *err)
{
    return qdq_error_set(err, QDQ_RUN_FAILED, QDQ_AT_NOTHING, NULL,
                         "the model was only read");
}

static enum qdqi_dtype
dtype_of(const struct qdqi_openvino *o, int type)
{
    for (int i = 1; i < N_TYPES; i++)
        if (o->types[i] == type)
            return (enum qdqi_dtype)i;
    return QDQI_UNKNOWN;
}

static enum qdq_code
view_shape(struct loaded *m, const void *tensor, struct qdqi_output *ret,
           struct qdq_error *err)
{
    struct ov_shape shape = {0};
    int status = m->o->ov_tensor_get_shape(tensor, &shape);
    /* The library makes no shape without dimensions, and refuses that of a scalar. */
    enum qdq_code code = status == OV_INVALID_C_PARAM
                             ? QDQ_OK
                             : qdqi_openvino_check(m->o, status, "an output", err);
    if (code)
        return code;
    ret->rank = (size_t)shape.rank;
    int64_t *dims = qdqi_arena_array(m->arena, ret->rank, sizeof *dims);
    if (dims && ret->rank)
        memcpy(dims, shape.dims, ret->rank * sizeof *dims);
    ret->shape = dims;
    m->o->ov_shape_free(&shape);
    return dims ? QDQ_OK : qdqi_no_memory(err);
}

static enum qdq_code
view_output(struct loaded *m, size_t i, struct qdq_error *err)
{
    struct qdqi_openvino *o = m->o;
    struct qdqi_output *ret = &m->outputs[i];
    void *data = NULL;
    int type = 0;
    *ret = (struct qdqi_output){0};
    enum qdq_code code = qdqi_openvino_check(
        o,
        o->ov_infer_request_get_output_tensor_by_index(m->request, i, &m->tensors[i]),
        "an output", err);
    if (code ||
        (code =
             qdqi_openvino_check(o, o->ov_tensor_get_element_type(m->tensors[i], &type),
                                 "an output", err)) ||
        (ret->dtype = dtype_of(o, type)) == QDQI_UNKNOWN ||
        (code = view_shape(m, m->tensors[i], ret, err)) ||
        (code = qdqi_openvino_check(o, o->ov_tensor_get_size(m->tensors[i], &ret->n),
                                    "an output", err)) ||
        (code = qdqi_openvino_check(o, o->ov_tensor_data(m->tensors[i], &data),
                                    "an output", err)))
        return code;
    ret->data = data;
    return qdqi_output_to_float32(ret, m->arena, err);
}

/* --- the time of nodes ---------------------------------------------------- */

/* Takes in what the profile says. After the first run that is the time of this run, which has
   prepared the kernels and is far longer than all others; after later ones it is the mean over all
   runs, in whole microseconds, and a node with less than one is said not to have run. */
static enum qdq_code
note_nodes(struct loaded *m, const struct ov_profiling_list *list,
           struct qdq_error *err)
{
    if (!m->first) {
        m->first = calloc(list->n + 1, sizeof *m->first);
        if (!m->first)
            return qdqi_no_memory(err);
        m->n_first = list->n;
        for (size_t i = 0; i < list->n; i++)
            m->first[i].us = m->runs == 1 ? list->rows[i].real_us : 0;
    }
    for (size_t i = 0; i < list->n && i < m->n_first; i++)
        m->first[i].ran |= list->rows[i].status == OV_EXECUTED;
    return QDQ_OK;
}

static enum qdq_code
read_profile(struct loaded *m, struct ov_profiling_list *ret, struct qdq_error *err)
{
    enum qdq_code code = qdqi_openvino_check(
        m->o, m->o->ov_infer_request_get_profiling_info(m->request, ret),
        "the times of nodes", err);
    if (code)
        return code;
    code = note_nodes(m, ret, err);
    if (code)
        m->o->ov_profiling_info_list_free(ret);
    return code;
}

/* Returns the mean time of a node's runs behind the first one. */
static double
mean_us(const struct loaded *m, const struct ov_profiling_list *list, size_t i)
{
    const double mean = (double)list->rows[i].real_us, runs = (double)m->runs;
    if (m->runs < 2 || i >= m->n_first)
        return mean;
    return fmax((mean * runs - (double)m->first[i].us) / (runs - 1), 0);
}

static const char *
copy_text(struct qdqi_arena *arena, const char *text)
{
    return qdqi_arena_strdup(arena, text ? text : "");
}

/* Copies the nodes that were run. Returns false when out of memory. */
static bool
copy_nodes(const struct loaded *m, const struct ov_profiling_list *list,
           struct qdqi_arena *arena, struct qdqi_trace *ret)
{
    bool ok = (ret->nodes = qdqi_arena_array(arena, list->n, sizeof *ret->nodes));
    for (size_t i = 0; ok && i < list->n; i++) {
        const struct ov_profiled *row = &list->rows[i];
        struct qdqi_traced_node *node = &ret->nodes[ret->n_nodes];
        if (i < m->n_first ? !m->first[i].ran : row->status != OV_EXECUTED)
            continue;
        *node = (struct qdqi_traced_node){.name = copy_text(arena, row->name),
                                          .op = copy_text(arena, row->type),
                                          .provider = copy_text(arena, row->kernel),
                                          .ms = mean_us(m, list, i) / 1000};
        ok = node->name && node->op && node->provider;
        ret->n_nodes++;
    }
    return ok;
}

static enum qdq_code
nodes_of(void *model, struct qdqi_arena *arena, struct qdqi_trace *ret,
         struct qdq_error *err)
{
    struct loaded *m = model;
    struct ov_profiling_list list = {0};
    *ret = (struct qdqi_trace){0};
    if (!m->request)
        return fail_unprepared(err);
    enum qdq_code code = read_profile(m, &list, err);
    if (code)
        return code;
    const bool ok = copy_nodes(m, &list, arena, ret);
    m->o->ov_profiling_info_list_free(&list);
    return ok ? QDQ_OK : qdqi_no_memory(err);
}

/* --- a run ------------------------------------------------------------------ */

/* Keeps what the profile says after the first run of a model that is traced. */
static enum qdq_code
note_first(struct loaded *m, struct qdq_error *err)
{
    struct ov_profiling_list list = {0};
    if (++m->runs > 1 || !m->is_traced)
        return QDQ_OK;
    enum qdq_code code = read_profile(m, &list, err);
    if (!code)
        m->o->ov_profiling_info_list_free(&list);
    return code;
}

static enum qdq_code
run_loaded(void *model, const struct qdqi_input *inputs, size_t n_inputs,
           const struct qdqi_output **ret, size_t *ret_n, double *ret_ms,
           struct qdq_error *err)
{
    struct loaded *m = model;
    enum qdq_code code = QDQ_OK;
    release_outputs(m);
    if (!m->request)
        return fail_unprepared(err);
    if (!(m->arena = qdqi_arena_new()))
        return qdqi_no_memory(err);
    const struct qdqi_openvino_request request = {m->compiled, m->request, m->n_inputs};
    code = qdqi_openvino_set_inputs(m->o, &request, inputs, n_inputs, err);
    const double start = qdqi_seconds_now(), of_thread = qdqi_seconds_of_thread();
    if (!code)
        code = qdqi_openvino_check(m->o, m->o->ov_infer_request_infer(m->request),
                                   "running the model failed", err);
    *ret_ms = (qdqi_seconds_now() - start) * 1e3;
    m->processor_ms =
        m->has_one_thread ? (qdqi_seconds_of_thread() - of_thread) * 1e3 : -1;
    if (!code)
        code = note_first(m, err);
    for (size_t i = 0; !code && i < m->n_outputs; i++)
        code = view_output(m, i, err);
    *ret = m->outputs;
    *ret_n = m->n_outputs;
    return code;
}

static double
processor_ms(void *model)
{
    return ((const struct loaded *)model)->processor_ms;
}

static const char *
precision(void *model)
{
    const char *precision = ((const struct loaded *)model)->precision;
    return precision ? precision : "";
}

/* --- the names of kernels ----------------------------------------------------- */

/* Operators that multiply by a weight. */
static const char *const products[] = {"Convolution",    "GroupConvolution",
                                       "Deconvolution",  "GroupDeconvolution",
                                       "FullyConnected", "MatMul"};

/* Returns whether the type in a kernel's name is an integer: the name is "jit_avx2_1x1_I8", or
   "brgconv_avx512_amx_i8" where the activations have signs and the processor has AMX. */
static bool
has_integer_type(const char *kernel)
{
    const char *type = strrchr(kernel, '_');
    return type && (strcasecmp(type, "_I8") == 0 || strcasecmp(type, "_U8") == 0);
}

/* Reorders change the layout of a tensor, and Converts its type: they compute nothing. Nodes with graphs
   of their own have the type of their condition. */
static bool
is_integer(const struct qdqi_traced_node *node)
{
    static const char unknown[] = "unknown_";
    return has_integer_type(node->provider) &&
           strncmp(node->provider, unknown, sizeof unknown - 1) != 0 &&
           strcmp(node->op, "Reorder") != 0 && strcmp(node->op, "Convert") != 0;
}

static bool
is_conversion(const struct qdqi_traced_node *node)
{
    return strcmp(node->op, "FakeQuantize") == 0;
}

static bool
is_float_layer(const struct qdqi_traced_node *node)
{
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        if (strcmp(products[i], node->op) == 0)
            return !has_integer_type(node->provider);
    return false;
}

/* OpenVINO adds a suffix to the name of a product whose bias it takes out. */
static size_t
own_length(const char *name)
{
    static const char suffix[] = "/WithoutBiases";
    const size_t n = strlen(name), added = sizeof suffix - 1;
    return n > added && strcmp(name + n - added, suffix) == 0 ? n - added : n;
}

static const struct qdqi_kernel_names kernels = {
    .is_integer = is_integer,
    .is_conversion = is_conversion,
    .is_float_layer = is_float_layer,
    .own_length = own_length,
    .why_none = "OpenVINO has no integer kernel for it as it is",
};

/* --- the row -------------------------------------------------------------- */

static const struct qdq_runtime_row row = {
    .name = "openvino",
    .title = "OpenVINO",
    .library = "libopenvino_c.so",
    .installed = QDQ_OPENVINO_LIBRARY,
    .own_process = true,
};

const struct qdqi_deploy_ops qdqi_deploy_openvino = {
    .row = &row,
    .library_option = offsetof(struct qdq_engine_options, openvino),
    .kernels = &kernels,
    .chooses_precision = true,
    .opens_slowly = true,
    .has_one_thread = true,
    .start = qdqi_openvino_start,
    .end = qdqi_openvino_end,
    .version = qdqi_openvino_version,
    .load = load_model,
    .run = run_loaded,
    .processor_ms = processor_ms,
    .precision = precision,
    .nodes = nodes_of,
    .close = close_loaded,
};
