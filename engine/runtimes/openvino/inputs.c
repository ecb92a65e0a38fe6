/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inputs of a model in OpenVINO. These are not always those of the file: OpenVINO leaves out
 * an input that no node reads, and an input whose only reader is an Identity or a Dropout gets
 * the name of that node's output in the place of its own.
 */
#include "config.h"
#include "runtimes/openvino/library.h"

#include <string.h>

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
