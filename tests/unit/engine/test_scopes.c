/* SPDX-License-Identifier: Apache-2.0 */
/* Nested graphs and local functions: names, order, places of edits, and inlining. */
#include "config.h"

#include "builder.h"
#include "transform/prepare/prepare.h"
#include "graph/edit/edit.h"

/* --- nested graphs -------------------------------------------------------- */

struct body {
    Onnx__GraphProto graph;
    Onnx__NodeProto *nodes[4];
    Onnx__ValueInfoProto *outputs[1];
};

/* Moves the last `n` nodes of the main graph into the body, whose output is
   `output`. */
static void
body_of(struct builder *b, struct body *body, size_t n, const char *output)
{
    onnx__graph_proto__init(&body->graph);
    b->graph.n_node -= n;
    memcpy(body->nodes, b->nodes + b->graph.n_node, n * sizeof *body->nodes);
    body->outputs[0] = builder_value(b, output, QDQI_FLOAT32);
    body->graph.node = body->nodes;
    body->graph.n_node = n;
    body->graph.output = body->outputs;
    body->graph.n_output = 1;
}

static void
own(struct builder *b, Onnx__NodeProto *owner, const char *name, struct body *body)
{
    Onnx__AttributeProto *a = builder_attribute(b, owner, name);
    a->has_type = 1;
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH;
    a->g = &body->graph;
}

/* Builds y = c ? relu(neg(x)) : abs(neg(x)), each in a branch, with the same names
   inside. */
static void
two_branches(struct builder *b, struct body bodies[2], const char *op)
{
    static const char *const operators[] = {"Relu", "Abs"};
    builder_init(b, 13);
    builder_input(b, "c", QDQI_BOOL);
    builder_input(b, "x", QDQI_FLOAT32);
    builder_node(b, "Identity", "before", "x", "h");
    for (int i = 0; i < 2; i++) {
        builder_node(b, "Neg", "same", "h", "t");
        builder_node(b, operators[i], "last", "t", "out");
        body_of(b, &bodies[i], 2, "out");
    }
    Onnx__NodeProto *node = builder_node(b, op, "owner", "c", "y");
    own(b, node, "then_branch", &bodies[0]);
    own(b, node, "else_branch", &bodies[1]);
    builder_output(b, "y", QDQI_FLOAT32);
}

static const struct qdqi_tensor *
tensor(const struct qdq_model *m, const char *name)
{
    const struct qdqi_tensor *t = qdqi_map_get(m->graph.tensors, name);
    ck_assert_msg(t != NULL, "there is no tensor %s", name);
    return t;
}

UNIT_TEST(names_are_one_tensors)
{
    struct builder b;
    struct body bodies[2];
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    two_branches(&b, bodies, "If");
    ck_assert_msg(!builder_open(&b, &m, &err), "%s", err.text);
    static const char *const names[] = {"before", "same",   "last",
                                        "same_1", "last_1", "owner"};
    static const size_t scopes[] = {0, 1, 1, 2, 2, 0};
    ck_assert_uint_eq(m->graph.n_nodes, 6);
    ck_assert_uint_eq(m->graph.n_scopes, 3);
    for (size_t i = 0; i < 6; i++) {
        ck_assert_str_eq(m->graph.nodes[i].name, names[i]);
        ck_assert_uint_eq(m->graph.nodes[i].scope, scopes[i]);
    }
    ck_assert_uint_eq(tensor(m, "t")->scope, 1);
    ck_assert_uint_eq(tensor(m, "t_1")->scope, 2);
    ck_assert_str_eq(m->graph.scopes[2].proto->output[0]->name, "out_1");
    ck_assert(tensor(m, "out_1")->is_output && !m->graph.scopes[2].is_opaque);
    /* Types pass into the branches and out; both branches use h, and no node outside
       uses their tensors. */
    ck_assert_int_eq(tensor(m, "t_1")->dtype, QDQI_FLOAT32);
    ck_assert_int_eq(tensor(m, "y")->dtype, QDQI_FLOAT32);
    const struct qdqi_use *use = tensor(m, "h")->uses;
    ck_assert_uint_eq(use->node, 1);
    ck_assert_uint_eq(use->next->node, 3);
    ck_assert_ptr_null(use->next->next);
    builder_close(&b, &m);
}

UNIT_TEST(graphs_of_other_operators_are_opaque)
{
    struct builder b;
    struct body bodies[2];
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    two_branches(&b, bodies, "Perhaps");
    ck_assert_msg(!builder_open(&b, &m, &err), "%s", err.text);
    ck_assert(m->graph.scopes[1].is_opaque && m->graph.scopes[2].is_opaque);
    builder_close(&b, &m);
}

UNIT_TEST(a_branch_does_not_see_the_other)
{
    struct builder b;
    struct body bodies[2];
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    two_branches(&b, bodies, "If");
    bodies[1].nodes[1]->input[0] = qdqi_arena_strdup(b.arena, "mine");
    bodies[0].nodes[0]->output[0] = qdqi_arena_strdup(b.arena, "mine");
    bodies[0].nodes[1]->input[0] = qdqi_arena_strdup(b.arena, "mine");
    ck_assert_int_eq(builder_open(&b, &m, &err), QDQ_INVALID_MODEL);
    ck_assert_str_eq(err.where, "last_1");
    builder_fini(&b);
}

/* A new reader of h, t or c goes right behind the node that computes the tensor. */
UNIT_TEST(places_are_in_the_tensors_graph)
{
    struct builder b;
    struct body bodies[2];
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    two_branches(&b, bodies, "If");
    ck_assert_msg(!builder_open(&b, &m, &err), "%s", err.text);
    ck_assert_uint_eq(qdqi_edit_behind(m, tensor(m, "h")), 5);
    ck_assert_uint_eq(qdqi_edit_behind(m, tensor(m, "c")), 0);
    ck_assert_uint_eq(qdqi_edit_behind(m, tensor(m, "t_1")), 4);
    ck_assert_uint_eq(qdqi_edit_behind(m, tensor(m, "out_1")), 6 + 2);
    ck_assert_uint_eq(qdqi_edit_behind(m, tensor(m, "y")), 6);
    /* Both branches read h, so the place is before the If. One branch reads t, so it
       is inside that one. */
    ck_assert_uint_eq(qdqi_edit_before_uses(m, tensor(m, "h")), 5);
    ck_assert_uint_eq(qdqi_edit_before_uses(m, tensor(m, "t_1")), 4);
    builder_close(&b, &m);
}

/* Adds a node and an initializer to a branch, and another initializer that both
   branches read. */
UNIT_TEST(edits_go_to_their_graphs)
{
    struct builder b;
    struct body bodies[2];
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    struct qdqi_arena *arena = qdqi_arena_new();
    const Onnx__ModelProto *edited = NULL;
    const float one = 1;
    two_branches(&b, bodies, "If");
    ck_assert_msg(!builder_open(&b, &m, &err), "%s", err.text);
    struct qdqi_edit *e = qdqi_edit_new(m, arena);
    qdqi_edit_add_initializer(e, "mine", QDQI_FLOAT32, 1, true, &one);
    qdqi_edit_add_initializer(e, "ours", QDQI_FLOAT32, 1, true, &one);
    const char *then_in[] = {"t", "ours"}, *else_in[] = {"ours", "mine"};
    qdqi_edit_add_node(e, 2, "Add", "n1", then_in, 2, "a1");
    qdqi_edit_add_node(e, 6 + 2, "Add", "n2", else_in, 2, "a2");
    qdqi_edit_set_input(e, 2, 0, "a1");
    ck_assert_int_eq(qdqi_edit_finish(e, &edited, &err), QDQ_OK);
    const Onnx__NodeProto *owner = edited->graph->node[1];
    const Onnx__GraphProto *yes = owner->attribute[0]->g, *no = owner->attribute[1]->g;
    ck_assert_uint_eq(edited->graph->n_node, 2);
    ck_assert_uint_eq(yes->n_node, 3);
    ck_assert_str_eq(yes->node[1]->name, "n1");
    ck_assert_str_eq(yes->node[2]->input[0], "a1");
    ck_assert_uint_eq(no->n_node, 3);
    ck_assert_str_eq(no->node[2]->name, "n2");
    ck_assert_uint_eq(yes->n_initializer, 0);
    ck_assert_uint_eq(no->n_initializer, 1);
    ck_assert_str_eq(no->initializer[0]->name, "mine");
    ck_assert_uint_eq(edited->graph->n_initializer, 1);
    ck_assert_str_eq(edited->graph->initializer[0]->name, "ours");
    /* The source model is unchanged. */
    ck_assert_uint_eq(m->graph.scopes[1].proto->n_node, 2);
    ck_assert_str_eq(m->graph.nodes[2].proto->input[0], "t");
    qdqi_arena_free(&arena);
    builder_close(&b, &m);
}

/* --- local functions ------------------------------------------------------ */

/* A function f(a) = op(a, w) in the domain "local", with a constant w inside. It may
   call `inner`. */
struct function {
    Onnx__FunctionProto proto;
    Onnx__NodeProto *nodes[2];
    char *inputs[1], *outputs[1];
};

static Onnx__FunctionProto *
function_of(struct builder *b, struct function *f, const char *name, size_t n)
{
    onnx__function_proto__init(&f->proto);
    b->graph.n_node -= n;
    memcpy(f->nodes, b->nodes + b->graph.n_node, n * sizeof *f->nodes);
    f->inputs[0] = qdqi_arena_strdup(b->arena, "a");
    f->outputs[0] = qdqi_arena_strdup(b->arena, "r");
    f->proto.name = qdqi_arena_strdup(b->arena, name);
    f->proto.domain = qdqi_arena_strdup(b->arena, "local");
    f->proto.node = f->nodes;
    f->proto.n_node = n;
    f->proto.input = f->inputs;
    f->proto.output = f->outputs;
    f->proto.n_input = f->proto.n_output = 1;
    f->proto.opset_import = b->opsets;
    f->proto.n_opset_import = 1;
    return &f->proto;
}

static Onnx__NodeProto *
call(struct builder *b, const char *function, const char *name, const char *input,
     const char *output)
{
    Onnx__NodeProto *node = builder_node(b, function, name, input, output);
    node->domain = qdqi_arena_strdup(b->arena, "local");
    return node;
}

/* Returns the prepared model; NULL when nothing had to be changed. */
static struct qdq_model *
prepare(struct builder *b, struct qdq_model **source)
{
    struct qdq_spec spec;
    struct qdq_model *ret = NULL;
    struct qdq_error err = {0};
    qdq_spec_init(&spec);
    ck_assert_msg(!builder_open(b, source, &err), "%s", err.text);
    ck_assert_msg(!qdq_model_prepare(*source, &spec, &ret, &err), "%s", err.text);
    return ret;
}

UNIT_TEST(functions_with_layers_are_inlined)
{
    struct builder b;
    struct function pool, act, outer;
    struct qdq_model *m = NULL;
    builder_init(&b, 13);
    builder_input(&b, "x", QDQI_FLOAT32);
    builder_node(&b, "GlobalAveragePool", "pool", "a", "t");
    builder_node(&b, "Relu", "relu", "t", "r");
    Onnx__FunctionProto *functions[3] = {function_of(&b, &pool, "pool", 2)};
    builder_node(&b, "Sigmoid", "s", "a", "r");
    functions[1] = function_of(&b, &act, "act", 1);
    call(&b, "pool", "again", "a", "t");
    call(&b, "act", "", "t", "r");
    functions[2] = function_of(&b, &outer, "outer", 2);
    call(&b, "outer", "one", "x", "h");
    call(&b, "outer", "two", "h", "y");
    builder_output(&b, "y", QDQI_FLOAT32);
    b.model.functions = functions;
    b.model.n_functions = 3;
    struct qdq_model *p = prepare(&b, &m);
    ck_assert_ptr_nonnull(p);
    static const char *const names[] = {"one/again/pool", "one/again/relu", "@h",
                                        "two/again/pool", "two/again/relu", "@y"};
    ck_assert_uint_eq(p->graph.n_nodes, 6);
    for (size_t i = 0; i < 6; i++)
        ck_assert_str_eq(p->graph.nodes[i].name, names[i]);
    ck_assert_str_eq(p->graph.nodes[0].proto->input[0], "x");
    ck_assert_str_eq(p->graph.nodes[3].proto->input[0], "h");
    ck_assert_str_eq(p->graph.nodes[5].proto->output[0], "y");
    /* Only functions that are still called stay in the model. */
    ck_assert_uint_eq(p->proto->n_functions, 1);
    ck_assert_str_eq(p->proto->functions[0]->name, "act");
    ck_assert_uint_eq(m->graph.n_nodes, 2);
    qdq_model_free(&p);
    builder_close(&b, &m);
}

UNIT_TEST(functions_without_layers_stay)
{
    struct builder b;
    struct function act;
    struct qdq_model *m = NULL;
    builder_init(&b, 13);
    builder_input(&b, "x", QDQI_FLOAT32);
    builder_node(&b, "Sigmoid", "s", "a", "r");
    Onnx__FunctionProto *functions[1] = {function_of(&b, &act, "act", 1)};
    call(&b, "act", "one", "x", "y");
    builder_output(&b, "y", QDQI_FLOAT32);
    b.model.functions = functions;
    b.model.n_functions = 1;
    ck_assert_ptr_null(prepare(&b, &m));
    builder_close(&b, &m);
}

/* Each function calls the one before it twice, which doubles the nodes. Functions without
   layers are not inlined here, but ONNX Runtime inlines them. */
static const struct {
    const char *ops[2]; /* of the first function */
    int n;
} doubling[] = {{{"Relu", "GlobalAveragePool"}, 20},
                {{"Sigmoid", "Sigmoid"}, 40},
                {{"Sigmoid", "Sigmoid"}, 90}};
enum { N_DOUBLING = sizeof doubling / sizeof *doubling, MOST_FUNCTIONS = 90 };

UNIT_LOOP(functions_that_double_are_refused, N_DOUBLING)
{
    int n = doubling[_i].n;
    struct builder b;
    struct function rows[MOST_FUNCTIONS];
    Onnx__FunctionProto *functions[MOST_FUNCTIONS];
    struct qdq_spec spec;
    struct qdq_model *m = NULL, *ret = NULL;
    struct qdq_error err = {0};
    char name[16];
    qdq_spec_init(&spec);
    builder_init(&b, 13);
    builder_input(&b, "x", QDQI_FLOAT32);
    for (int i = 0; i < n; i++) {
        if (i == 0)
            builder_node(&b, doubling[_i].ops[0], "r", "a", "t");
        else
            call(&b, name, "one", "a", "t");
        if (i == 0)
            builder_node(&b, doubling[_i].ops[1], "p", "t", "r");
        else
            call(&b, name, "two", "t", "r");
        snprintf(name, sizeof name, "f%d", i);
        functions[i] = function_of(&b, &rows[i], name, 2);
    }
    call(&b, name, "all", "x", "y");
    builder_output(&b, "y", QDQI_FLOAT32);
    b.model.functions = functions;
    b.model.n_functions = (size_t)n;
    ck_assert_msg(!builder_open(&b, &m, &err), "%s", err.text);
    ck_assert_int_eq(qdq_model_prepare(m, &spec, &ret, &err), QDQ_LIMIT_EXCEEDED);
    ck_assert_ptr_null(ret);
    builder_close(&b, &m);
}

UNIT_SUITE("scopes")
