/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "runner/tensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OUTPUTS = 4096, MOST_RANK = 64, MOST_FILE_NAME = 64 };

/* The most bytes of all outputs of one answer. */
static const uint64_t MOST_BYTES = UINT64_C(2) << 30;

/* The types of elements: the number in ONNX, the name in the protocol, the bytes of one. */
static const struct element {
    int dtype;
    const char *name;
    size_t size;
} elements[] = {
    {1, "float32", 4},   {2, "uint8", 1},    {3, "int8", 1},    {4, "uint16", 2},
    {5, "int16", 2},     {6, "int32", 4},    {7, "int64", 8},   {9, "bool", 1},
    {10, "float16", 2},  {11, "float64", 8}, {12, "uint32", 4}, {13, "uint64", 8},
    {16, "bfloat16", 2},
};

static const struct element *
find_element(int dtype, const char *name)
{
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
        if (name ? !strcmp(elements[i].name, name) : elements[i].dtype == dtype)
            return &elements[i];
    return NULL;
}

static enum qdq_code
fail_memory(struct qdq_error *err)
{
    return qdq_error_set(err, QDQ_NO_MEMORY, QDQ_AT_NOTHING, NULL, "out of memory");
}

/* --- inputs ------------------------------------------------------------------- */

static void
free_tensor(struct qdq_tensor *t)
{
    free((char *)(uintptr_t)t->name);
    free((int64_t *)(uintptr_t)t->shape);
    free((void *)(uintptr_t)t->data);
    *t = (struct qdq_tensor){0};
}

static void *
copy_bytes(const void *from, size_t size)
{
    void *copy = malloc(size + 1);
    if (copy && size)
        memcpy(copy, from, size);
    return copy;
}

static bool
copy_tensor(const struct qdq_tensor *from, struct qdq_tensor *ret)
{
    *ret = *from;
    ret->name = strdup(from->name);
    ret->shape = copy_bytes(from->shape, from->rank * sizeof *from->shape);
    ret->data = copy_bytes(from->data, from->size);
    if (ret->name && ret->shape && ret->data)
        return true;
    free_tensor(ret);
    return false;
}

static bool
is_same(const struct qdq_tensor *a, const struct qdq_tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank && a->size == b->size &&
           !strcmp(a->name, b->name) &&
           (!a->rank || !memcmp(a->shape, b->shape, a->rank * sizeof *a->shape)) &&
           (!a->size || !memcmp(a->data, b->data, a->size));
}

void
sent_inputs_fini(struct sent_inputs *sent)
{
    for (size_t i = 0; i < sent->n; i++)
        free_tensor(&sent->list[i].tensor);
    free(sent->list);
    sent->list = NULL;
    sent->n = 0;
}

/* Takes an input over from those that were sent before, or writes its file. */
static enum qdq_code
send_input(struct program *p, struct sent_inputs *sent, const struct qdq_tensor *input,
           struct sent_input *ret, struct qdq_error *err)
{
    json_t *name = json_string(input->name);
    const bool is_text = name != NULL;
    json_decref(name);
    if (!find_element(input->dtype, NULL) || !is_text)
        return qdq_error_set(err, QDQ_RUN_FAILED, QDQ_AT_NOTHING, NULL,
                             "the input '%.64s' has %s that no runner gets",
                             input->name,
                             is_text ? "a type" : "a name, which is not UTF-8,");
    for (size_t i = 0; i < sent->n; i++)
        if (sent->list[i].tensor.name && is_same(&sent->list[i].tensor, input)) {
            *ret = sent->list[i];
            sent->list[i].tensor = (struct qdq_tensor){0};
            return QDQ_OK;
        }
    if (!copy_tensor(input, &ret->tensor))
        return fail_memory(err);
    snprintf(ret->file, sizeof ret->file, "in-%" PRIu64 ".bin", ++sent->next);
    return runner_folder_write(&p->folder, ret->file, input->data, input->size, err);
}

/* Forgets the inputs of before that were not taken over. */
static void
drop_former(struct program *p, struct sent_inputs *sent)
{
    for (size_t i = 0; i < sent->n; i++)
        if (sent->list[i].tensor.name)
            runner_folder_drop(&p->folder, sent->list[i].file);
    sent_inputs_fini(sent);
}

static json_t *
describe_input(const struct sent_input *input)
{
    const struct qdq_tensor *t = &input->tensor;
    json_t *shape = json_array();
    for (size_t i = 0; i < t->rank; i++)
        json_array_append_new(shape, json_integer(t->shape[i]));
    return json_pack("{s:s, s:s, s:o, s:s}", "name", t->name, "type",
                     find_element(t->dtype, NULL)->name, "shape", shape, "file",
                     input->file);
}

enum qdq_code
tensors_send(struct program *p, struct sent_inputs *sent,
             const struct qdq_tensor *inputs, size_t n, json_t **ret,
             struct qdq_error *err)
{
    struct sent_input *list = calloc(n + 1, sizeof *list);
    json_t *json = json_array();
    enum qdq_code code = list && json ? QDQ_OK : fail_memory(err);
    size_t i = 0;
    for (; !code && i < n; i++) {
        code = send_input(p, sent, &inputs[i], &list[i], err);
        if (!code && json_array_append_new(json, describe_input(&list[i])))
            code = fail_memory(err);
    }
    drop_former(p, sent);
    sent->list = list;
    sent->n = list ? i : 0;
    if (code)
        json_decref(json);
    else
        *ret = json;
    return code;
}

/* --- outputs ------------------------------------------------------------------ */

void
received_fini(struct received *received)
{
    for (size_t i = 0; received->list && i < received->n; i++)
        free_tensor(&received->list[i]);
    free(received->list);
    *received = (struct received){0};
}

static bool
is_file_name(const char *name)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789._-";
    const size_t n = strlen(name);
    return n > 0 && n <= MOST_FILE_NAME && *name != '.' && strspn(name, letters) == n;
}

/* Reads the shape. *ret_bytes is what the elements take; false: it is no shape, or too large. */
static bool
read_shape(const json_t *list, size_t each, struct qdq_tensor *ret, uint64_t *ret_bytes)
{
    const size_t rank = json_array_size(list);
    uint64_t bytes = each;
    if (!json_is_array(list) || rank > MOST_RANK)
        return false;
    int64_t *shape = calloc(rank + 1, sizeof *shape);
    ret->shape = shape;
    ret->rank = rank;
    for (size_t i = 0; shape && i < rank; i++) {
        const json_t *value = json_array_get(list, i);
        shape[i] = json_integer_value(value);
        if (!json_is_integer(value) || shape[i] < 0 ||
            __builtin_mul_overflow(bytes, (uint64_t)shape[i], &bytes))
            return false;
    }
    *ret_bytes = bytes;
    return shape != NULL;
}

static enum qdq_code
receive_output(struct program *p, const json_t *json, uint64_t *left,
               struct qdq_tensor *ret, struct qdq_error *err)
{
    const char *name = json_string_value(json_object_get(json, "name"));
    const json_t *type = json_object_get(json, "type");
    const char *file = json_string_value(json_object_get(json, "file"));
    const struct element *element = find_element(0, json_string_value(type));
    char why[160];
    uint64_t bytes;
    void *data;
    if (!name)
        return program_fail(p, err, "answered an output without a name");
    if (json_is_null(type))
        return QDQ_OK;
    if (!json_is_string(type) || !element)
        return program_fail(p, err, "answered the output '%.64s' without a known type",
                            name);
    if (!read_shape(json_object_get(json, "shape"), element->size, ret, &bytes))
        return program_fail(p, err, "answered the output '%.64s' without a shape",
                            name);
    if (bytes > *left)
        return program_fail(p, err, "answered outputs of more than 2 GiB");
    if (!file || !is_file_name(file))
        return program_fail(p, err, "answered the output '%.64s' without a file", name);
    if (!runner_folder_read(&p->folder, file, (size_t)bytes, &data, why))
        return program_fail(p, err, "answered the output '%.64s' badly: %s", name, why);
    *left -= bytes;
    ret->dtype = element->dtype;
    ret->data = data;
    ret->size = (size_t)bytes;
    return QDQ_OK;
}

enum qdq_code
tensors_receive(struct program *p, const json_t *list, struct received *ret,
                struct qdq_error *err)
{
    const size_t n = json_array_size(list);
    uint64_t left = MOST_BYTES;
    enum qdq_code code = QDQ_OK;
    if (!json_is_array(list) || n > MOST_OUTPUTS)
        return program_fail(p, err, "answered no list of outputs, or too long a one");
    *ret = (struct received){calloc(n + 1, sizeof *ret->list), n};
    if (!ret->list)
        return fail_memory(err);
    for (size_t i = 0; !code && i < n; i++)
        code = receive_output(p, json_array_get(list, i), &left, &ret->list[i], err);
    for (size_t i = 0; i < n; i++) {
        const char *file =
            json_string_value(json_object_get(json_array_get(list, i), "file"));
        if (file && is_file_name(file))
            runner_folder_drop(&p->folder, file);
    }
    if (code)
        received_fini(ret);
    return code;
}
