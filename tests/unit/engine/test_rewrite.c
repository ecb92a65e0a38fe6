/* SPDX-License-Identifier: Apache-2.0 */
/* The quantized model: its pairs, names and versions, and everything that must not
   change. */
#include "config.h"

#include "quantized.h"
#include "qdq/targets.h"

#include <math.h>

static struct qdq_model *
quantize(const struct builder *b)
{
    struct qdq_model *result = NULL;
    struct qdq_error err = {0};
    int fd = builder_file(b);
    enum qdq_code code = quantize_fd(fd, &result, &err);
    ck_assert_msg(code == QDQ_OK, "%s", err.text);
    close(fd);
    return result;
}

static const Onnx__NodeProto *
find_node(const struct qdq_model *m, const char *name)
{
    for (size_t i = 0; i < m->graph.n_nodes; i++)
        if (strcmp(m->graph.nodes[i].name, name) == 0)
            return m->graph.nodes[i].proto;
    ck_abort_msg("there is no node %s", name);
    return NULL;
}

static const Onnx__TensorProto *
find_initializer(const struct qdq_model *m, const char *name)
{
    const struct qdqi_tensor *t = qdqi_map_get(m->graph.tensors, name);
    ck_assert_msg(t && t->constant, "there is no initializer %s", name);
    return t->constant;
}

UNIT_TEST(pairs_stand_on_inputs_and_weights)
{
    struct builder b;
    builder_two_convs(&b, 13);
    struct qdq_model *m = quantize(&b);
    static const char *const ops[] = {"QuantizeLinear",
                                      "DequantizeLinear",
                                      "QuantizeLinear",
                                      "DequantizeLinear",
                                      "Conv",
                                      "Relu",
                                      "QuantizeLinear",
                                      "DequantizeLinear",
                                      "QuantizeLinear",
                                      "DequantizeLinear",
                                      "Conv"};
    ck_assert_uint_eq(m->graph.n_nodes, 11);
    for (size_t i = 0; i < 11; i++)
        ck_assert_str_eq(m->graph.nodes[i].proto->op_type, ops[i]);
    const Onnx__NodeProto *conv = find_node(m, "conv1");
    ck_assert_str_eq(conv->input[0], "x_DequantizeLinear_Output");
    ck_assert_str_eq(conv->input[1], "w_DequantizeLinear_Output");
    ck_assert_str_eq(conv->input[2], "bias");
    const Onnx__TensorProto *scale = find_initializer(m, "x_scale");
    float value;
    memcpy(&value, scale->raw_data.data, sizeof value);
    ck_assert_uint_eq(scale->n_dims, 0);
    ck_assert_float_eq(value, 2 / 127.0f);
    const Onnx__TensorProto *zero = find_initializer(m, "w_zero_point");
    ck_assert_int_eq(zero->data_type, QDQI_INT8);
    ck_assert_int_eq(zero->dims[0], 4);
    ck_assert_int_eq(qdqi_node_int(find_node(m, "w_QuantizeLinear"), "axis", -9), 0);
    ck_assert_ptr_null(qdqi_node_attribute(find_node(m, "x_QuantizeLinear"), "axis"));
    builder_close(&b, &m);
}

UNIT_TEST(new_names_avoid_existing_ones)
{
    struct builder b;
    builder_two_convs(&b, 13);
    builder_node(&b, "Relu", "x_QuantizeLinear", "x", "x_scale");
    builder_node(&b, "Relu", "extra", "x_scale", "x_DequantizeLinear_Output");
    /* opening the model checks that names are unique */
    struct qdq_model *m = quantize(&b);
    ck_assert_str_eq(find_node(m, "conv1")->input[0], "x_DequantizeLinear_Output_1");
    find_initializer(m, "x_scale_1");
    find_node(m, "x_QuantizeLinear_1");
    builder_close(&b, &m);
}

UNIT_TEST(duplicate_node_names_get_a_suffix)
{
    struct builder b;
    builder_two_convs(&b, 13);
    b.nodes[2]->name = b.nodes[0]->name;
    struct qdq_model *m = quantize(&b);
    ck_assert_str_eq(find_node(m, "conv1")->output[0], "a");
    ck_assert_str_eq(find_node(m, "conv1_1")->output[0], "y");
    builder_close(&b, &m);
}

UNIT_TEST(old_ir_versions_are_raised)
{
    struct builder b;
    builder_two_convs(&b, 13);
    b.model.ir_version = 3;
    builder_input(&b, "w", QDQI_FLOAT32);
    builder_input(&b, "w2", QDQI_FLOAT32);
    builder_input(&b, "bias", QDQI_FLOAT32);
    struct qdq_model *m = quantize(&b);
    ck_assert_int_eq(m->proto->ir_version, 4);
    ck_assert_uint_eq(m->proto->graph->n_input, 1);
    builder_close(&b, &m);
}

UNIT_TEST(metadata_is_replaced_not_doubled)
{
    struct builder b;
    Onnx__StringStringEntryProto mine, other, *entries[] = {&mine, &other};
    builder_two_convs(&b, 13);
    onnx__string_string_entry_proto__init(&mine);
    onnx__string_string_entry_proto__init(&other);
    mine.key = qdqi_arena_strdup(b.arena, "qdqd.source_model");
    mine.value = qdqi_arena_strdup(b.arena, "old");
    other.key = qdqi_arena_strdup(b.arena, "author");
    other.value = qdqi_arena_strdup(b.arena, "somebody");
    b.model.metadata_props = entries;
    b.model.n_metadata_props = 2;
    struct qdq_model *m = quantize(&b);
    static const char *const want[][2] = {{"author", "somebody"},
                                          {"qdqd.version", PACKAGE_VERSION},
                                          {"qdqd.source_model", "sha256:00"}};
    ck_assert_uint_eq(m->proto->n_metadata_props, 3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(m->proto->metadata_props[i]->key, want[i][0]);
        ck_assert_str_eq(m->proto->metadata_props[i]->value, want[i][1]);
    }
    builder_close(&b, &m);
}

UNIT_TEST(fields_that_the_schema_lacks_survive)
{
    struct builder b;
    uint8_t bytes[] =
        "\x05hello"; /* a length-delimited payload, as protobuf-c keeps it */
    ProtobufCMessageUnknownField unknown = {/* a tag that no version of ONNX has */
                                            .tag = 900,
                                            .wire_type = 2,
                                            .len = 6,
                                            .data = bytes};
    builder_two_convs(&b, 13);
    b.nodes[0]->base.n_unknown_fields = 1;
    b.nodes[0]->base.unknown_fields = &unknown;
    struct qdq_model *m = quantize(&b);
    const Onnx__NodeProto *conv = find_node(m, "conv1");
    ck_assert_uint_eq(conv->base.n_unknown_fields, 1);
    ck_assert_uint_eq(conv->base.unknown_fields[0].tag, 900);
    ck_assert_int_eq(memcmp(conv->base.unknown_fields[0].data, bytes, 6), 0);
    builder_close(&b, &m);
}

UNIT_TEST(weights_are_bit_for_bit_what_they_were)
{
    struct builder b;
    struct qdqi_constant before, after;
    struct qdq_model *source = NULL;
    builder_two_convs(&b, 13);
    struct qdq_model *m = quantize(&b);
    ck_assert_int_eq(builder_open(&b, &source, NULL), 0);
    ck_assert_uint_gt(m->bulks.n, 0);
    ck_assert_int_eq(
        qdqi_stored_read(source, find_initializer(source, "w"), "w", &before, NULL), 0);
    ck_assert_int_eq(qdqi_stored_read(m, find_initializer(m, "w"), "w", &after, NULL),
                     0);
    ck_assert_uint_eq(before.n, 4 * 3 * 3 * 3);
    ck_assert_uint_eq(before.n, after.n);
    ck_assert_int_eq(memcmp(before.bytes, after.bytes, before.n * sizeof(float)), 0);
    qdq_model_free(&source);
    builder_close(&b, &m);
}

/* --- weights that nodes compute ------------------------------------------- */

static size_t
place_of(const struct qdq_model *m, const char *node)
{
    for (size_t i = 0; i < m->graph.n_nodes; i++)
        if (strcmp(m->graph.nodes[i].name, node) == 0)
            return i;
    ck_abort_msg("there is no node %s", node);
    return 0;
}

/* Returns whether each node stands behind those that compute its inputs. */
static bool
is_sorted(const struct qdq_model *m)
{
    for (size_t i = 0; i < m->graph.n_nodes; i++) {
        const struct qdqi_node *node = &m->graph.nodes[i];
        for (size_t k = 0; k < node->proto->n_input; k++)
            if (node->inputs[k] && node->inputs[k]->producer >= (int64_t)i)
                return false;
    }
    return true;
}

/* Expects that the scales are those of the last axis of w. */
static void
check_computed_weight(const struct qdq_model *m)
{
    const Onnx__NodeProto *q = find_node(m, "v_QuantizeLinear");
    const Onnx__TensorProto *scale = find_initializer(m, "v_scale");
    float scales[4];
    ck_assert_str_eq(find_node(m, "conv")->input[1], "v_DequantizeLinear_Output");
    ck_assert_str_eq(find_node(m, "user")->input[0], "v");
    ck_assert_str_eq(q->input[0], "v");
    ck_assert_int_eq(qdqi_node_int(q, "axis", -9), 0);
    ck_assert_int_eq(scale->dims[0], 4);
    memcpy(scales, scale->raw_data.data, sizeof scales);
    for (int i = 0; i < 4; i++) /* the last elements of w are 69, 70, 71, 72 */
        ck_assert_float_eq(scales[i], (float)(69 + i) / 127.0f);
}

UNIT_TEST(computed_weights_get_their_pair_behind_their_nodes)
{
    struct builder b;
    builder_computed_weight(&b);
    struct qdq_model *m = quantize(&b);
    check_computed_weight(m);
    ck_assert(is_sorted(m));
    ck_assert_uint_eq(place_of(m, "v_QuantizeLinear"), place_of(m, "transpose") + 1);
    builder_close(&b, &m);
}

/* A file whose nodes are not sorted gives a result that is not sorted, and otherwise
   equal. */
UNIT_TEST(uses_may_stand_before_what_they_use)
{
    struct builder b;
    builder_computed_weight(&b);
    Onnx__NodeProto *first = b.nodes[0];
    b.nodes[0] = b.nodes[3];
    b.nodes[3] = first;
    struct qdq_model *m = quantize(&b);
    check_computed_weight(m);
    builder_close(&b, &m);
}

UNIT_TEST(filled_weights_have_equal_scales)
{
    struct builder b;
    builder_init(&b, 13);
    builder_input(&b, "x", QDQI_FLOAT32);
    builder_ints_weight(&b, "s", 4, (const int64_t[]){5, 3, 1, 1});
    builder_node(&b, "ConstantOfShape", "fill", "s", "w");
    Onnx__TensorProto *value = builder_weight(&b, "one", 1, (const int64_t[]){1});
    builder_tensor(&b, b.nodes[0], "value", value);
    builder_node(&b, "Conv", "conv", "x,w", "y");
    builder_output(&b, "y", QDQI_FLOAT32);
    struct qdq_model *m = quantize(&b);
    const Onnx__TensorProto *scale = find_initializer(m, "w_scale");
    ck_assert_int_eq(scale->dims[0], 5);
    for (int i = 0; i < 5; i++) {
        float got;
        memcpy(&got, scale->raw_data.data + (size_t)i * sizeof got, sizeof got);
        ck_assert_float_eq(got, 1 / 127.0f);
    }
    builder_close(&b, &m);
}

/* A weight with billions of channels that no file stores is refused, not written
   out. */
UNIT_TEST(filled_channels_are_bounded)
{
    struct builder b;
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    builder_init(&b, 13);
    builder_input(&b, "x", QDQI_FLOAT32);
    builder_ints_weight(&b, "s", 4, (const int64_t[]){(int64_t)1 << 32, 3, 1, 1});
    builder_node(&b, "ConstantOfShape", "fill", "s", "w");
    builder_node(&b, "Conv", "conv", "x,w", "y");
    builder_output(&b, "y", QDQI_FLOAT32);
    int fd = builder_file(&b);
    ck_assert_int_eq(quantize_fd(fd, &m, &err), QDQ_LIMIT_EXCEEDED);
    ck_assert_str_eq(err.where, "w");
    close(fd);
    builder_fini(&b);
}

/* --- weights as integers -------------------------------------------------- */

static struct qdq_model *
quantize_to_integers(const struct builder *b, struct qdq_report **ret_report)
{
    struct qdq_model *result = NULL;
    struct qdq_error err = {0};
    struct qdq_spec spec;
    qdq_spec_init(&spec);
    spec.weights.storage = QDQ_STORE_DQ;
    int fd = builder_file(b);
    enum qdq_code code = quantize_with(fd, &spec, &result, ret_report, &err);
    ck_assert_msg(code == QDQ_OK, "%s", err.text);
    close(fd);
    return result;
}

static bool
has_tensor(const struct qdq_model *m, const char *name)
{
    return qdqi_map_get(m->graph.tensors, name) != NULL;
}

/* Returns the reason why a weight stays float, or NULL. */
static const char *
why_float(const struct qdq_report *report, const char *weight)
{
    for (size_t i = 0; i < report->n_warnings; i++)
        if (strcmp(report->warnings[i].code, "weight_stays_float") == 0 &&
            strcmp(report->warnings[i].node, weight) == 0)
            return report->warnings[i].detail;
    return NULL;
}

UNIT_TEST(integers_take_the_place_of_floats)
{
    struct builder b;
    struct qdqi_constant q;
    builder_two_convs(&b, 13);
    struct qdq_model *m = quantize_to_integers(&b, NULL);
    static const char *const ops[] = {
        "QuantizeLinear", "DequantizeLinear", "DequantizeLinear", "Conv", "Relu",
        "QuantizeLinear", "DequantizeLinear", "DequantizeLinear", "Conv"};
    ck_assert_uint_eq(m->graph.n_nodes, 9);
    for (size_t i = 0; i < 9; i++)
        ck_assert_str_eq(m->graph.nodes[i].proto->op_type, ops[i]);
    const Onnx__NodeProto *dq = find_node(m, "w_DequantizeLinear");
    ck_assert_int_eq(qdqi_node_int(dq, "axis", -9), 0);
    ck_assert_str_eq(dq->input[0], "w_quantized");
    ck_assert_str_eq(find_node(m, "conv1")->input[1], dq->output[0]);
    ck_assert_int_eq(find_initializer(m, "w_zero_point")->dims[0], 4);
    ck_assert(!has_tensor(m, "w") && !has_tensor(m, "w2") && has_tensor(m, "bias"));
    const Onnx__TensorProto *t = find_initializer(m, "w_quantized");
    ck_assert_int_eq(qdqi_stored_read(m, t, "w", &q, NULL), 0);
    ck_assert_int_eq(q.dtype, QDQI_INT8);
    ck_assert_uint_eq(q.rank, 4);
    ck_assert_uint_eq(q.n, 4 * 3 * 3 * 3);
    for (size_t i = 0; i < q.n; i++) { /* element i is i + 1 */
        float scale = (float)(27 * (i / 27 + 1)) / 127.0f;
        ck_assert_int_eq((int8_t)q.bytes[i], (int)rintf((float)(i + 1) / scale));
    }
    builder_close(&b, &m);
}

static void
read_by_node(struct builder *b)
{
    builder_node(b, "Relu", "other", "w", "z");
}

static void
read_as_output(struct builder *b)
{
    builder_output(b, "w", QDQI_FLOAT32);
}

static void
read_in_branch(struct builder *b)
{
    Onnx__NodeProto *node = builder_node(b, "If", "if", "x", "z");
    Onnx__GraphProto *branch = qdqi_arena_alloc(b->arena, sizeof *branch);
    Onnx__NodeProto **nodes = qdqi_arena_array(b->arena, 1, sizeof *nodes);
    onnx__graph_proto__init(branch);
    nodes[0] = builder_node(b, "Relu", "inner", "w", "inside");
    b->graph.n_node--;
    branch->name = qdqi_arena_strdup(b->arena, "branch");
    branch->node = nodes;
    branch->n_node = 1;
    builder_attribute(b, node, "then_branch")->g = branch;
}

static void
read_in_training(struct builder *b)
{
    static Onnx__TrainingInfoProto info, *all[] = {&info};
    onnx__training_info_proto__init(&info);
    b->model.training_info = all;
    b->model.n_training_info = 1;
}

static void (*const readers[])(struct builder *b) = {read_by_node, read_as_output,
                                                     read_in_branch, read_in_training};

UNIT_ROWS(a_float_weight_stays_for_its_other_readers, readers)
{
    struct builder b;
    builder_two_convs(&b, 13);
    readers[_i](&b);
    struct qdq_model *m = quantize_to_integers(&b, NULL);
    ck_assert_int_eq(find_initializer(m, "w")->data_type, QDQI_FLOAT32);
    ck_assert_int_eq(find_initializer(m, "w_quantized")->data_type, QDQI_INT8);
    ck_assert_str_eq(find_node(m, "conv1")->input[1], "w_DequantizeLinear_Output");
    builder_close(&b, &m);
}

UNIT_TEST(annotations_of_a_dropped_weight_are_dropped)
{
    struct builder b;
    Onnx__ValueInfoProto *values[2];
    Onnx__TensorAnnotation annotation, *annotations[] = {&annotation};
    builder_two_convs(&b, 13);
    values[0] = builder_value(&b, "w", QDQI_FLOAT32);
    values[1] = builder_value(&b, "a", QDQI_FLOAT32);
    onnx__tensor_annotation__init(&annotation);
    annotation.tensor_name = qdqi_arena_strdup(b.arena, "w");
    b.graph.value_info = values;
    b.graph.n_value_info = 2;
    b.graph.quantization_annotation = annotations;
    b.graph.n_quantization_annotation = 1;
    struct qdq_model *m = quantize_to_integers(&b, NULL);
    ck_assert_uint_eq(m->proto->graph->n_value_info, 1);
    ck_assert_str_eq(m->proto->graph->value_info[0]->name, "a");
    ck_assert_uint_eq(m->proto->graph->n_quantization_annotation, 0);
    builder_close(&b, &m);
}

/* w is [3, 3, 2, 4] and v its transpose with axes 3, 2, 0, 1. */
UNIT_TEST(computed_weights_become_integers)
{
    struct builder b;
    struct qdqi_constant q;
    builder_computed_weight(&b);
    struct qdq_model *m = quantize_to_integers(&b, NULL);
    ck_assert(has_tensor(m, "w")); /* the Relu still reads v */
    const Onnx__TensorProto *t = find_initializer(m, "v_quantized");
    ck_assert_int_eq(qdqi_stored_read(m, t, "v", &q, NULL), 0);
    ck_assert_int_eq(t->dims[0], 4);
    ck_assert_int_eq(t->dims[1], 2);
    ck_assert_uint_eq(q.n, 72);
    for (size_t i = 0; i < q.n; i++) {
        size_t o = i / 18, c = i / 9 % 2, k = i % 9;
        float scale = (float)(69 + o) / 127.0f, value = (float)(k * 8 + c * 4 + o + 1);
        ck_assert_int_eq((int8_t)q.bytes[i], (int)rintf(value / scale));
    }
    builder_close(&b, &m);
}

UNIT_TEST(nodes_that_only_made_a_weight_go)
{
    struct builder b;
    builder_computed_weight(&b);
    b.nodes[2] = b.nodes[--b.graph.n_node]; /* no other node reads v */
    b.graph.n_output--;
    struct qdq_model *m = quantize_to_integers(&b, NULL);
    ck_assert_uint_eq(m->graph.n_nodes, 4);
    ck_assert(!has_tensor(m, "w") && !has_tensor(m, "same") && !has_tensor(m, "v"));
    ck_assert_str_eq(find_node(m, "conv")->input[1], "v_DequantizeLinear_Output");
    builder_close(&b, &m);
}

/* The weight has 2^50 elements, of which the file holds one. */
UNIT_TEST(filled_weights_stay_float)
{
    struct builder b;
    struct qdq_report *report = NULL;
    builder_init(&b, 13);
    builder_input(&b, "x", QDQI_FLOAT32);
    builder_ints_weight(&b, "s", 4, (const int64_t[]){2, 1 << 30, 1 << 19, 1});
    builder_node(&b, "ConstantOfShape", "fill", "s", "w");
    builder_node(&b, "Conv", "conv", "x,w", "y");
    builder_output(&b, "y", QDQI_FLOAT32);
    struct qdq_model *m = quantize_to_integers(&b, &report);
    ck_assert_str_eq(find_node(m, "w_QuantizeLinear")->input[0], "w");
    ck_assert(has_tensor(m, "s"));
    ck_assert_ptr_nonnull(strstr(why_float(report, "w"), "repeats one element"));
    qdq_report_free(&report);
    builder_close(&b, &m);
}

/* From IR version 4 on a caller may send another value for an initializer that is an
   input. */
UNIT_TEST(weights_that_callers_may_send_stay_float)
{
    struct builder b;
    struct qdq_report *report = NULL;
    builder_computed_weight(&b);
    b.nodes[2] = b.nodes[--b.graph.n_node];
    b.graph.n_output--;
    builder_input(&b, "w", QDQI_FLOAT32);
    struct qdq_model *m = quantize_to_integers(&b, &report);
    ck_assert_str_eq(find_node(m, "v_QuantizeLinear")->input[0], "v");
    ck_assert_uint_eq(m->proto->graph->n_input, 2);
    ck_assert(has_tensor(m, "w"));
    ck_assert_ptr_nonnull(strstr(why_float(report, "v"), "input of the graph"));
    qdq_report_free(&report);
    builder_close(&b, &m);
}

/* Nodes compute twenty weights from one. As integers they would be five times as
   large. */
UNIT_TEST(integers_take_no_more_than_the_file)
{
    struct builder b;
    struct qdq_report *report = NULL;
    size_t n = 0;
    builder_init(&b, 13);
    builder_input(&b, "x", QDQI_FLOAT32);
    builder_weight(&b, "w", 4, (const int64_t[]){64, 64, 1, 1});
    for (int i = 0; i < 20; i++) {
        const char *v = qdqi_arena_printf(b.arena, "v%d", i);
        const char *inputs = qdqi_arena_printf(b.arena, "x,%s", v);
        const char *y = qdqi_arena_printf(b.arena, "y%d", i);
        builder_node(&b, "Identity", v, "w", v);
        builder_node(&b, "Conv", y, inputs, y);
        builder_output(&b, y, QDQI_FLOAT32);
    }
    struct qdq_model *m = quantize_to_integers(&b, &report);
    for (size_t i = 0; i < report->n_warnings; i++)
        if (strstr(report->warnings[i].detail, "more bytes than the model"))
            n += strtoul(report->warnings[i].detail, NULL, 10);
    ck_assert_uint_ge(n, 15);
    ck_assert_uint_le(n, 16);
    ck_assert_uint_lt(report->size_after, 3 * report->size_before);
    qdq_report_free(&report);
    builder_close(&b, &m);
}

/* --- LSTM ------------------------------------------------------------------- */

static void
build_lstm(struct builder *b)
{
    builder_init(b, 17);
    builder_input(b, "x", QDQI_FLOAT32);
    builder_weight(b, "w", 3, (const int64_t[]){2, 8, 3});
    builder_weight(b, "r", 3, (const int64_t[]){2, 8, 2});
    Onnx__NodeProto *node = builder_node(b, "LSTM", "lstm", "x,w,r", "y");
    builder_int(b, node, "hidden_size", 2);
    builder_int(b, node, "layout", 0);
    builder_output(b, "y", QDQI_FLOAT32);
}

/* Checks that the integers are those of a weight [2, 8, n] whose element i is i + 1, as
   [2, n, 8], each gate with a scale of its own. */
static void
check_gates(const struct qdq_model *m, const char *name, const char *scale, size_t n)
{
    const int64_t dims[] = {2, (int64_t)n, 8};
    struct qdqi_constant q, s;
    ck_assert_int_eq(qdqi_stored_read(m, find_initializer(m, name), name, &q, NULL), 0);
    ck_assert_int_eq(qdqi_stored_read(m, find_initializer(m, scale), scale, &s, NULL),
                     0);
    ck_assert_uint_eq(q.rank, 3);
    ck_assert_mem_eq(q.dims, dims, sizeof dims);
    ck_assert_uint_eq(s.rank, 2);
    ck_assert_mem_eq(s.dims, ((const int64_t[]){2, 8}), 2 * sizeof *dims);
    for (size_t i = 0; i < q.n; i++) {
        size_t d = i / (8 * n), in = i / 8 % n, channel = 8 * d + i % 8;
        float steps = (float)((channel + 1) * n) / 127.0f, stored;
        memcpy(&stored, s.bytes + channel * sizeof stored, sizeof stored);
        ck_assert_float_eq(stored, steps);
        ck_assert_int_eq((int8_t)q.bytes[i],
                         (int)rintf((float)(channel * n + in + 1) / steps));
    }
}

UNIT_TEST(an_lstm_reads_integers)
{
    struct builder b;
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    struct qdq_spec spec;
    qdq_spec_init(&spec);
    spec.target = qdq_target_find("onnxruntime");
    spec.recipe = QDQ_RECIPE_NONE;
    spec.host = QDQ_HOST_VNNI;
    spec.weight_only = spec.dynamic = true;
    build_lstm(&b);
    int fd = builder_file(&b);
    enum qdq_code code = quantize_with(fd, &spec, &m, NULL, &err);
    ck_assert_msg(code == QDQ_OK, "%s", err.text);
    const Onnx__NodeProto *node = find_node(m, "lstm");
    ck_assert_str_eq(node->op_type, QDQI_DYNAMIC_LSTM);
    ck_assert_str_eq(node->domain, QDQI_MS_DOMAIN);
    ck_assert_uint_eq(node->n_input, 12);
    ck_assert_uint_eq(node->n_attribute, 1);
    for (size_t i = 3; i < 8; i++)
        ck_assert_str_eq(node->input[i], "");
    check_gates(m, node->input[1], node->input[8], 3);
    check_gates(m, node->input[2], node->input[10], 2);
    ck_assert(!has_tensor(m, "w") && !has_tensor(m, "r"));
    ck_assert_int_eq(
        ((const struct qdqi_tensor *)qdqi_map_get(m->graph.tensors, "y"))->dtype,
        QDQI_FLOAT32);
    ck_assert_str_eq(m->proto->opset_import[m->proto->n_opset_import - 1]->domain,
                     QDQI_MS_DOMAIN);
    close(fd);
    builder_close(&b, &m);
}

UNIT_SUITE("rewrite")
