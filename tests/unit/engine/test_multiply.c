/* SPDX-License-Identifier: Apache-2.0 */
/* A Mul of its own takes in the factors of an activation's channels: where it stands, what it
   multiplies by, who reads what it makes, and what a plan makes of it. */
#include "config.h"

#include "transform/equalize/readers.h"
#include "transform/equalize/rescale.h"
#include "equalize_nets.h"
#include "failing.h"
#include "plan/placement/plan.h"
#include "qdq/targets.h"

/* --- models --------------------------------------------------------------- */

/* Builds x -> Sigmoid -> `name`, which two MatMuls of five channels and an Add read. */
static void
shared_by_two(struct builder *b, const char *name)
{
    char first[96], second[96], sum[96];
    snprintf(first, sizeof first, "%s,w1", name);
    snprintf(second, sizeof second, "%s,w2", name);
    snprintf(sum, sizeof sum, "%s,p", name);
    begin(b);
    SKEWED(b, "w1", -1, 5, 5);
    SKEWED(b, "w2", -1, 5, 3);
    builder_node(b, "Sigmoid", "sigmoid", "x", name);
    builder_node(b, "MatMul", "first", first, "p");
    builder_node(b, "MatMul", "second", second, "q");
    builder_node(b, "Add", "add", sum, "y");
    builder_output(b, "q", QDQI_FLOAT32);
}

static void
two_matmuls(struct builder *b)
{
    shared_by_two(b, "s");
}

static void
long_name(struct builder *b)
{
    shared_by_two(b, "/encoder/layer.0/attention/norm/Sigmoid_output_0");
}

static void
taken_names(struct builder *b)
{
    shared_by_two(b, "s");
    builder_node(b, "Relu", "s_Mul", "x", "s_smoothed");
    builder_output(b, "s_smoothed", QDQI_FLOAT32);
}

static void
two_convs(struct builder *b)
{
    begin(b);
    SKEWED(b, "w1", -1, 5, 5, 1);
    SKEWED(b, "w2", -1, 2, 5, 3);
    builder_node(b, "Sigmoid", "sigmoid", "x", "s");
    builder_node(b, "Conv", "first", "s,w1", "p");
    builder_node(b, "Conv", "second", "s,w2", "q");
    builder_node(b, "Add", "add", "s,p", "y");
    builder_output(b, "q", QDQI_FLOAT32);
}

/* The MatMul reads another axis than the Conv, which is the first to read. */
static void
two_axes(struct builder *b)
{
    begin(b);
    SKEWED(b, "w1", -1, 5, 5, 1);
    SKEWED(b, "w2", -1, 5, 3);
    builder_node(b, "Sigmoid", "sigmoid", "x", "s");
    builder_node(b, "Conv", "first", "s,w1", "y");
    builder_node(b, "MatMul", "second", "s,w2", "q");
    builder_output(b, "q", QDQI_FLOAT32);
}

static void
graph_input(struct builder *b)
{
    begin(b);
    SKEWED(b, "w1", -1, 5, 3);
    builder_node(b, "MatMul", "first", "x,w1", "y");
}

/* The activation is an output of the model, too. */
static void
output_too(struct builder *b)
{
    begin(b);
    SKEWED(b, "w1", -1, 5, 3);
    builder_node(b, "Sigmoid", "sigmoid", "x", "s");
    builder_node(b, "MatMul", "first", "s,w1", "y");
    builder_output(b, "s", QDQI_FLOAT32);
}

static void
shared_weight(struct builder *b)
{
    begin(b);
    SKEWED(b, "w1", -1, 5, 5);
    builder_node(b, "Sigmoid", "sigmoid", "x", "s");
    builder_node(b, "MatMul", "first", "s,w1", "p");
    builder_node(b, "MatMul", "second", "p,w1", "y");
}

static void
pairs_of_its_own(struct builder *b)
{
    begin(b);
    SKEWED(b, "w1", -1, 5, 3);
    *(float *)builder_weight(b, "scale", 0, NULL)->raw_data.data = 0.5F;
    builder_node(b, "QuantizeLinear", "q", "x,scale", "i");
    builder_node(b, "DequantizeLinear", "dq", "i,scale", "d");
    builder_node(b, "Identity", "identity", "d", "s");
    builder_node(b, "MatMul", "first", "s,w1", "y");
}

/* --- multiplied models ---------------------------------------------------- */

struct multiplied {
    struct qdq_model *source, *made; /* made is NULL when nothing could be multiplied */
    struct qdqi_arena *arena;
    struct qdqi_chains chains;
};

/* Factor of channel c. */
static double
factor(size_t c)
{
    return exp2((double)(c * 3 % 5) - 2);
}

/* Multiplies the first activation. */
static enum qdq_code
multiply(struct multiplied *m, struct qdq_error *err)
{
    enum qdq_code code = qdqi_chains_find(m->source, m->arena, &m->chains, err);
    if (code)
        return code;
    struct qdqi_chain *chain = &m->chains.all[0];
    ck_assert_ptr_nonnull(chain->reason);
    qdqi_readers_multiply(m->source, chain, m->arena);
    if (qdqi_arena_exhausted(m->arena))
        return QDQ_NO_MEMORY;
    if (!chain->is_multiplied)
        return QDQ_OK;
    ck_assert_ptr_null(chain->reason);
    double *factors = qdqi_arena_array(m->arena, chain->channels, sizeof *factors);
    if (!factors)
        return QDQ_NO_MEMORY;
    for (size_t c = 0; c < chain->channels; c++)
        factors[c] = factor(c);
    const struct qdqi_scaling scaling = {chain, factors};
    return qdqi_rescale(m->source, &scaling, 1, m->arena, &m->made, err);
}

static struct multiplied
multiplied(struct builder *b, void (*build)(struct builder *b))
{
    struct multiplied m = {.arena = qdqi_arena_new()};
    struct qdq_error err = {0};
    build(b);
    ck_assert_msg(builder_open(b, &m.source, &err) == QDQ_OK, "%s", err.text);
    ck_assert_msg(multiply(&m, &err) == QDQ_OK, "%s", err.text);
    return m;
}

static void
end(struct builder *b, struct multiplied *m)
{
    qdq_model_free(&m->made);
    qdq_model_free(&m->source);
    qdqi_arena_free(&m->arena);
    builder_fini(b);
}

static const struct qdqi_node *
node_of(const struct qdq_model *m, const char *name)
{
    const struct qdqi_node *node = qdqi_map_get(m->graph.by_name, name);
    ck_assert_msg(node, "no node %s", name);
    return node;
}

static float
element(const struct qdq_model *m, const struct qdqi_tensor *t, size_t i)
{
    struct qdqi_constant c;
    ck_assert_int_eq(qdqi_constant_read(m, t, &c, NULL), QDQ_OK);
    ck_assert_uint_lt(i, c.n);
    return qdqi_float_at(c.bytes, i);
}

/* --- tests ---------------------------------------------------------------- */

static const struct {
    const char *what;
    void (*build)(struct builder *b);
    const char *mul;     /* name of the Mul; NULL: there is none */
    const char *factors; /* name of what it multiplies by */
    size_t rank;         /* of these */
    const char *with;    /* nodes that read what it makes */
    const char *without; /* nodes that read the activation */
} cases[] = {
    {"two MatMuls and an Add", two_matmuls, "s_Mul", "s_factors", 1, "first,second",
     "add"},
    {"a long name", long_name, "smooth0_Mul", "smooth0_factors", 1, "first,second",
     "add"},
    {"names that are taken", taken_names, "s_Mul_1", "s_factors", 1, "first,second",
     "add"},
    {"two Convs", two_convs, "s_Mul", "s_factors", 2, "first,second", "add"},
    {"two axes", two_axes, "s_Mul", "s_factors", 2, "first", "second"},
    {"an input of the graph", graph_input, "x_Mul", "x_factors", 1, "first", ""},
    {"an output, too", output_too, "s_Mul", "s_factors", 1, "first", ""},
    {"a shared weight", shared_weight, NULL, NULL, 0, "", ""},
    {"pairs of the model", pairs_of_its_own, NULL, NULL, 0, "", ""},
};

/* Checks the first input of the nodes of a list. */
static void
check_reads(const struct qdq_model *m, const char *nodes, const char *tensor,
            const char *what)
{
    char list[64], *save;
    snprintf(list, sizeof list, "%s", nodes);
    for (char *name = strtok_r(list, ",", &save); name;
         name = strtok_r(NULL, ",", &save))
        ck_assert_msg(strcmp(node_of(m, name)->inputs[0]->name, tensor) == 0,
                      "%s: %s reads %s", what, name, node_of(m, name)->inputs[0]->name);
}

UNIT_ROWS(a_mul_takes_the_factors_in, cases)
{
    struct builder b;
    struct multiplied m = multiplied(&b, cases[_i].build);
    const char *what = cases[_i].what;
    if (!cases[_i].mul) {
        ck_assert_ptr_null(m.made);
        ck_assert_ptr_nonnull(m.chains.all[0].reason);
        end(&b, &m);
        return;
    }
    const struct qdqi_node *mul = node_of(m.made, cases[_i].mul);
    ck_assert_str_eq(mul->proto->op_type, "Mul");
    ck_assert_str_eq(mul->inputs[0]->name, m.chains.all[0].at->name);
    ck_assert_str_eq(mul->inputs[1]->name, cases[_i].factors);
    ck_assert_uint_eq(mul->inputs[1]->view.rank, cases[_i].rank);
    for (size_t a = 0; a < cases[_i].rank; a++)
        ck_assert_int_eq(mul->inputs[1]->view.dims[a], a == 0 ? 5 : 1);
    for (size_t c = 0; c < 5; c++)
        ck_assert_float_eq(element(m.made, mul->inputs[1], c), (float)factor(c));
    check_reads(m.made, cases[_i].with, mul->outputs[0]->name, what);
    check_reads(m.made, cases[_i].without, mul->inputs[0]->name, what);
    ck_assert_uint_eq(m.made->graph.n_nodes, m.source->graph.n_nodes + 1);
    ck_assert(qdqi_node_smooths(m.made, mul));
    ck_assert(!qdqi_node_smooths(m.made, node_of(m.made, "first")));
    end(&b, &m);
}

/* The weights of the readers are divided, exactly; no other number changes. */
UNIT_TEST(weights_are_divided)
{
    struct builder b;
    struct multiplied m = multiplied(&b, two_matmuls);
    static const char *const layers[] = {"first", "second"};
    for (size_t k = 0; k < 2; k++) {
        const struct qdqi_tensor *before = node_of(m.source, layers[k])->inputs[1];
        const struct qdqi_tensor *after = node_of(m.made, layers[k])->inputs[1];
        const size_t outputs = k ? 3 : 5;
        for (size_t i = 0; i < 5 * outputs; i++)
            ck_assert_float_eq(element(m.made, after, i) * (float)factor(i / outputs),
                               element(m.source, before, i));
    }
    end(&b, &m);
}

/* Plans the model for onnxruntime, all layers in integers, with an entry for the Mul. */
static void
plan(const struct qdq_model *m, struct qdq_plan **ret)
{
    static const char *const names[] = {"s_Mul"};
    static const struct qdq_layer_entry entry = {.by = QDQ_BY_NAME,
                                                 .names = names,
                                                 .n_names = 1,
                                                 .quantize_input = true,
                                                 .quantize_weight = true};
    struct qdq_spec spec;
    struct qdq_error err = {0};
    qdq_spec_init(&spec);
    spec.target = qdq_target_find("onnxruntime");
    spec.recipe = QDQ_RECIPE_NONE;
    spec.layers = &entry;
    spec.n_layers = 1;
    qdq_spec_complete(&spec);
    ck_assert_msg(qdq_plan_make(NULL, m, &spec, ret, &err) == QDQ_OK, "%s", err.text);
}

UNIT_TEST(the_mul_is_never_quantized)
{
    struct builder b;
    struct multiplied m = multiplied(&b, two_matmuls);
    struct qdq_plan *p;
    plan(m.made, &p);
    const struct qdq_plan_view *view = &p->view;
    bool seen = false, paired = false;
    for (size_t i = 0; i < view->n_layers; i++) {
        const struct qdq_layer *layer = &view->layers[i];
        if (strcmp(layer->name, "s_Mul") != 0)
            continue;
        seen = true;
        ck_assert_uint_eq(layer->n_inputs, 0);
        ck_assert_int_eq(layer->weight_input, -1);
        ck_assert(p->reads_raw[i]);
        ck_assert_str_eq(layer->reason,
                         "it divides the channels of an activation that is smoothed");
    }
    ck_assert(seen);
    for (size_t i = 0; i < view->n_tensors; i++)
        paired = paired || strcmp(view->tensors[i], "s_smoothed") == 0;
    ck_assert(paired);
    qdq_plan_free(&p);
    end(&b, &m);
}

UNIT_TEST(every_allocation_may_fail)
{
    struct builder b;
    struct multiplied m = multiplied(&b, two_convs);
    enum qdq_code code = QDQ_NO_MEMORY;
    long n = 0;
    qdq_model_free(&m.made);
    while (code != QDQ_OK && ++n < 1000) {
        struct multiplied again = {.source = m.source};
        struct qdq_error err = {0};
        fail_at = n;
        again.arena = qdqi_arena_new();
        code = again.arena ? multiply(&again, &err) : QDQ_NO_MEMORY;
        bool reached = fail_at == 0;
        fail_at = 0;
        ck_assert_int_eq(code, reached ? QDQ_NO_MEMORY : QDQ_OK);
        ck_assert_int_eq(again.made != NULL, code == QDQ_OK);
        qdq_model_free(&again.made);
        qdqi_arena_free(&again.arena);
    }
    ck_assert_int_gt(n, 5);
    end(&b, &m);
}

UNIT_SUITE("multiply")
