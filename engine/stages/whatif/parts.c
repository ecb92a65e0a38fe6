/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/whatif/parts.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_KEPT = 128 << 20 }; /* bytes that all memos together may keep by default */

/* --- states --------------------------------------------------------------- */

/* Mixes 64 bits so that each output bit depends on all (the final step of
   MurmurHash3). */
static uint64_t
mix(uint64_t x)
{
    x = (x ^ x >> 33) * 0xff51afd7ed558ccd;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53;
    return x ^ x >> 33;
}

/* Switches a FakeQuant. The state of a part is the exclusive or of the keys of the
   slots that are on, so it is the same again after a slot is switched on and off. */
void
qdqi_parts_switched(struct qdqi_parts *parts, size_t slot)
{
    parts->states[parts->split.part_of_slot[slot]] ^= parts->keys[slot];
}

void
qdqi_parts_rescaled(struct qdqi_parts *parts, size_t slot, bool is_on)
{
    if (is_on)
        qdqi_parts_switched(parts, slot);
    parts->keys[slot] = mix(parts->keys[slot] + 1);
    if (is_on)
        qdqi_parts_switched(parts, slot);
}

/* Returns the state of all parts up to and including p; it is never 0. */
static uint64_t
add_state(const struct qdqi_parts *parts, uint64_t before, size_t p)
{
    return mix(before + parts->states[p] + 1) | 1;
}

/* --- opening -------------------------------------------------------------- */

/* Returns whether tensors of this type can be passed from one session to the next
   without conversion. */
static bool
can_pass_on(enum qdqi_dtype dtype)
{
    return qdqi_dtype_size((int)dtype) > 0 && dtype != QDQI_STRING &&
           dtype != QDQI_FLOAT16 && dtype != QDQI_FLOAT64;
}

/*
 * Returns a dimension of a shape. An unknown size gets a unique name, because shape
 * inference passes through an operator of ours only when every size has a value or a
 * name.
 */
static Onnx__TensorShapeProto__Dimension *
dimension_of(int64_t size, size_t i, const char *name, struct qdqi_arena *arena)
{
    Onnx__TensorShapeProto__Dimension *dim = qdqi_arena_alloc(arena, sizeof *dim);
    if (!dim)
        return NULL;
    onnx__tensor_shape_proto__dimension__init(dim);
    if (size >= 0) {
        dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        dim->dim_value = size;
        return dim;
    }
    dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
    dim->dim_param = qdqi_arena_printf(arena, "%s/%zu", name, i);
    return dim->dim_param ? dim : NULL;
}

static Onnx__TypeProto *
type_of(const struct qdqi_output *declared, const char *name, struct qdqi_arena *arena)
{
    Onnx__TypeProto *type = qdqi_arena_alloc(arena, sizeof *type);
    Onnx__TypeProto__Tensor *tensor = qdqi_arena_alloc(arena, sizeof *tensor);
    Onnx__TensorShapeProto *shape = qdqi_arena_alloc(arena, sizeof *shape);
    if (!type || !tensor || !shape)
        return NULL;
    onnx__type_proto__init(type);
    onnx__type_proto__tensor__init(tensor);
    onnx__tensor_shape_proto__init(shape);
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = tensor;
    tensor->has_elem_type = 1;
    tensor->elem_type = (int)declared->dtype;
    if (declared->rank == 0) /* a scalar, or the rank is unknown */
        return type;
    tensor->shape = shape;
    shape->n_dim = declared->rank;
    shape->dim = qdqi_arena_array(arena, shape->n_dim, sizeof *shape->dim);
    for (size_t i = 0; shape->dim && i < shape->n_dim; i++)
        if (!(shape->dim[i] = dimension_of(declared->shape[i], i, name, arena)))
            return NULL;
    return shape->dim ? type : NULL;
}

/* Declares the type of each input that an earlier part computes, as that part's
   session reports it. Sets *ret to whether all of them can be passed on. */
static enum qdq_code
declare_inputs(struct qdqi_parts *parts, const struct qdqi_split_part *part, bool *ret,
               struct qdq_error *err)
{
    *ret = true;
    for (size_t i = 0; *ret && i < part->n_inputs; i++) {
        const struct qdqi_split_value *v = &part->inputs[i];
        struct qdqi_output declared;
        if (v->part == QDQI_NO_PART)
            continue;
        enum qdq_code code = qdqi_session_declared(parts->sessions[v->part], v->output,
                                                   parts->arena, &declared, err);
        if (code)
            return code;
        *ret = can_pass_on(declared.dtype);
        Onnx__ValueInfoProto *info = part->proto->graph->input[i];
        if (*ret && !(info->type = type_of(&declared, v->name, parts->arena)))
            return qdqi_no_memory(err);
    }
    return QDQ_OK;
}

/* Returns how many tensors of a part later parts or callers read: none where all of its nodes
   are dead. */
static size_t
n_values(const struct qdqi_parts *parts, size_t p)
{
    return parts->split.parts[p].proto->graph->n_output;
}

static enum qdq_code
open_sessions(struct qdqi_parts *parts, struct qdqi_runtime *runtime,
              const struct qdqi_session_options *options, bool *ret,
              struct qdq_error *err)
{
    struct qdqi_session_options one = *options;
    enum qdq_code code = QDQ_OK;
    one.one_of_many = parts->split.n_parts > 1;
    *ret = true;
    for (size_t p = 0; !code && *ret && p < parts->split.n_parts; p++) {
        const struct qdqi_split_part *part = &parts->split.parts[p];
        if (n_values(parts, p) == 0)
            continue;
        code = declare_inputs(parts, part, ret, err);
        if (!code && *ret)
            code = qdqi_session_open(runtime, parts->source, part->proto, &one,
                                     &parts->sessions[p], err);
    }
    return code;
}

static enum qdq_code
make_room(struct qdqi_parts *parts, struct qdq_error *err)
{
    struct qdqi_arena *arena = parts->arena;
    size_t n = parts->split.n_parts, most = 0;
    for (size_t p = 0; p < n; p++)
        if (parts->split.parts[p].n_inputs > most)
            most = parts->split.parts[p].n_inputs;
    parts->sessions = qdqi_arena_array(arena, n, sizeof *parts->sessions);
    parts->states = qdqi_arena_array(arena, n, sizeof *parts->states);
    parts->keys = qdqi_arena_array(arena, parts->split.n_slots, sizeof *parts->keys);
    parts->forgets = qdqi_arena_array(arena, n, sizeof *parts->forgets);
    parts->outputs = qdqi_arena_array(arena, n, sizeof *parts->outputs);
    parts->results =
        qdqi_arena_array(arena, parts->split.n_outputs, sizeof *parts->results);
    parts->inputs = qdqi_arena_array(arena, most, sizeof *parts->inputs);
    if (!parts->sessions || !parts->states || !parts->keys || !parts->forgets ||
        !parts->outputs || !parts->results || !parts->inputs)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < parts->split.n_slots; i++)
        parts->keys[i] = mix(i + 1);
    return QDQ_OK;
}

enum qdq_code
qdqi_parts_split(const struct qdq_model *source, const Onnx__ModelProto *proto,
                 size_t most, const struct qdqi_fakes *fakes, struct qdqi_arena *arena,
                 struct qdqi_parts *ret, struct qdq_error *err)
{
    *ret = (struct qdqi_parts){
        .arena = arena, .source = source, .proto = proto, .most_kept = MAX_KEPT};
    enum qdq_code code =
        qdqi_split_model(proto, most, fakes->n, arena, &ret->split, err);
    return code ? code : make_room(ret, err);
}

/* Opens a session for each part. Falls back to a single part when the model cannot
   be split. */
enum qdq_code
qdqi_parts_open(struct qdqi_parts *parts, struct qdqi_runtime *runtime,
                const struct qdqi_session_options *options, struct qdq_error *err)
{
    struct qdq_error why = {0};
    bool can = true;
    enum qdq_code code = open_sessions(parts, runtime, options, &can, &why);
    if (parts->split.n_parts > 1 && (code == QDQ_RUN_FAILED || !can)) {
        qdqi_parts_close(parts);
        code = qdqi_parts_split(parts->source, parts->proto, 1, options->fakes,
                                parts->arena, parts, err);
        if (!code)
            code = open_sessions(parts, runtime, options, &can, err);
    } else if (code) {
        *err = why;
    }
    if (code)
        qdqi_parts_close(parts);
    return code;
}

void
qdqi_parts_close(struct qdqi_parts *parts)
{
    for (size_t p = 0; parts->sessions && p < parts->split.n_parts; p++)
        qdqi_session_close(&parts->sessions[p]);
}

/* --- kept outputs -------------------------------------------------------- */

static void
forget(struct qdqi_parts *parts, struct qdqi_memo *memo, size_t p)
{
    struct qdqi_memo_row *row = &memo->rows[p];
    for (size_t i = 0; row->values && row->room && i < n_values(parts, p); i++) {
        parts->kept -= row->room[i];
        row->room[i] = 0;
        free((void *)(uintptr_t)row->values[i].data);
        row->values[i].data = NULL;
    }
    row->state = 0;
}

void
qdqi_memo_clear(struct qdqi_parts *parts, struct qdqi_memo *memo)
{
    for (size_t p = 0; memo->rows && p < parts->split.n_parts; p++)
        forget(parts, memo, p);
}

static size_t
bytes_of(const struct qdqi_output *value)
{
    return value->data ? value->n * qdqi_dtype_size((int)value->dtype) : 0;
}

static enum qdq_code
keep_value(struct qdqi_parts *parts, const struct qdqi_output *value,
           struct qdqi_output *to, size_t *room, struct qdq_error *err)
{
    size_t size = bytes_of(value);
    void *data = (void *)(uintptr_t)to->data;
    int64_t *shape = (int64_t *)(uintptr_t)to->shape;
    if (!data || size > *room) {
        free(data);
        parts->kept += size - *room;
        *room = size;
        to->data = data = malloc(size + !size);
    }
    if (!shape || value->rank != to->rank)
        shape = qdqi_arena_array(parts->arena, value->rank, sizeof *shape);
    if (!data || !shape)
        return qdqi_no_memory(err);
    if (size)
        memcpy(data, value->data, size);
    if (value->rank)
        memcpy(shape, value->shape, value->rank * sizeof *shape);
    *to = *value;
    to->data = data;
    to->shape = shape;
    return QDQ_OK;
}

/* Returns by how many bytes the memo grows if it keeps the outputs of the part's
   last run. */
static size_t
growth(const struct qdqi_parts *parts, const struct qdqi_memo_row *row, size_t p)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n_values(parts, p); i++) {
        size_t size = bytes_of(&parts->outputs[p][i]);
        bytes += size > row->room[i] ? size - row->room[i] : 0;
    }
    return bytes;
}

static enum qdq_code
keep(struct qdqi_parts *parts, struct qdqi_memo *memo, size_t p, uint64_t state,
     struct qdq_error *err)
{
    struct qdqi_memo_row *row = &memo->rows[p];
    size_t n = n_values(parts, p);
    enum qdq_code code = QDQ_OK;
    row->state = 0;
    if (parts->forgets[p] || (n > 0 && !parts->outputs[p]))
        return QDQ_OK;
    if (!row->values) {
        row->room = qdqi_arena_array(parts->arena, n, sizeof *row->room);
        row->values = qdqi_arena_array(parts->arena, n, sizeof *row->values);
        if (!row->values || !row->room)
            return qdqi_no_memory(err);
    }
    if (parts->kept + growth(parts, row, p) > parts->most_kept) {
        forget(parts, memo, p);
        return QDQ_OK;
    }
    for (size_t i = 0; !code && i < n; i++)
        code = keep_value(parts, &parts->outputs[p][i], &row->values[i], &row->room[i],
                          err);
    if (!code)
        row->state = state;
    return code;
}

static size_t
bytes_of_row(const struct qdqi_parts *parts, const struct qdqi_memo *memo, size_t p)
{
    size_t bytes = 0;
    for (size_t i = 0; memo->rows[p].values && i < n_values(parts, p); i++)
        bytes += memo->rows[p].room[i];
    return bytes;
}

void
qdqi_parts_expect(struct qdqi_parts *parts, struct qdqi_memo *memo, size_t memos)
{
    size_t n = parts->split.n_parts;
    memset(parts->forgets, 0, n * sizeof *parts->forgets);
    while (memo->rows && parts->kept > parts->most_kept / (memos + !memos)) {
        size_t largest = 0;
        for (size_t p = 1; p < n; p++)
            if (bytes_of_row(parts, memo, p) > bytes_of_row(parts, memo, largest))
                largest = p;
        if (bytes_of_row(parts, memo, largest) == 0)
            return;
        forget(parts, memo, largest);
        parts->forgets[largest] = true;
    }
}

/* --- running -------------------------------------------------------------- */

/* Returns the first part that has to run, and sets *ret_state to the state of the
   parts before it. */
static size_t
first_changed(const struct qdqi_parts *parts, const struct qdqi_memo *memo,
              uint64_t *ret_state)
{
    size_t p = 0;
    uint64_t state = 0;
    for (; memo && p + 1 < parts->split.n_parts; p++) {
        uint64_t next = add_state(parts, state, p);
        if (memo->rows[p].state != next)
            break;
        state = next;
    }
    *ret_state = state;
    return p;
}

/* Keeps a result only when it occurs for the second time: most results occur once. */
static enum qdq_code
keep_or_note(struct qdqi_parts *parts, struct qdqi_memo *memo, size_t p, uint64_t state,
             bool settled, struct qdq_error *err)
{
    struct qdqi_memo_row *row = &memo->rows[p];
    if (settled || row->seen == state)
        return keep(parts, memo, p, state, err);
    row->seen = state;
    return QDQ_OK;
}

static struct qdqi_input
input_of(const struct qdqi_output *value, const char *name)
{
    return (struct qdqi_input){.name = name,
                               .dtype = value->dtype,
                               .rank = value->rank,
                               .shape = value->shape,
                               .data = value->data,
                               .size = bytes_of(value)};
}

static const struct qdqi_input *
find_input(const struct qdqi_parts *parts, const struct qdqi_input *inputs,
           const char *name)
{
    for (size_t i = 0; i < parts->source->info.n_inputs; i++)
        if (strcmp(inputs[i].name, name) == 0)
            return &inputs[i];
    return NULL;
}

static enum qdq_code
run_part(struct qdqi_parts *parts, size_t p, const struct qdqi_input *inputs,
         struct qdq_error *err)
{
    const struct qdqi_split_part *part = &parts->split.parts[p];
    size_t n = 0, n_outputs;
    parts->outputs[p] = NULL;
    if (!parts->sessions[p])
        return QDQ_OK;
    for (size_t i = 0; i < part->n_inputs; i++) {
        const struct qdqi_split_value *v = &part->inputs[i];
        const struct qdqi_input *input =
            v->part == QDQI_NO_PART ? find_input(parts, inputs, v->name) : NULL;
        if (v->part != QDQI_NO_PART)
            parts->inputs[n++] = input_of(&parts->outputs[v->part][v->output], v->name);
        else if (input)
            parts->inputs[n++] = *input;
    }
    return qdqi_session_run(parts->sessions[p], parts->inputs, n, &parts->outputs[p],
                            &n_outputs, err);
}

enum qdq_code
qdqi_parts_run(struct qdqi_parts *parts, struct qdqi_memo *memo, bool settled,
               const struct qdqi_input *inputs, const struct qdqi_output **ret,
               size_t *ret_n, struct qdq_error *err)
{
    size_t n = parts->split.n_parts;
    enum qdq_code code = QDQ_OK;
    if (memo && !memo->rows &&
        !(memo->rows = qdqi_arena_array(parts->arena, n, sizeof *memo->rows)))
        return qdqi_no_memory(err);
    uint64_t state;
    size_t first = first_changed(parts, memo, &state);
    for (size_t p = 0; p < first; p++)
        parts->outputs[p] = memo->rows[p].values;
    for (size_t p = first; !code && p < n; p++) {
        state = add_state(parts, state, p);
        code = run_part(parts, p, inputs, err);
        if (!code && memo && p + 1 < n)
            code = keep_or_note(parts, memo, p, state, settled, err);
    }
    for (size_t i = 0; !code && i < parts->split.n_outputs; i++) {
        const struct qdqi_split_value *v = &parts->split.outputs[i];
        parts->results[i] = parts->outputs[v->part][v->output];
    }
    *ret = parts->results;
    *ret_n = parts->split.n_outputs;
    return code;
}
