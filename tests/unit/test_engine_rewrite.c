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
    suite_add_tcase(s, t);
    return s;
}

UNIT_MAIN(suite)
