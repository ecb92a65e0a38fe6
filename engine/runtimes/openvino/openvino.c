/* SPDX-License-Identifier: Apache-2.0 */
/* OpenVINO's CPU plugin on one thread, by the C library of OpenVINO. */
#include "config.h"
#include "runtimes/openvino/openvino.h"

#include "ground/base/seconds.h"
#include "ground/base/unused.h"
#include "runtimes/openvino/openvino_library.h"
#include "runtimes/common/whole.h"
#include "numbers/arithmetic/half.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the library ---------------------------------------------------------- */

/* Writes a message of the library as one line, without the lines that name its own
   source files. */
static void
join_lines(const char *message, char *to, size_t size)
{
    static const char where[] = "Exception from ";
    size_t n = 0;
    while (*message) {
        size_t length = strcspn(message, "\n");
        bool skipped = length == 0 || strncmp(message, where, strlen(where)) == 0;
        if (!skipped && n + 1 < size)
            n += (size_t)snprintf(to + n, size - n, "%s%.*s", n ? " " : "", (int)length,
                                  message);
        if (n >= size)
            n = size - 1;
        message += length + (message[length] == '\n');
    }
    to[n] = '\0';
}

enum qdq_code
qdqi_openvino_check(const struct qdqi_openvino *o, int status, const char *what,
                    struct qdq_error *err)
{
    char text[400];
    if (status == 0)
        return QDQ_OK;
    const char *message = o->ov_get_last_err_msg();
    join_lines(message ? message : "", text, sizeof text);
    return qdq_error_set(err, QDQ_RUN_FAILED, QDQ_AT_NOTHING, NULL, "%s: %s", what,
                         *text ? text : o->ov_get_error_info(status));
}

static enum qdq_code
load_functions(struct qdqi_openvino *o, const char *library, struct qdq_error *err)
{
    o->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!o->library)
        return qdq_error_set(err, QDQ_RUNTIME_MISSING, QDQ_AT_NOTHING, NULL,
                             "OpenVINO cannot be loaded: %s", dlerror());
#define FUNCTION(type, name, arguments)                                              \
    *(void **)&o->name = dlsym(o->library, #name);                                   \
    if (!o->name)                                                                    \
        return qdq_error_set(err, QDQ_RUNTIME_MISSING, QDQ_AT_NOTHING, NULL,         \
                             "%s is no C library of OpenVINO 2024 or later: it has " \
                             "no " #name,                                            \
                             library);
#include "runtimes/openvino/openvino_api.h"
#undef FUNCTION
    return QDQ_OK;
}

static enum qdq_code
read_version(struct qdqi_openvino *o, struct qdq_error *err)
{
    struct ov_version version = {0};
    enum qdq_code code = qdqi_openvino_check(o, o->ov_get_openvino_version(&version),
                                             "OpenVINO's version", err);
    if (code)
        return code;
    o->version = strdup(version.build ? version.build : "");
    o->ov_version_free(&version);
    return o->version ? QDQ_OK : qdqi_no_memory(err);
}

/* --- a small model -------------------------------------------------------- */

static const int known_types[] = {QDQI_FLOAT32, QDQI_UINT8, QDQI_INT8,    QDQI_INT32,
                                  QDQI_INT64,   QDQI_BOOL,  QDQI_FLOAT16, QDQI_FLOAT64,
                                  QDQI_UINT16,  QDQI_INT16, QDQI_UINT32,  QDQI_UINT64};
enum { N_KNOWN = sizeof known_types / sizeof *known_types };

/* A model with an input of each type, which Identity hands to an output. */
struct small_model {
    Onnx__ModelProto model;
    Onnx__OperatorSetIdProto opset, *opsets[1];
    Onnx__GraphProto graph;
    Onnx__TypeProto__Tensor tensors[N_KNOWN];
    Onnx__TensorShapeProto shape;
    Onnx__TypeProto types[N_KNOWN];
    Onnx__ValueInfoProto values[2 * N_KNOWN], *ins[N_KNOWN], *outs[N_KNOWN];
    Onnx__NodeProto nodes[N_KNOWN], *rows[N_KNOWN];
    char names[2 * N_KNOWN][8], *edges[2 * N_KNOWN];
};

static void
fill_type(struct small_model *m, size_t i)
{
    static char identity[] = "Identity";
    onnx__type_proto__tensor__init(&m->tensors[i]);
    m->tensors[i].has_elem_type = 1;
    m->tensors[i].elem_type = known_types[i];
    m->tensors[i].shape = &m->shape;
    onnx__type_proto__init(&m->types[i]);
    m->types[i].value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    m->types[i].tensor_type = &m->tensors[i];
    for (size_t k = 0; k < 2; k++) {
        size_t at = k * N_KNOWN + i;
        snprintf(m->names[at], sizeof m->names[at], "%c%zu", k ? 'y' : 'x', i);
        m->edges[at] = m->names[at];
        onnx__value_info_proto__init(&m->values[at]);
        m->values[at].name = m->names[at];
        m->values[at].type = &m->types[i];
    }
    m->ins[i] = &m->values[i];
    m->outs[i] = &m->values[N_KNOWN + i];
    onnx__node_proto__init(&m->nodes[i]);
    m->nodes[i].op_type = identity;
    m->nodes[i].n_input = m->nodes[i].n_output = 1;
    m->nodes[i].input = &m->edges[i];
    m->nodes[i].output = &m->edges[N_KNOWN + i];
    m->rows[i] = &m->nodes[i];
}

static void
fill_model(struct small_model *m)
{
    static char name[] = "types", domain[] = "";
    onnx__model_proto__init(&m->model);
    onnx__operator_set_id_proto__init(&m->opset);
    onnx__graph_proto__init(&m->graph);
    onnx__tensor_shape_proto__init(&m->shape);
    for (size_t i = 0; i < N_KNOWN; i++)
        fill_type(m, i);
    m->opset.domain = domain;
    m->opset.has_version = m->model.has_ir_version = 1;
    m->opset.version = 13;
    m->opsets[0] = &m->opset;
    m->model.ir_version = 8;
    m->model.n_opset_import = 1;
    m->model.opset_import = m->opsets;
    m->model.graph = &m->graph;
    m->graph.name = name;
    m->graph.n_input = m->graph.n_output = m->graph.n_node = N_KNOWN;
    m->graph.input = m->ins;
    m->graph.output = m->outs;
    m->graph.node = m->rows;
}

/* Learns the library's numbers of the types, which differ between versions. */
static enum qdq_code
learn_types(struct qdqi_openvino *o, const struct small_model *m, void *model,
            struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; !code && i < N_KNOWN; i++) {
        void *port = NULL;
        code = qdqi_openvino_check(
            o, o->ov_model_const_input_by_name(model, m->names[i], &port),
            "an input of a small model", err);
        if (!code)
            code = qdqi_openvino_check(
                o, o->ov_port_get_element_type(port, &o->types[known_types[i]]),
                "the type of an input", err);
        if (port)
            o->ov_output_const_port_free(port);
    }
    return code;
}

/* Reads a small model, which loads the library that reads ONNX. */
static enum qdq_code
read_small_model(struct qdqi_openvino *o, struct qdq_error *err)
{
    struct small_model *m = calloc(1, sizeof *m);
    void *model = NULL;
    if (!m)
        return qdqi_no_memory(err);
    fill_model(m);
    size_t size = onnx__model_proto__get_packed_size(&m->model);
    uint8_t *bytes = malloc(size);
    enum qdq_code code = bytes ? QDQ_OK : qdqi_no_memory(err);
    if (bytes)
        onnx__model_proto__pack(&m->model, bytes);
    if (!code)
        code =
            qdqi_openvino_check(o,
                                o->ov_core_read_model_from_memory_buffer(
                                    o->core, (const char *)bytes, size, NULL, &model),
                                "OpenVINO cannot read a small model", err);
    if (!code)
        code = learn_types(o, m, model, err);
    if (model)
        o->ov_model_free(model);
    free(bytes);
    free(m);
    return code;
}

/* Loads the plugin for processors. */
static enum qdq_code
load_plugin(struct qdqi_openvino *o, struct qdq_error *err)
{
    char *name = NULL;
    enum qdq_code code = qdqi_openvino_check(
        o, o->ov_core_get_property(o->core, "CPU", "FULL_DEVICE_NAME", &name),
        "OpenVINO's CPU plugin", err);
    if (name)
        o->ov_free(name);
    return code;
}

/* Loads the plugin of batches, which OpenVINO asks when it compiles a model. It is no
   fault if there is none. */
static void
load_batches(const struct qdqi_openvino *o)
{
    char *text = NULL;
    (void)!o->ov_core_get_property(o->core, "BATCH", "SUPPORTED_PROPERTIES", &text);
    if (text)
        o->ov_free(text);
}

enum qdq_code
qdqi_openvino_open(const char *library, struct qdqi_openvino **ret,
                   struct qdq_error *err)
{
    struct qdqi_openvino *o = calloc(1, sizeof *o);
    struct qdq_error why = {0};
    if (!o)
        return qdqi_no_memory(err);
    qdqi_keep_little_unused();
    enum qdq_code code = load_functions(o, library, &why);
    if (!code && !(code = read_version(o, &why)) &&
        !(code = qdqi_openvino_check(o, o->ov_core_create(&o->core),
                                     "starting OpenVINO", &why)) &&
        !(code = load_plugin(o, &why)))
        code = read_small_model(o, &why);
    if (!code) {
        load_batches(o);
        *ret = o;
        return QDQ_OK;
    }
    qdqi_openvino_close(&o);
    return qdq_error_set(err, code == QDQ_NO_MEMORY ? code : QDQ_RUNTIME_MISSING,
                         QDQ_AT_NOTHING, NULL, "%s", why.text);
}

void
qdqi_openvino_close(struct qdqi_openvino **openvino)
{
    struct qdqi_openvino *o = *openvino;
    if (!o)
        return;
    if (o->core)
        o->ov_core_free(o->core);
    /* The library is not closed with dlclose(): its threads may still end. */
    free(o->version);
    free(o);
    *openvino = NULL;
}

const char *
qdqi_openvino_version(const struct qdqi_openvino *o)
{
    return o->version;
}

/* --- a model -------------------------------------------------------------- */

struct loaded {
    struct qdqi_openvino *o;
    void *compiled, *request;
    char *precision;
    size_t n_inputs, n_outputs;
    void **tensors; /* outputs of the last run */
    struct qdqi_output *outputs;
    struct qdqi_arena *arena; /* memory of the last run */
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
open_loaded(struct qdqi_openvino *o, const struct qdqi_model_bytes *bytes,
            const struct qdqi_deploy_options *options, struct loaded **ret,
            struct qdq_error *err)
{
    struct loaded *m = calloc(1, sizeof *m);
    if (!m)
        return qdqi_no_memory(err);
    m->o = o;
    enum qdq_code code = load(m, bytes, options, err);
    if (code)
        close_loaded(m);
    else
        *ret = m;
    return code;
}

enum qdq_code
qdqi_openvino_load(struct qdqi_openvino *o, const struct qdqi_model_bytes *bytes,
                   const struct qdqi_deploy_options *options, void **ret,
                   struct qdq_error *err)
{
    struct loaded *m = NULL;
    enum qdq_code code = open_loaded(o, bytes, options, &m, err);
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
    if (ret->dtype != QDQI_FLOAT16 && ret->dtype != QDQI_FLOAT64)
        return QDQ_OK;
    float *floats = qdqi_arena_array(m->arena, ret->n, sizeof *floats);
    if (!floats)
        return qdqi_no_memory(err);
    qdqi_load_floats(floats, ret->dtype, data, ret->n);
    ret->dtype = QDQI_FLOAT32;
    ret->data = floats;
    return QDQ_OK;
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
    double start = qdqi_seconds_now();
    if (!code)
        code = qdqi_openvino_check(m->o, m->o->ov_infer_request_infer(m->request),
                                   "running the model failed", err);
    *ret_ms = (qdqi_seconds_now() - start) * 1e3;
    for (size_t i = 0; !code && i < m->n_outputs; i++)
        code = view_output(m, i, err);
    *ret = m->outputs;
    *ret_n = m->n_outputs;
    return code;
}

/* --- the time of nodes ---------------------------------------------------- */

static const char *
copy_text(struct qdqi_arena *arena, const char *text)
{
    return qdqi_arena_strdup(arena, text ? text : "");
}

/* Adds the times of the last run. The nodes of all runs are the same, in one order. */
static enum qdq_code
add_times(struct loaded *m, struct qdqi_arena *arena, struct qdqi_trace *ret,
          struct qdq_error *err)
{
    struct ov_profiling_list list = {0};
    bool ok = true;
    size_t n = 0;
    enum qdq_code code = qdqi_openvino_check(
        m->o, m->o->ov_infer_request_get_profiling_info(m->request, &list),
        "the times of nodes", err);
    if (code)
        return code;
    if (!ret->nodes)
        ok = (ret->nodes = qdqi_arena_array(arena, list.n, sizeof *ret->nodes)) != NULL;
    for (size_t i = 0; ok && i < list.n; i++) {
        const struct ov_profiled *row = &list.rows[i];
        if (row->status != OV_EXECUTED)
            continue;
        struct qdqi_traced_node *node = &ret->nodes[n++];
        if (n > ret->n_nodes) {
            *node =
                (struct qdqi_traced_node){.name = copy_text(arena, row->name),
                                          .op = copy_text(arena, row->type),
                                          .provider = copy_text(arena, row->kernel)};
            ok = node->name && node->op && node->provider;
            ret->n_nodes = n;
        }
        node->ms += (double)row->real_us / 1000;
    }
    m->o->ov_profiling_info_list_free(&list);
    return ok ? QDQ_OK : qdqi_no_memory(err);
}

enum qdq_code
qdqi_openvino_trace(struct qdqi_openvino *o, const struct qdqi_model_bytes *bytes,
                    const struct qdqi_deploy_options *options,
                    const struct qdqi_input *inputs, size_t n_inputs, int runs,
                    struct qdqi_arena *arena, struct qdqi_trace *ret,
                    struct qdq_error *err)
{
    struct loaded *m = NULL;
    const struct qdqi_output *outputs;
    size_t n;
    double ms;
    struct qdqi_deploy_options traced = *options;
    traced.traced = true;
    *ret = (struct qdqi_trace){0};
    enum qdq_code code = open_loaded(o, bytes, &traced, &m, err);
    /* The first run prepares memory, and is not counted. */
    if (!code)
        code = run_loaded(m, inputs, n_inputs, &outputs, &n, &ms, err);
    for (int i = 0; !code && i < runs; i++) {
        code = run_loaded(m, inputs, n_inputs, &outputs, &n, &ms, err);
        if (!code)
            code = add_times(m, arena, ret, err);
    }
    if (m)
        close_loaded(m);
    return code;
}

/* --- the row -------------------------------------------------------------- */

static const char *
version(void *place)
{
    return qdqi_openvino_version(place);
}

static enum qdq_code
open_model(void *place, const struct qdq_model *model,
           const struct qdqi_deploy_options *options, void **ret, struct qdq_error *err)
{
    struct qdqi_whole whole;
    enum qdq_code code = qdqi_whole_open(model, &whole, err);
    if (code)
        return code;
    const struct qdqi_model_bytes bytes = {whole.data, whole.size};
    code = qdqi_openvino_load(place, &bytes, options, ret, err);
    qdqi_whole_close(&whole);
    return code;
}

static const char *
precision(void *model)
{
    const char *precision = ((const struct loaded *)model)->precision;
    return precision ? precision : "";
}

static enum qdq_code
nodes_of(void *model, struct qdqi_arena *arena, struct qdqi_trace *ret,
         struct qdq_error *err)
{
    *ret = (struct qdqi_trace){0};
    return ((const struct loaded *)model)->request ? add_times(model, arena, ret, err)
                                                   : fail_unprepared(err);
}

static enum qdq_code
trace_model(void *place, const struct qdq_model *model,
            const struct qdqi_deploy_options *options, const struct qdqi_input *inputs,
            size_t n_inputs, int runs, struct qdqi_arena *arena, struct qdqi_trace *ret,
            struct qdq_error *err)
{
    struct qdqi_whole whole;
    enum qdq_code code = qdqi_whole_open(model, &whole, err);
    if (code)
        return code;
    const struct qdqi_model_bytes bytes = {whole.data, whole.size};
    code = qdqi_openvino_trace(place, &bytes, options, inputs, n_inputs, runs, arena,
                               ret, err);
    qdqi_whole_close(&whole);
    return code;
}

const struct qdqi_deploy_ops qdqi_deploy_openvino = {
    .name = "openvino",
    .title = "OpenVINO",
    .kernels = &qdqi_openvino_kernels,
    .chooses_precision = true,
    .opens_slowly = true,
    .version = version,
    .open = open_model,
    .run = run_loaded,
    .precision = precision,
    .nodes = nodes_of,
    .close = close_loaded,
    .trace = trace_model,
};
