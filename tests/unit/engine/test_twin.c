/* SPDX-License-Identifier: Apache-2.0 */
/* The float and the quantized model in one graph: names, inputs, outputs, weights,
   order. */
#include "config.h"

#include "failing.h"
#include "quantized.h"
#include "transform/rewrite/insert.h"
#include "transform/rewrite/twin.h"

/* Two opened models and the twin that was made of them. */
struct pair {
    struct builder b;
    struct qdqi_arena *arena;
    struct qdq_model *f, *q;
    struct qdqi_twin twin;
    const Onnx__GraphProto *g;
};

/* Opens both models after p->b was built. */
static void
open_pair(struct pair *p)
{
    struct qdq_error err = {0};
    int fd = builder_file(&p->b);
    p->arena = qdqi_arena_new();
    ck_assert_msg(qdq_model_open(fd, &p->f, &err) == QDQ_OK, "%s", err.text);
    ck_assert_msg(quantize_fd(fd, &p->q, &err) == QDQ_OK, "%s", err.text);
    close(fd);
}

static void
join(struct pair *p, size_t n, const char *const *tensors)
{
    struct qdq_error err = {0};
    open_pair(p);
    enum qdq_code code = qdqi_twin(p->f, p->q, tensors, n, p->arena, &p->twin, &err);
    ck_assert_msg(code == QDQ_OK, "%s", err.text);
    p->g = p->twin.model.proto->graph;
}

static void
close_pair(struct pair *p)
{
    qdq_model_free(&p->f);
    qdq_model_free(&p->q);
    qdqi_arena_free(&p->arena);
    builder_fini(&p->b);
}

/* Returns the node that computes the tensor. */
static const Onnx__NodeProto *
maker(const struct pair *p, const char *tensor)
{
    for (size_t i = 0; i < p->g->n_node; i++)
        for (size_t k = 0; k < p->g->node[i]->n_output; k++)
            if (strcmp(p->g->node[i]->output[k], tensor) == 0)
                return p->g->node[i];
    return NULL;
}

static const Onnx__TensorProto *
initializer(const struct pair *p, const char *name)
{
    for (size_t i = 0; i < p->g->n_initializer; i++)
        if (strcmp(p->g->initializer[i]->name, name) == 0)
            return p->g->initializer[i];
    return NULL;
}

/* Expects that every tensor of the main graph except inputs is computed once, and
   before it is used. */
static void
check_graph(const struct pair *p)
{
    struct qdqi_map *made = qdqi_map_new(p->arena);
    const Onnx__GraphProto *g = p->g;
    for (size_t i = 0; i < g->n_input; i++)
        qdqi_map_put(made, g->input[i]->name, made);
    for (size_t i = 0; i < g->n_initializer; i++) {
        ck_assert_ptr_null(qdqi_map_get(made, g->initializer[i]->name));
        qdqi_map_put(made, g->initializer[i]->name, made);
    }
    for (size_t i = 0; i < g->n_node; i++) {
        for (size_t k = 0; k < g->node[i]->n_input; k++)
            ck_assert(!*g->node[i]->input[k] ||
                      qdqi_map_get(made, g->node[i]->input[k]));
        for (size_t k = 0; k < g->node[i]->n_output; k++) {
            ck_assert_ptr_null(qdqi_map_get(made, g->node[i]->output[k]));
            if (*g->node[i]->output[k])
                qdqi_map_put(made, g->node[i]->output[k], made);
        }
    }
    for (size_t i = 0; i < g->n_output; i++)
        ck_assert_ptr_nonnull(qdqi_map_get(made, g->output[i]->name));
}

/* Expects these inputs of the Compare node of a slot. */
static void
check_compared(const struct pair *p, int64_t slot, const char *f, const char *q)
{
    const Onnx__NodeProto *node = p->g->node[p->g->n_node - 1 - (size_t)slot];
    ck_assert_str_eq(node->op_type, QDQI_COMPARE);
    ck_assert_str_eq(node->domain, QDQI_DOMAIN);
    ck_assert_int_eq(qdqi_node_int(node, "slot", -1), slot);
    ck_assert_uint_eq(node->n_input, 2);
    ck_assert_uint_eq(node->n_output, 0);
    ck_assert_str_eq(node->input[0], f);
    ck_assert_str_eq(node->input[1], q);
}

UNIT_TEST(both_halves_share_the_inputs)
{
    struct pair p;
    builder_two_convs(&p.b, 13);
    join(&p, 2, (const char *const[]){"a", "y"});
    check_graph(&p);
    ck_assert_uint_eq(p.g->n_input, 1);
    ck_assert_str_eq(p.g->input[0]->name, "x");
    ck_assert_str_eq(maker(&p, "a")->input[0], "x");
    ck_assert_str_eq(maker(&p, "a")->name, "conv1");
    const Onnx__NodeProto *conv = maker(&p, "a_quantized_half");
    ck_assert_str_eq(conv->op_type, "Conv");
    ck_assert_str_eq(conv->name, "conv1_quantized_half");
    const Onnx__NodeProto *dq = maker(&p, conv->input[0]);
    ck_assert_str_eq(dq->op_type, "DequantizeLinear");
    ck_assert_str_eq(maker(&p, dq->input[0])->input[0], "x");
    ck_assert_str_eq(conv->input[2], "bias_quantized_half");
    ck_assert_ptr_nonnull(initializer(&p, conv->input[2]));
    close_pair(&p);
}

/* ONNX Runtime runs the last node first, so this one compares the first tensor. */
UNIT_TEST(comparisons_stand_last_in_reverse)
{
    struct pair p;
    builder_two_convs(&p.b, 13);
    join(&p, 2, (const char *const[]){"a", "y"});
    check_compared(&p, 0, "a", "a_quantized_half");
    check_compared(&p, 1, "y", "y_quantized_half");
    const Onnx__ModelProto *m = p.twin.model.proto;
    ck_assert_uint_eq(m->n_opset_import, 2);
    ck_assert_str_eq(m->opset_import[1]->domain, QDQI_DOMAIN);
    close_pair(&p);
}

UNIT_TEST(outputs_are_those_of_one_half_and_the_other)
{
    struct pair p;
    builder_two_convs(&p.b, 13);
    builder_node(&p.b, "Cast", "cast", "r", "i");
    builder_int(&p.b, p.b.nodes[p.b.graph.n_node - 1], "to", QDQI_STRING);
    builder_output(&p.b, "i", QDQI_STRING);
    builder_output(&p.b, "x", QDQI_FLOAT32);
    join(&p, 0, NULL);
    check_graph(&p);
    static const char *const from[] = {
        "y", "i", "x", "y_quantized_half", "i_quantized_half", "x"};
    ck_assert_uint_eq(p.g->n_output, 6);
    for (size_t i = 0; i < 6; i++) {
        const Onnx__NodeProto *node = maker(&p, p.g->output[i]->name);
        ck_assert_str_eq(node->input[0], from[i]);
        ck_assert_str_eq(node->op_type, i % 3 == 1 ? "Identity" : QDQI_PASS);
        ck_assert_int_eq(p.g->output[i]->type->tensor_type->elem_type,
                         i % 3 == 1 ? QDQI_STRING : QDQI_FLOAT32);
    }
    close_pair(&p);
}

UNIT_TEST(names_avoid_existing_ones)
{
    struct pair p;
    builder_two_convs(&p.b, 13);
    builder_node(&p.b, "Relu", "conv1_quantized_half", "a", "a_quantized_half");
    builder_node(&p.b, "Relu", "", "a_quantized_half", "y_output");
    builder_output(&p.b, "y_output", QDQI_FLOAT32);
    join(&p, 1, (const char *const[]){"a"});
    check_graph(&p);
    check_compared(&p, 0, "a", "a_quantized_half_1");
    ck_assert_str_eq(maker(&p, "a_quantized_half_1")->name, "conv1_quantized_half_1");
    ck_assert_str_eq(maker(&p, "a_quantized_half_quantized_half")->op_type, "Relu");
    close_pair(&p);
}

UNIT_TEST(omitted_inputs_and_outputs_stay_so)
{
    struct pair p;
    builder_two_convs(&p.b, 13);
    builder_node(&p.b, "Clip", "clip", "r,,limit", "c");
    builder_weight(&p.b, "limit", 0, NULL);
    builder_node(&p.b, "Dropout", "drop", "c", "d,");
    builder_output(&p.b, "d", QDQI_FLOAT32);
    join(&p, 0, NULL);
    check_graph(&p);
    const Onnx__NodeProto *clip = maker(&p, "c_quantized_half");
    ck_assert_str_eq(clip->input[1], "");
    ck_assert_str_eq(clip->input[2], "limit_quantized_half");
    ck_assert_str_eq(maker(&p, "d_quantized_half")->output[1], "");
    close_pair(&p);
}

/* --- nested graphs -------------------------------------------------------- */

/* Makes a body with own = Relu(captured) and z = Add(own, the inner If's output). */
static Onnx__GraphProto *
body(struct builder *b, const char *captured, Onnx__GraphProto *inner)
{
    Onnx__GraphProto *g = qdqi_arena_alloc(b->arena, sizeof *g);
    onnx__graph_proto__init(g);
    g->name = qdqi_arena_strdup(b->arena, "body");
    g->node = qdqi_arena_array(b->arena, 3, sizeof *g->node);
    g->output = qdqi_arena_array(b->arena, 1, sizeof *g->output);
    size_t n = b->graph.n_node;
    builder_node(b, "Relu", "in_body", captured, inner ? "own" : "deep");
    builder_node(b, "Add", "sum", inner ? "own,r" : "deep,own", inner ? "z1" : "z2");
    if (inner)
        builder_attribute(b, builder_node(b, "If", "if2", "cond", "z3"), "then_branch")
            ->g = inner;
    g->n_node = b->graph.n_node - n;
    for (size_t i = 0; i < g->n_node; i++)
        g->node[i] = b->nodes[n + i];
    b->graph.n_node = n;
    g->output[g->n_output++] = builder_value(b, inner ? "z1" : "z2", QDQI_FLOAT32);
    return g;
}

static void
two_ifs(struct builder *b)
{
    builder_two_convs(b, 13);
    builder_input(b, "cond", QDQI_BOOL);
    Onnx__GraphProto *inner = body(b, "a", NULL);
    Onnx__GraphProto *outer = body(b, "a", inner);
    Onnx__NodeProto *node = builder_node(b, "If", "if", "cond", "z");
    builder_attribute(b, node, "then_branch")->g = outer;
    builder_output(b, "z", QDQI_FLOAT32);
}

UNIT_TEST(captured_names_are_renamed_in_bodies)
{
    struct pair p;
    two_ifs(&p.b);
    join(&p, 0, NULL);
    check_graph(&p);
    const Onnx__NodeProto *f = maker(&p, "z"), *q = maker(&p, "z_quantized_half");
    ck_assert_str_eq(q->input[0], "cond");
    const Onnx__GraphProto *mine = q->attribute[0]->g, *theirs = f->attribute[0]->g;
    ck_assert_str_eq(theirs->node[0]->input[0], "a");
    ck_assert_str_eq(theirs->node[2]->attribute[0]->g->node[0]->input[0], "a");
    ck_assert_str_eq(mine->node[0]->input[0], "a_quantized_half");
    ck_assert_str_eq(mine->node[0]->output[0], "own");
    ck_assert_str_eq(mine->node[0]->name, "in_body");
    ck_assert_str_eq(mine->node[1]->input[0], "own");
    ck_assert_str_eq(mine->node[1]->input[1], "r_quantized_half");
    ck_assert_str_eq(mine->output[0]->name, "z1");
    const Onnx__GraphProto *deep = mine->node[2]->attribute[0]->g;
    ck_assert_str_eq(deep->node[0]->input[0], "a_quantized_half");
    ck_assert_str_eq(deep->node[1]->input[0], "deep");
    ck_assert_str_eq(deep->node[1]->input[1], "own");
    close_pair(&p);
}

/* --- weights -------------------------------------------------------------- */

/* Checks the elements of a tensor of the twin in its payload. */
static void
check_bulk(const struct pair *p, const Onnx__TensorProto *t, unsigned file,
           const float *data, size_t n)
{
    ck_assert_uint_eq(t->base.n_unknown_fields, 1);
    const ProtobufCMessageUnknownField *field = &t->base.unknown_fields[0];
    const struct qdqi_bulks *bulks = &p->twin.model.bulks;
    int64_t i = qdqi_bulk_index(field->data, field->len, bulks->n);
    ck_assert_int_ge(i, 0);
    ck_assert_uint_eq(bulks->rows[i].file, file);
    ck_assert_uint_eq(bulks->rows[i].size, n * sizeof *data);
    const uint8_t *bytes = p->twin.model.files[file].map + bulks->rows[i].offset;
    ck_assert_mem_eq(bytes, data, n * sizeof *data);
}

/* Returns whether the bytes for ONNX Runtime contain the text. */
static bool
contains(const struct qdqi_bytes *bytes, const char *text)
{
    return memmem(bytes->data, bytes->size, text, strlen(text)) != NULL;
}

UNIT_TEST(weights_stay_in_two_files)
{
    struct pair p;
    float data[108];
    builder_two_convs(&p.b, 13);
    for (size_t i = 0; i < 108; i++)
        data[i] = (float)(i + 1);
    /* One more weight, which is in a Constant and is not an initializer. */
    Onnx__TensorProto *constant = builder_weight(&p.b, "k", 1, (const int64_t[]){108});
    p.b.graph.n_initializer--;
    Onnx__NodeProto *node = builder_node(&p.b, "Constant", "constant", "", "k");
    builder_tensor(&p.b, node, "value", constant);
    join(&p, 0, NULL);
    check_graph(&p);
    check_bulk(&p, initializer(&p, "w"), 0, data, 108);
    check_bulk(&p, initializer(&p, "w_quantized_half"), 1, data, 108);
    check_bulk(&p, maker(&p, "k")->attribute[0]->t, 0, data, 108);
    check_bulk(&p, maker(&p, "k_quantized_half")->attribute[0]->t, 1, data, 108);
    struct qdqi_bytes bytes = {0};
    struct qdq_error err = {0};
    ck_assert_int_eq(qdqi_model_to_memory(&p.twin.model, &bytes, &err), QDQ_OK);
    ck_assert(contains(&bytes, "mapped0.onnx") && contains(&bytes, "mapped1.onnx"));
    free(bytes.data);
    close_pair(&p);
}

/* A caller could send another "w", but none does here: it is a constant in both
   halves. */
UNIT_LOOP(overridable_constants_are_no_inputs, 2)
{
    struct pair p;
    builder_two_convs(&p.b, 13);
    p.b.model.ir_version = _i ? 8 : 3;
    builder_input(&p.b, "w", QDQI_FLOAT32);
    builder_input(&p.b, "w2", QDQI_FLOAT32);
    builder_input(&p.b, "bias", QDQI_FLOAT32);
    join(&p, 1, (const char *const[]){"y"});
    check_graph(&p);
    ck_assert_int_eq(p.twin.model.proto->ir_version, _i ? 8 : 4);
    ck_assert_uint_eq(p.g->n_input, 1);
    ck_assert_str_eq(p.g->input[0]->name, "x");
    ck_assert_ptr_nonnull(initializer(&p, "w"));
    ck_assert_ptr_nonnull(initializer(&p, "w_quantized_half"));
    close_pair(&p);
}

/* --- models that do not fit together -------------------------------------- */

static void
other_opset(struct builder *b)
{
    b->opset.version = 14;
}
static void
other_input(struct builder *b)
{
    b->inputs[0]->name = qdqi_arena_strdup(b->arena, "x2");
    b->nodes[0]->input[0] = b->inputs[0]->name;
}
static void
more_inputs(struct builder *b)
{
    builder_input(b, "x2", QDQI_FLOAT32);
}
static void
more_outputs(struct builder *b)
{
    builder_output(b, "r", QDQI_FLOAT32);
}

static const struct {
    void (*change)(struct builder *b);
    const char *text;
} misfits[] = {
    {other_opset, "operator sets"},
    {other_input, "inputs"},
    {more_inputs, "inputs"},
    {more_outputs, "outputs"},
};

UNIT_ROWS(models_that_do_not_fit_are_refused, misfits)
{
    struct pair p;
    struct qdq_error err = {0};
    builder_two_convs(&p.b, 13);
    open_pair(&p);
    qdq_model_free(&p.f);
    misfits[_i].change(&p.b);
    ck_assert_int_eq(builder_open(&p.b, &p.f, &err), QDQ_OK);
    ck_assert_int_eq(qdqi_twin(p.f, p.q, NULL, 0, p.arena, &p.twin, &err),
                     QDQ_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.text, misfits[_i].text));
    close_pair(&p);
}

/* The outputs of a BatchNormalization in training mode, and whether there is a twin. */
static const struct {
    const char *outputs;
    bool is_used, fits;
} norms[] = {{"n", false, true},
             {"n,mean,var", false, true},
             {"n,mean", true, false},
             {"n,mean,var", true, false}};

UNIT_ROWS(a_running_mean_that_is_used_is_refused, norms)
{
    struct pair p;
    struct qdq_error err = {0};
    builder_two_convs(&p.b, 15);
    const char *const weights[] = {"s", "b", "m", "v"};
    for (size_t i = 0; i < 4; i++)
        builder_weight(&p.b, weights[i], 1, (const int64_t[]){2});
    builder_int(&p.b,
                builder_node(&p.b, "BatchNormalization", "norm", "y,s,b,m,v",
                             norms[_i].outputs),
                "training_mode", 1);
    builder_output(&p.b, "n", QDQI_FLOAT32);
    if (norms[_i].is_used)
        builder_output(&p.b, "mean", QDQI_FLOAT32);
    open_pair(&p);
    enum qdq_code code = qdqi_twin(p.f, p.q, NULL, 0, p.arena, &p.twin, &err);
    ck_assert_int_eq(code, norms[_i].fits ? QDQ_OK : QDQ_UNSUPPORTED);
    ck_assert(norms[_i].fits || strstr(err.text, "training mode"));
    close_pair(&p);
}

UNIT_TEST(every_allocation_may_fail)
{
    struct pair p;
    two_ifs(&p.b);
    open_pair(&p);
    enum qdq_code code = QDQ_NO_MEMORY;
    long n = 0;
    while (code != QDQ_OK) {
        struct qdqi_arena *arena = qdqi_arena_new();
        struct qdq_error err = {0};
        fail_at = ++n;
        code = qdqi_twin(p.f, p.q, (const char *const[]){"a", "y"}, 2, arena, &p.twin,
                         &err);
        bool reached = fail_at == 0;
        fail_at = 0;
        ck_assert_int_eq(code, reached ? QDQ_NO_MEMORY : QDQ_OK);
        qdqi_arena_free(&arena);
    }
    ck_assert_int_gt(n, 1);
    close_pair(&p);
}

UNIT_SUITE("twin")
