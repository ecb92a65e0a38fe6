/* SPDX-License-Identifier: Apache-2.0 */
/* OpenVINO's C library, which is loaded with dlopen(), its plugin for processors, and the types of
   its tensors. */
#include "config.h"
#include "runtimes/openvino/library.h"

#include "ground/base/unused.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    OPENVINO_FUNCTIONS
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
qdqi_openvino_start(const struct qdqi_deploy_ops *ops,
                    const struct qdqi_deploy_start *from, void **ret,
                    struct qdq_error *err)
{
    struct qdqi_openvino *o = calloc(1, sizeof *o);
    struct qdq_error why = {0};
    (void)ops;
    if (!o)
        return qdqi_no_memory(err);
    qdqi_keep_little_unused();
    enum qdq_code code = load_functions(o, from->library, &why);
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
    qdqi_openvino_end(o);
    return qdq_error_set(err, code == QDQ_NO_MEMORY ? code : QDQ_RUNTIME_MISSING,
                         QDQ_AT_NOTHING, NULL, "%s", why.text);
}

void
qdqi_openvino_end(void *place)
{
    struct qdqi_openvino *o = place;
    if (o->core)
        o->ov_core_free(o->core);
    /* The library is not closed with dlclose(): its threads may still end. */
    free(o->version);
    free(o);
}

const char *
qdqi_openvino_version(void *place)
{
    return ((const struct qdqi_openvino *)place)->version;
}

/* --- the inputs of a run --------------------------------------------------- */

/*
 * The inputs of a model are not always those of the file: OpenVINO leaves out an input that no
 * node reads, and an input whose only reader is an Identity or a Dropout gets the name of that
 * node's output in the place of its own.
 */

/* Returns whether the model has an input of this name. */
static bool
has_input(const struct qdqi_openvino *o, const struct qdqi_openvino_request *r,
          const char *name)
{
    void *port = NULL;
    bool found = o->ov_compiled_model_input_by_name(r->compiled, name, &port) == 0;
    if (port)
        o->ov_output_const_port_free(port);
    return found;
}

/* Returns whether input i of the model has none of the names that the file has. */
static bool
is_renamed(const struct qdqi_openvino *o, const struct qdqi_openvino_request *r,
           size_t i, const struct qdqi_input *inputs, size_t n_inputs)
{
    void *port = NULL;
    char *name = NULL;
    bool renamed = true;
    if (o->ov_compiled_model_input_by_index(r->compiled, i, &port) == 0)
        (void)!o->ov_port_get_any_name(port, &name);
    for (size_t k = 0; name && renamed && k < n_inputs; k++)
        renamed = strcmp(inputs[k].name, name) != 0;
    if (name)
        o->ov_free(name);
    if (port)
        o->ov_output_const_port_free(port);
    return renamed;
}

/* Hands over an input by its name, or by its place where `by_name` is false. The request
   keeps the tensor. */
static enum qdq_code
set_input(const struct qdqi_openvino *o, const struct qdqi_openvino_request *r,
          const struct qdqi_input *input, bool by_name, size_t place,
          struct qdq_error *err)
{
    void *tensor = NULL;
    int type =
        input->dtype > 0 && (int)input->dtype < N_TYPES ? o->types[input->dtype] : 0;
    if (type == 0)
        return qdq_error_set(err, QDQ_RUN_FAILED, QDQ_AT_NOTHING, NULL,
                             "input '%s' has a type that is not handed to OpenVINO",
                             input->name);
    const struct ov_shape shape = {(int64_t)input->rank,
                                   (int64_t *)(uintptr_t)input->shape};
    enum qdq_code code =
        qdqi_openvino_check(o,
                            o->ov_tensor_create_from_host_ptr(
                                type, shape, (void *)(uintptr_t)input->data, &tensor),
                            "an input", err);
    if (!code) {
        int status =
            by_name ? o->ov_infer_request_set_tensor(r->request, input->name, tensor)
                    : o->ov_infer_request_set_input_tensor_by_index(r->request, place,
                                                                    tensor);
        code = qdqi_openvino_check(o, status, "an input", err);
    }
    if (tensor)
        o->ov_tensor_free(tensor);
    return code;
}

/* Hands over the inputs whose names OpenVINO does not know, in their order, to the
   inputs whose names the file does not have. */
static enum qdq_code
set_renamed(const struct qdqi_openvino *o, const struct qdqi_openvino_request *r,
            const struct qdqi_input *inputs, size_t n_inputs, struct qdq_error *err)
{
    size_t place = 0;
    for (size_t i = 0; i < n_inputs; i++) {
        if (has_input(o, r, inputs[i].name))
            continue;
        while (place < r->n_inputs && !is_renamed(o, r, place, inputs, n_inputs))
            place++;
        enum qdq_code code = set_input(o, r, &inputs[i], false, place++, err);
        if (code)
            return code;
    }
    return QDQ_OK;
}

enum qdq_code
qdqi_openvino_set_inputs(const struct qdqi_openvino *o,
                         const struct qdqi_openvino_request *request,
                         const struct qdqi_input *inputs, size_t n_inputs,
                         struct qdq_error *err)
{
    size_t n_known = 0;
    for (size_t i = 0; i < n_inputs; i++) {
        if (!has_input(o, request, inputs[i].name))
            continue;
        enum qdq_code code = set_input(o, request, &inputs[i], true, 0, err);
        if (code)
            return code;
        n_known++;
    }
    if (n_known == request->n_inputs)
        return QDQ_OK;
    /* An input that gets nothing would be that of an earlier run, whose memory is gone. */
    if (n_inputs != request->n_inputs)
        return qdq_error_set(err, QDQ_RUN_FAILED, QDQ_AT_NOTHING, NULL,
                             "OpenVINO's model has %zu inputs, not %zu",
                             request->n_inputs, n_inputs);
    return set_renamed(o, request, inputs, n_inputs, err);
}
