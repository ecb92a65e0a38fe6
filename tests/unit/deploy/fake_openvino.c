/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A C library of OpenVINO without OpenVINO. It loads any model but one that begins with
 * "refused". One that has "crash here" in it ends the process; "hang here" is read for
 * ever, and so is "hang when quantized" with pairs. A loaded model has the input "x", and the output of a run is a copy of it. The
 * profile of a model that was loaded with PERF_COUNT has two nodes, with means over all runs. A program that loads this
 * library itself has the switches below.
 */
#include "config.h"
#include "runtimes/openvino/library.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tensor {
    int type;
    struct ov_shape shape;
    void *data; /* borrowed */
};

#define FUNCTION(type, name, arguments) \
    __attribute__((visibility("default"))) type name arguments;
OPENVINO_FUNCTIONS
#undef FUNCTION

/* The numbers of types are those of the inputs of the model that has all of them, and one
   more. */
enum { FLOAT32 = 1, EXECUTED = 2 };

/* The precision that it chooses by itself for layers in floating point. */
__attribute__((visibility("default"))) extern const char *fake_openvino_own;
const char *fake_openvino_own = "f32";
/* Called before each run, with the precision of the model, and before one is loaded, with NULL. */
__attribute__((visibility("default"))) extern void (*fake_openvino_on_work)(
    const char *precision);
void (*fake_openvino_on_work)(const char *precision);

/* Whether models are read and not compiled. */
__attribute__((visibility("default"))) extern bool fake_openvino_refuses;
bool fake_openvino_refuses;

struct compiled {
    const char *precision;
    bool profiled;
};

/* A request is its input, which is also its output. */
struct request {
    struct tensor tensor; /* must be first */
    const char *precision;
    bool profiled;
    int64_t runs;
};

static int
give(void **ret, size_t size)
{
    *ret = calloc(1, size);
    return *ret ? 0 : -1;
}

int
ov_get_openvino_version(struct ov_version *version)
{
    *version = (struct ov_version){"2000.0 (a fake)", "fake"};
    return 0;
}

void
ov_version_free(struct ov_version *version)
{
    *version = (struct ov_version){0};
}

const char *
ov_get_error_info(int status)
{
    return status ? "an error" : "none";
}

const char *
ov_get_last_err_msg(void)
{
    return "Exception from somewhere:\nthe fake\nrefuses it\n";
}

void
ov_free(const char *text)
{
    free((void *)(uintptr_t)text);
}

int
ov_core_create(void **ret)
{
    return give(ret, 1);
}

void
ov_core_free(void *core)
{
    free(core);
}

int
ov_core_get_property(const void *core, const char *device, const char *name, char **ret)
{
    (void)core;
    (void)device;
    return (*ret = strdup(name)) ? 0 : -1;
}

/* An address where nothing is. */
static volatile uintptr_t nowhere = 8;

static bool
has(const char *bytes, size_t size, const char *text)
{
    return memmem(bytes, size, text, strlen(text)) != NULL;
}

int
ov_core_read_model_from_memory_buffer(const void *core, const char *bytes, size_t size,
                                      const void *weights, void **ret)
{
    static const char refused[] = "refused";
    const size_t n = sizeof refused - 1;
    (void)core;
    (void)weights;
    if (has(bytes, size, "crash here"))
        *(volatile char *)nowhere = 0;
    while (has(bytes, size, "hang here") || (has(bytes, size, "hang when quantized") &&
                                             has(bytes, size, "QuantizeLinear")))
        sleep(1);
    return size >= n && memcmp(bytes, refused, n) == 0 ? -1 : give(ret, 1);
}

int
ov_core_compile_model(const void *core, const void *model, const char *device, size_t n,
                      void **ret, ...)
{
    va_list properties;
    (void)core;
    (void)model;
    (void)device;
    if (fake_openvino_on_work)
        fake_openvino_on_work(NULL);
    if (fake_openvino_refuses || give(ret, sizeof(struct compiled)))
        return -1;
    struct compiled *compiled = *ret;
    compiled->precision = fake_openvino_own;
    va_start(properties, ret);
    for (size_t i = 0; i < n; i += 2) {
        const char *name = va_arg(properties, const char *);
        const char *value = va_arg(properties, const char *);
        if (strcmp(name, "INFERENCE_PRECISION_HINT") == 0)
            compiled->precision = value;
        if (strcmp(name, "PERF_COUNT") == 0)
            compiled->profiled = strcmp(value, "YES") == 0;
    }
    va_end(properties);
    return 0;
}

void
ov_model_free(void *model)
{
    free(model);
}

int
ov_model_const_input_by_name(const void *model, const char *name, void **ret)
{
    (void)model;
    if (give(ret, sizeof(int)))
        return -1;
    *(int *)*ret = 1 + (int)strtol(name + 1, NULL, 10);
    return 0;
}

int
ov_model_inputs_size(const void *model, size_t *ret)
{
    (void)model;
    *ret = 1;
    return 0;
}

int
ov_model_outputs_size(const void *model, size_t *ret)
{
    (void)model;
    *ret = 1;
    return 0;
}

int
ov_port_get_element_type(const void *port, int *ret)
{
    *ret = *(const int *)port;
    return 0;
}

void
ov_output_const_port_free(void *port)
{
    free(port);
}

int
ov_compiled_model_create_infer_request(const void *model, void **ret)
{
    if (give(ret, sizeof(struct request)))
        return -1;
    const struct compiled *compiled = model;
    ((struct request *)*ret)->precision = compiled->precision;
    ((struct request *)*ret)->profiled = compiled->profiled;
    return 0;
}

int
ov_compiled_model_get_property(const void *model, const char *name, char **ret)
{
    (void)name;
    return (*ret = strdup(((const struct compiled *)model)->precision)) ? 0 : -1;
}

int
ov_compiled_model_input_by_name(const void *model, const char *name, void **ret)
{
    (void)model;
    return strcmp(name, "x") == 0 ? give(ret, sizeof(int)) : -1;
}

int
ov_compiled_model_input_by_index(const void *model, size_t i, void **ret)
{
    (void)model;
    return i == 0 ? give(ret, sizeof(int)) : -1;
}

int
ov_port_get_any_name(const void *port, char **ret)
{
    (void)port;
    return (*ret = strdup("x")) ? 0 : -1;
}

void
ov_compiled_model_free(void *model)
{
    free(model);
}

static int
copy_tensor(struct tensor *to, const struct tensor *from)
{
    size_t size = (size_t)from->shape.rank * sizeof(int64_t);
    int64_t *dims = malloc(size + 1);
    if (!dims)
        return -1;
    if (size)
        memcpy(dims, from->shape.dims, size);
    *to = *from;
    to->shape.dims = dims;
    return 0;
}

int
ov_infer_request_set_tensor(void *request, const char *name, const void *tensor)
{
    struct tensor *to = request;
    if (strcmp(name, "x") != 0)
        return -1;
    free(to->shape.dims);
    *to = (struct tensor){0};
    return copy_tensor(to, tensor);
}

int
ov_infer_request_set_input_tensor_by_index(void *request, size_t i, const void *tensor)
{
    return i == 0 ? ov_infer_request_set_tensor(request, "x", tensor) : -1;
}

/* Reads the whole input, so that one that is not there any more is noticed. */
int
ov_infer_request_infer(void *request)
{
    const struct tensor *t = request;
    const volatile uint8_t *from = t->data;
    size_t n = 0;
    ((struct request *)request)->runs++;
    if (fake_openvino_on_work)
        fake_openvino_on_work(((const struct request *)request)->precision);
    ov_tensor_get_size(t, &n);
    for (size_t i = 0; i < n; i++)
        (void)from[i];
    return t->type ? 0 : -1;
}

int
ov_infer_request_get_output_tensor_by_index(const void *request, size_t i, void **ret)
{
    (void)i;
    return give(ret, sizeof(struct tensor)) || copy_tensor(*ret, request) ? -1 : 0;
}

int
ov_infer_request_get_profiling_info(const void *request, struct ov_profiling_list *ret)
{
    static struct ov_profiled rows[] = {
        {EXECUTED, 0, 0, "node", "fake_I8", "Identity"},
        {EXECUTED, 0, 0, "short", "fake_f32", "Reorder"},
    };
    const struct request *r = request;
    if (!r->profiled || r->runs == 0)
        return -1;
    /* The first run takes longer; a mean below a microsecond is that of no run. */
    rows[0].real_us = (3000 + 1500 * (r->runs - 1)) / r->runs;
    rows[1].real_us = 1 / r->runs;
    rows[1].status = rows[1].real_us > 0 ? EXECUTED : 0;
    *ret = (struct ov_profiling_list){rows, 2};
    return 0;
}

void
ov_profiling_info_list_free(struct ov_profiling_list *list)
{
    *list = (struct ov_profiling_list){0};
}

void
ov_infer_request_free(void *request)
{
    struct tensor *t = request;
    free(t->shape.dims);
    free(t);
}

int
ov_tensor_create_from_host_ptr(int type, struct ov_shape shape, void *data, void **ret)
{
    const struct tensor made = {type, shape, data};
    return give(ret, sizeof made) || copy_tensor(*ret, &made) ? -1 : 0;
}

int
ov_tensor_get_element_type(const void *tensor, int *ret)
{
    *ret = ((const struct tensor *)tensor)->type;
    return 0;
}

int
ov_tensor_get_shape(const void *tensor, struct ov_shape *ret)
{
    struct tensor copy;
    if (copy_tensor(&copy, tensor))
        return -1;
    *ret = copy.shape;
    return 0;
}

int
ov_tensor_get_size(const void *tensor, size_t *ret)
{
    const struct tensor *t = tensor;
    *ret = 1;
    for (int64_t i = 0; i < t->shape.rank; i++)
        *ret *= (size_t)t->shape.dims[i];
    return 0;
}

int
ov_tensor_data(const void *tensor, void **ret)
{
    *ret = ((const struct tensor *)tensor)->data;
    return 0;
}

void
ov_tensor_free(void *tensor)
{
    struct tensor *t = tensor;
    free(t->shape.dims);
    free(t);
}

int
ov_shape_free(struct ov_shape *shape)
{
    free(shape->dims);
    *shape = (struct ov_shape){0};
    return 0;
}
