/* SPDX-License-Identifier: Apache-2.0 */
/* What the result looks like: pairs, names, versions, and all that must survive. */
#include "config.h"

#include "quantized.h"

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

START_TEST(pairs_stand_on_inputs_and_weights)
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
    qdq_model_free(&m);
    builder_fini(&b);
}
END_TEST

START_TEST(new_names_avoid_what_is_there)
{
    struct builder b;
    builder_two_convs(&b, 13);
    builder_node(&b, "Relu", "x_QuantizeLinear", "x", "x_scale");
    builder_node(&b, "Relu", "extra", "x_scale", "x_DequantizeLinear_Output");
    struct qdq_model *m = quantize(&b); /* opening it checks that names are unique */
    ck_assert_str_eq(find_node(m, "conv1")->input[0], "x_DequantizeLinear_Output_1");
    find_initializer(m, "x_scale_1");
    find_node(m, "x_QuantizeLinear_1");
    qdq_model_free(&m);
    builder_fini(&b);
}
END_TEST

START_TEST(duplicate_node_names_get_a_suffix)
{
    struct builder b;
    builder_two_convs(&b, 13);
    b.nodes[2]->name = b.nodes[0]->name;
    struct qdq_model *m = quantize(&b);
    ck_assert_str_eq(find_node(m, "conv1")->output[0], "a");
    ck_assert_str_eq(find_node(m, "conv1_1")->output[0], "y");
    qdq_model_free(&m);
    builder_fini(&b);
}
END_TEST

START_TEST(old_ir_versions_are_raised)
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
    qdq_model_free(&m);
    builder_fini(&b);
}
END_TEST

START_TEST(metadata_is_replaced_not_doubled)
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
    qdq_model_free(&m);
    builder_fini(&b);
}
END_TEST

START_TEST(fields_that_the_schema_lacks_survive)
{
    struct builder b;
    uint8_t bytes[] =
        "\x05hello"; /* a length-delimited payload, as protobuf-c keeps it */
    ProtobufCMessageUnknownField unknown = {
        .tag = 900, .wire_type = 2, .len = 6, .data = bytes}; /* of no ONNX so far */
    builder_two_convs(&b, 13);
    b.nodes[0]->base.n_unknown_fields = 1;
    b.nodes[0]->base.unknown_fields = &unknown;
    struct qdq_model *m = quantize(&b);
    const Onnx__NodeProto *conv = find_node(m, "conv1");
    ck_assert_uint_eq(conv->base.n_unknown_fields, 1);
    ck_assert_uint_eq(conv->base.unknown_fields[0].tag, 900);
    ck_assert_int_eq(memcmp(conv->base.unknown_fields[0].data, bytes, 6), 0);
    qdq_model_free(&m);
    builder_fini(&b);
}
END_TEST

START_TEST(weights_are_bit_for_bit_what_they_were)
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
    qdq_model_free(&m);
    builder_fini(&b);
}
END_TEST

/* --- weights that nodes make ---------------------------------------------- */

static size_t
place_of(const struct qdq_model *m, const char *node)
{
    for (size_t i = 0; i < m->graph.n_nodes; i++)
        if (strcmp(m->graph.nodes[i].name, node) == 0)
            return i;
    ck_abort_msg("there is no node %s", node);
    return 0;
}

/* Whether each node stands behind those that make its inputs. */
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

/* The scales are those of the last axis of w. */
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
    for (int i = 0; i < 4; i++) /* the last of w are 69, 70, 71, 72 */
        ck_assert_float_eq(scales[i], (float)(69 + i) / 127.0f);
}

START_TEST(computed_weights_get_their_pair_behind_their_nodes)
{
    struct builder b;
    builder_computed_weight(&b);
    struct qdq_model *m = quantize(&b);
    check_computed_weight(m);
    ck_assert(is_sorted(m));
    ck_assert_uint_eq(place_of(m, "v_QuantizeLinear"), place_of(m, "transpose") + 1);
    qdq_model_free(&m);
    builder_fini(&b);
}
END_TEST

/* A file that is not sorted gives a result that is not; what it says is the same. */
START_TEST(uses_may_stand_before_what_they_use)
{
    struct builder b;
    builder_computed_weight(&b);
    Onnx__NodeProto *first = b.nodes[0];
    b.nodes[0] = b.nodes[3];
    b.nodes[3] = first;
    struct qdq_model *m = quantize(&b);
    check_computed_weight(m);
    qdq_model_free(&m);
    builder_fini(&b);
}
END_TEST

START_TEST(filled_weights_have_equal_scales)
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
    qdq_model_free(&m);
    builder_fini(&b);
}
END_TEST

/* Channels that no file stores are not written out by the billion. */
START_TEST(filled_channels_are_bounded)
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
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("rewrite");
    TCase *t = tcase_create("rewrite");
    tcase_add_test(t, pairs_stand_on_inputs_and_weights);
    tcase_add_test(t, new_names_avoid_what_is_there);
    tcase_add_test(t, duplicate_node_names_get_a_suffix);
    tcase_add_test(t, old_ir_versions_are_raised);
    tcase_add_test(t, metadata_is_replaced_not_doubled);
    tcase_add_test(t, fields_that_the_schema_lacks_survive);
    tcase_add_test(t, weights_are_bit_for_bit_what_they_were);
    tcase_add_test(t, computed_weights_get_their_pair_behind_their_nodes);
    tcase_add_test(t, uses_may_stand_before_what_they_use);
    tcase_add_test(t, filled_weights_have_equal_scales);
    tcase_add_test(t, filled_channels_are_bounded);
    suite_add_tcase(s, t);
    return s;
}

UNIT_MAIN(suite)
