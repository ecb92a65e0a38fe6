/* SPDX-License-Identifier: Apache-2.0 */
/* Models of which ONNX Runtime would end the process: none gets a session. Nothing is run here. */
#include "config.h"

#include "builder.h"
#include "run/session/crashes.h"

static Onnx__NodeProto *
attention(struct builder *b, const char *inputs)
{
    Onnx__NodeProto *node = builder_node(b, "Attention", "heads", inputs, "y");
    node->domain = qdqi_arena_strdup(b->arena, QDQI_MS_DOMAIN);
    builder_int(b, node, "num_heads", 2);
    return node;
}

static enum qdq_code
judge(struct builder *b)
{
    struct qdq_error err = {0};
    const enum qdq_code code = qdqi_refuse_crash(&b->model, &err);
    if (code) {
        ck_assert_int_eq(err.kind, QDQ_AT_NODE);
        ck_assert_str_eq(err.where, "heads");
        ck_assert_ptr_nonnull(strstr(err.text, "give it a bias of zeros"));
    }
    builder_fini(b);
    return code;
}

START_TEST(an_attention_without_a_bias)
{
    static const struct {
        const char *inputs;
        enum qdq_code code;
    } rows[] = {{"x,w", QDQ_UNSUPPORTED},
                {"x,w,", QDQ_UNSUPPORTED},
                {"x,w,,mask", QDQ_UNSUPPORTED},
                {"x,w,b", QDQ_OK},
                {"x,w,b,mask", QDQ_OK}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct builder b;
        builder_init(&b, 17);
        attention(&b, rows[i].inputs);
        ck_assert_int_eq(judge(&b), rows[i].code);
    }
}
END_TEST

START_TEST(one_inside_a_graph)
{
    struct builder b;
    Onnx__GraphProto inner;
    Onnx__NodeProto *nodes[1];
    builder_init(&b, 17);
    nodes[0] = attention(&b, "x,w");
    onnx__graph_proto__init(&inner);
    inner.node = nodes;
    inner.n_node = b.graph.n_node;
    b.graph.n_node = 0;
    builder_graph(&b, builder_node(&b, "If", "if", "c", "z"), "then_branch", &inner);
    ck_assert_int_eq(judge(&b), QDQ_UNSUPPORTED);
}
END_TEST

/* ONNX's own operator has no bias at all. */
START_TEST(another_domain)
{
    struct builder b;
    builder_init(&b, 23);
    builder_node(&b, "Attention", "heads", "q,k,v", "y");
    ck_assert_int_eq(judge(&b), QDQ_OK);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("engine_crashes");
    TCase *t = tcase_create("crashes");
    tcase_add_test(t, an_attention_without_a_bias);
    tcase_add_test(t, one_inside_a_graph);
    tcase_add_test(t, another_domain);
    suite_add_tcase(s, t);
    return s;
}

UNIT_MAIN(suite)
