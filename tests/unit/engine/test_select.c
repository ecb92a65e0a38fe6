/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which entry of the spec decides a node, among the entries and against the defaults,
 * and the warnings about entries that match nothing. Cases are tested in test_cases.c.
 */
#include "config.h"

#include "builder.h"
#include "ground/base/glob.h"
#include "plan/placement/select.h"

#define NAMES(...) ((const char *const[]){__VA_ARGS__})
#define INDEX(...) ((const int[]){__VA_ARGS__})
#define N(array) (sizeof(array) / sizeof *(array))

#define BY(kind, ...) \
    .by = QDQ_BY_##kind, .names = NAMES(__VA_ARGS__), .n_names = N(NAMES(__VA_ARGS__))
#define AT(...) .index = INDEX(__VA_ARGS__), .n_index = N(INDEX(__VA_ARGS__))
#define INPUT .quantize_input = true
#define WEIGHT .quantize_weight = true
#define BOTH INPUT, WEIGHT

enum { MAX_ENTRIES = 4 };

/* The result of some entries: layers with a pair as "node:inputs[w]" in file order,
   or an error; the reason of one layer; the codes of the warnings. */
static const struct {
    enum qdq_mode mode;
    bool warn; /* on_unmatched */
    size_t n;
    struct qdq_layer_entry entries[MAX_ENTRIES];
    const char *expect;
    const char *of, *reason; /* NULL: the reason is not checked */
    const char *warnings;    /* "unmatched no_support", or NULL */
    enum qdq_code code;
    const char *where, *text; /* place and text of the error */
} rows[] = {
    {.expect = "block/conv1:0w block/conv2:0w fc:0w gap:0",
     .of = "block/conv1",
     .reason = "default"},
    {.expect = "block/conv1:0w block/conv2:0w fc:0w gap:0",
     .of = "block/add",
     .reason = "off by default"},
    /* Names. */
    {.n = 1,
     .entries = {{BY(NAME, "block/add"), BOTH}},
     .expect = "block/conv1:0w block/conv2:0w block/add:01 fc:0w gap:0",
     .of = "block/add",
     .reason = "layers[0]"},
    {.n = 1,
     .entries = {{BY(NAME, "block/add"), AT(1, 1), BOTH}},
     .expect = "block/conv1:0w block/conv2:0w block/add:1 fc:0w gap:0"},
    {.n = 1,
     .entries = {{BY(NAME, "block/conv1", "fc"), INPUT}},
     .expect = "block/conv1:0 block/conv2:0w fc:0 gap:0"},
    {.n = 1,
     .entries = {{BY(NAME, "block/conv1"), WEIGHT}},
     .expect = "block/conv1:w block/conv2:0w fc:0w gap:0"},
    {.n = 1,
     .entries = {{BY(NAME, "block/conv1")}},
     .expect = "block/conv2:0w fc:0w gap:0",
     .of = "block/conv1",
     .reason = "layers[0]"},
    {.n = 1,
     .entries = {{BY(NAME, "block/add"), AT(0), WEIGHT}},
     .expect = "block/conv1:0w block/conv2:0w fc:0w gap:0"},
    {.n = 1,
     .entries = {{BY(NAME, "@summed"), BOTH}},
     .expect = "block/conv1:0w block/conv2:0w block/add:01 fc:0w gap:0"},
    {.n = 1,
     .entries = {{BY(NAME, "fc/bias"), WEIGHT}},
     .expect = "block/conv1:0w block/conv2:0w fc:w gap:0",
     .of = "fc",
     .reason = "layers[0]"},
    {.n = 1,
     .entries = {{BY(NAME, "block/relu"), BOTH}},
     .expect = "block/conv1:0w block/relu:0 block/conv2:0w fc:0w gap:0"},
    {.n = 1,
     .entries = {{BY(NAME, "swish"), BOTH}},
     .expect = "block/conv1:0w block/conv2:0w fc:0w swish:01 gap:0"},
    {.n = 1,
     .entries = {{BY(NAME, "counts"), BOTH}},
     .expect = "block/conv1:0w block/conv2:0w fc:0w gap:0",
     .of = "counts",
     .reason = "integer tensor",
     .warnings = "not_quantized"},
    /* Classes, with their flags. */
    {.n = 1,
     .entries = {{BY(CLASS, "Add"), BOTH}},
     .expect = "block/conv1:0w block/conv2:0w block/add:01 fc:0w gap:0"},
    {.n = 1,
     .entries = {{BY(CLASS, "Add"), AT(0), BOTH}},
     .expect = "block/conv1:0w block/conv2:0w block/add:0 fc:0w gap:0"},
    {.n = 1,
     .entries = {{BY(CLASS, "Conv2D"), INPUT}},
     .expect = "block/conv1:0 block/conv2:0 fc:0w gap:0"},
    {.n = 1, .entries = {{BY(CLASS, "Conv")}}, .expect = "fc:0w gap:0"},
    {.n = 1,
     .entries = {{BY(CLASS, "MatMul"), WEIGHT}},
     .expect = "block/conv1:0w block/conv2:0w fc:w gap:0"},
    {.n = 1,
     .entries = {{BY(CLASS, "Dense"), WEIGHT}},
     .expect = "block/conv1:0w block/conv2:0w fc:w gap:0"},
    {.n = 1,
     .entries = {{BY(CLASS, "Mul"), BOTH}},
     .expect = "block/conv1:0w block/conv2:0w fc:0w gap:0",
     .warnings = "unmatched"},
    {.n = 1,
     .entries = {{BY(CLASS, "Sigmoid"), BOTH}},
     .expect = "block/conv1:0w block/conv2:0w fc:0w sigmoid:0 gap:0"},
    {.n = 1,
     .entries = {{BY(CLASS, "DepthwiseConv2D"), BOTH}},
     .expect = "block/conv1:0w block/conv2:0w fc:0w gap:0",
     .warnings = "unmatched"},
    /* Globs. */
    {.n = 1,
     .entries = {{BY(MATCH, "block/*"), INPUT}},
     .expect = "block/conv1:0 block/conv2:0 block/add:01 fc:0w gap:0"},
    {.n = 1, .entries = {{BY(MATCH, "*conv?")}}, .expect = "fc:0w gap:0"},
    {.n = 1,
     .entries = {{BY(MATCH, "*relu")}},
     .expect = "block/conv1:0w block/conv2:0w fc:0w gap:0"},
    /* Precedence: a name before a glob before a class; among equals the later entry
       wins. */
    {.n = 2,
     .entries = {{BY(NAME, "block/add"), AT(1), BOTH}, {BY(CLASS, "Add"), BOTH}},
     .expect = "block/conv1:0w block/conv2:0w block/add:1 fc:0w gap:0",
     .of = "block/add",
     .reason = "layers[0]"},
    {.n = 3,
     .entries = {{BY(NAME, "block/add"), AT(1), BOTH},
                 {BY(MATCH, "*add"), AT(0), BOTH},
                 {BY(CLASS, "Add"), BOTH}},
     .expect = "block/conv1:0w block/conv2:0w block/add:1 fc:0w gap:0"},
    {.n = 2,
     .entries = {{BY(MATCH, "*add"), AT(0), BOTH}, {BY(CLASS, "Add"), BOTH}},
     .expect = "block/conv1:0w block/conv2:0w block/add:0 fc:0w gap:0"},
    {.n = 2,
     .entries = {{BY(NAME, "fc"), INPUT}, {BY(NAME, "fc"), WEIGHT}},
     .expect = "block/conv1:0w block/conv2:0w fc:w gap:0",
     .of = "fc",
     .reason = "layers[1]"},
    {.n = 3,
     .entries = {{BY(CLASS, "Conv"), INPUT},
                 {BY(CLASS, "Conv2D"), WEIGHT},
                 {BY(CLASS, "Conv"), BOTH}},
     .expect = "block/conv1:0w block/conv2:0w fc:0w gap:0",
     .of = "block/conv1",
     .reason = "layers[2]"},
    /* Partial mode. */
    {.mode = QDQ_MODE_PARTIAL,
     .n = 1,
     .entries = {{BY(CLASS, "Dense"), BOTH}},
     .expect = "fc:0w",
     .of = "block/conv1",
     .reason = "not selected"},
    {.mode = QDQ_MODE_PARTIAL,
     .n = 2,
     .entries = {{BY(NAME, "block/conv1"), WEIGHT}, {BY(CLASS, "Add"), BOTH}},
     .expect = "block/conv1:w block/add:01"},
    {.mode = QDQ_MODE_PARTIAL,
     .warn = true,
     .n = 1,
     .entries = {{BY(NAME, "ghost"), BOTH}},
     .expect = "",
     .warnings = "unmatched nothing_to_quantize"},
    {.mode = QDQ_MODE_PARTIAL,
     .code = QDQ_INVALID_SPEC,
     .where = "/mode",
     .text = "neither layers nor cases"},
    /* Entries that match nothing. */
    {.n = 2,
     .entries = {{BY(CLASS, "Add"), BOTH}, {BY(NAME, "ghost"), BOTH}},
     .code = QDQ_UNMATCHED,
     .where = "/layers/1/name",
     .text = "'ghost'"},
    {.n = 1,
     .entries = {{BY(NAME, "fc", "ghost"), .is_list = true, BOTH}},
     .code = QDQ_UNMATCHED,
     .where = "/layers/0/name/1",
     .text = "'ghost'"},
    {.n = 1,
     .entries = {{BY(NAME, "@x"), BOTH}},
     .code = QDQ_UNMATCHED,
     .where = "/layers/0/name",
     .text = "'@x'"},
    {.warn = true,
     .n = 1,
     .entries = {{BY(NAME, "fc", "ghost"), WEIGHT}},
     .expect = "block/conv1:0w block/conv2:0w fc:w gap:0",
     .warnings = "unmatched"},
    {.n = 1,
     .entries = {{BY(MATCH, "head/*"), BOTH}},
     .code = QDQ_UNMATCHED,
     .where = "/layers/0/match",
     .text = "matches no node"},
    {.n = 1,
     .entries = {{BY(MATCH, "*relu"), BOTH}},
     .code = QDQ_UNMATCHED,
     .where = "/layers/0/match",
     .text = "asked for by name or class"},
    {.n = 1,
     .entries = {{BY(NAME, "block/add"), AT(0, 2), BOTH}},
     .code = QDQ_UNMATCHED,
     .where = "/layers/0/quantization_index/1",
     .text = "input 2 of 'block/add'"},
    {.n = 1,
     .entries = {{BY(NAME, "fc"), AT(1), BOTH}},
     .code = QDQ_UNMATCHED,
     .where = "/layers/0/quantization_index/0",
     .text = "has no data there"},
    {.warn = true,
     .n = 1,
     .entries = {{BY(CLASS, "Add"), AT(1, 5), BOTH}},
     .expect = "block/conv1:0w block/conv2:0w block/add:1 fc:0w gap:0",
     .warnings = "unmatched unmatched"}, /* `counts` is an Add, too */
    {.n = 1,
     .entries = {{BY(CLASS, "conv2d"), BOTH}},
     .code = QDQ_INVALID_SPEC,
     .where = "/layers/0/class",
     .text = "did you mean \"Conv2D\""},
    {.warn = true,
     .n = 1,
     .entries = {{BY(CLASS, "GlobalMaxPool"), BOTH}},
     .code = QDQ_INVALID_SPEC,
     .where = "/layers/0/class",
     .text = "layer_support"},
    {.n = 1,
     .entries = {{BY(NAME, "gmp"), BOTH}},
     .code = QDQ_UNSUPPORTED,
     .where = "/layers/0/name",
     .text = "GlobalMaxPool"},
    {.n = 1,
     .entries = {{BY(NAME, "gmp")}},
     .expect = "block/conv1:0w block/conv2:0w fc:0w gap:0"},
    {.warn = true,
     .n = 1,
     .entries = {{BY(NAME, "gmp"), BOTH}},
     .expect = "block/conv1:0w block/conv2:0w fc:0w gap:0",
     .warnings = "no_support"},
};

/* Each test has one model and its plan. */
static struct builder b;
static struct qdq_model *m;
static struct qdq_plan *plan;
static struct qdq_error err;
static struct qdq_spec spec;

/* Builds a block of two convolutions, a Dense made of MatMul and Add, a swish, and
   pools. */
static void
set_up(void)
{
    b = (struct builder){0};
    err = (struct qdq_error){0};
    qdq_spec_init(&spec);
    builder_init(&b, 17);
    builder_input(&b, "x", QDQI_FLOAT32);
    builder_input(&b, "i", QDQI_INT64);
    builder_weight(&b, "w", 4, (const int64_t[]){4, 4, 1, 1});
    builder_weight(&b, "w2", 2, (const int64_t[]){4, 4});
    builder_weight(&b, "bias", 1, (const int64_t[]){4});
    builder_node(&b, "Conv", "block/conv1", "x,w", "c1");
    builder_node(&b, "Relu", "block/relu", "c1", "r1");
    builder_node(&b, "Conv", "block/conv2", "r1,w", "c2");
    builder_node(&b, "Add", "block/add", "r1,c2", "summed");
    builder_node(&b, "MatMul", "fc", "summed,w2", "m");
    builder_node(&b, "Add", "fc/bias", "m,bias", "f");
    builder_node(&b, "Sigmoid", "sigmoid", "f", "s");
    builder_node(&b, "Mul", "swish", "f,s", "v");
    builder_node(&b, "GlobalAveragePool", "gap", "v", "g");
    builder_node(&b, "GlobalMaxPool", "gmp", "v", "h");
    builder_node(&b, "Add", "counts", "i,i", "j");
    builder_output(&b, "h", QDQI_FLOAT32);
    ck_assert_msg(builder_open(&b, &m, &err) == QDQ_OK, "%s", err.text);
}

static void
tear_down(void)
{
    qdq_plan_free(&plan);
    builder_close(&b, &m);
}

/* Returns the layers with a pair, as in "block/add:01 fc:0w". */
static const char *
shown(const struct qdq_plan_view *view)
{
    static char text[512];
    size_t n = 0;
    *text = '\0';
    for (size_t i = 0; i < view->n_layers; i++) {
        const struct qdq_layer *l = &view->layers[i];
        if (!l->n_inputs && l->weight_input < 0)
            continue;
        n +=
            (size_t)snprintf(text + n, sizeof text - n, "%s%s:", n ? " " : "", l->name);
        for (size_t k = 0; k < l->n_inputs; k++)
            n += (size_t)snprintf(text + n, sizeof text - n, "%d",
                                  l->quantized_inputs[k]);
        if (l->weight_input >= 0)
            n += (size_t)snprintf(text + n, sizeof text - n, "w");
    }
    return text;
}

static const struct qdq_layer *
layer_of(const struct qdq_plan_view *view, const char *name)
{
    for (size_t i = 0; i < view->n_layers; i++)
        if (strcmp(view->layers[i].name, name) == 0)
            return &view->layers[i];
    ck_abort_msg("no layer %s", name);
    return NULL;
}

/* Returns the codes of the warnings, without those about TensorRT's slow kernels, and about what
   ONNX Runtime makes of the result. */
static const char *
warned(const struct qdq_plan_view *view)
{
    static char text[256];
    size_t n = 0;
    *text = '\0';
    for (size_t i = 0; i < view->n_warnings; i++)
        if (!view->warnings[i].rule &&
            strcmp(view->warnings[i].code, "onnxruntime_differs") != 0)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? " " : "",
                                  view->warnings[i].code);
    return text;
}

UNIT_LOOP(one_entry_decides, N(rows))
{
    spec.mode = rows[_i].mode;
    spec.unmatched_is_error = !rows[_i].warn;
    spec.layers = rows[_i].entries;
    spec.n_layers = rows[_i].n;
    enum qdq_code code = qdq_plan_make(NULL, m, &spec, &plan, &err);
    ck_assert_msg(code == rows[_i].code, "row %d: %s", _i, err.text);
    if (code) {
        ck_assert_str_eq(err.where, rows[_i].where);
        ck_assert_msg(strstr(err.text, rows[_i].text), "row %d: %s", _i, err.text);
        return;
    }
    const struct qdq_plan_view *view = qdq_plan_view(plan);
    ck_assert_msg(strcmp(shown(view), rows[_i].expect) == 0, "row %d: %s", _i,
                  shown(view));
    if (rows[_i].of)
        ck_assert_str_eq(layer_of(view, rows[_i].of)->reason, rows[_i].reason);
    const char *warnings = rows[_i].warnings ? rows[_i].warnings : "";
    ck_assert_msg(strcmp(warned(view), warnings) == 0, "row %d: %s", _i, warned(view));
}

/* --- layer support -------------------------------------------------------- */

static const struct {
    struct qdq_support support;
    const char *expect, *warned;
} supports[] = {
    {{"GlobalMaxPool", QDQ_NON_WEIGHTED, -1, QDQ_NO_AXIS, true, true},
     "block/conv1:0w block/conv2:0w fc:0w gap:0 gmp:0",
     ""},
    {{"GlobalMaxPool", QDQ_NON_WEIGHTED, -1, QDQ_NO_AXIS, false, false},
     "block/conv1:0w block/conv2:0w fc:0w gap:0",
     "support_without_effect"},
    {{"Relu", QDQ_NON_WEIGHTED, -1, QDQ_NO_AXIS, true, false},
     "block/conv1:0w block/relu:0 block/conv2:0w fc:0w gap:0",
     ""},
    {{"Conv", QDQ_WEIGHTED, 1, 1, true, false},
     "block/conv1:0 block/conv2:0 fc:0w gap:0",
     ""},
    {{"Conv2D", QDQ_WEIGHTED, 1, 9, true, true}, "fc:0w gap:0", ""},
    {{"Add", QDQ_MULTI_INPUT, -1, QDQ_NO_AXIS, true, true},
     "block/conv1:0w block/conv2:0w block/add:01 fc:0w gap:0",
     ""},
    /* The model's only Mul is part of a swish, and no node is a Ghost. */
    {{"Multiply", QDQ_MULTI_INPUT, -1, QDQ_NO_AXIS, true, true},
     "block/conv1:0w block/conv2:0w fc:0w gap:0",
     "unmatched"},
    {{"Ghost", QDQ_NON_WEIGHTED, -1, QDQ_NO_AXIS, true, true},
     "block/conv1:0w block/conv2:0w fc:0w gap:0",
     "unmatched"},
};

UNIT_LOOP(layer_support_adds_and_replaces, N(supports))
{
    spec.support = &supports[_i].support;
    spec.n_support = 1;
    ck_assert_msg(qdq_plan_make(NULL, m, &spec, &plan, &err) == QDQ_OK, "%s", err.text);
    const struct qdq_plan_view *view = qdq_plan_view(plan);
    ck_assert_msg(strcmp(shown(view), supports[_i].expect) == 0, "row %d: %s", _i,
                  shown(view));
    ck_assert_str_eq(warned(view), supports[_i].warned);
}

UNIT_TEST(a_given_axis_counts_from_either_end)
{
    struct qdq_support support = {"Conv", QDQ_WEIGHTED, 1, -3, true, true};
    spec.support = &support;
    spec.n_support = 1;
    ck_assert_int_eq(qdq_plan_make(NULL, m, &spec, &plan, &err), QDQ_OK);
    ck_assert_int_eq(qdq_plan_view(plan)->layers[0].weight_axis, 1);
    qdq_plan_free(&plan);
    support.channel_axis = QDQ_NO_AXIS;
    ck_assert_int_eq(qdq_plan_make(NULL, m, &spec, &plan, &err), QDQ_OK);
    ck_assert_int_eq(qdq_plan_view(plan)->layers[0].weight_axis, -1);
}

/* --- neighbours ----------------------------------------------------------- */

static void
count(void *arg, const struct qdqi_node *consumer)
{
    (void)consumer;
    ++*(int *)arg;
}

/* Builds conv -> Identity -> {Transpose -> add, Reshape}, where Identity's output is
   also one of the graph. */
UNIT_TEST(layers_are_found_through_operators_that_move_data)
{
    struct qdqi_classes *classes;
    struct qdqi_layers *layers;
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdq_model *other;
    struct builder c = {0};
    builder_init(&c, 17);
    builder_input(&c, "x", QDQI_FLOAT32);
    builder_weight(&c, "w", 4, (const int64_t[]){4, 4, 1, 1});
    builder_weight(&c, "bias", 4, (const int64_t[]){1, 4, 1, 1});
    builder_node(&c, "Conv", "conv", "x,w", "c");
    builder_node(&c, "Add", "bias_add", "bias,c", "cb");
    builder_node(&c, "Identity", "id", "cb", "i");
    builder_node(&c, "Transpose", "t", "i", "t");
    builder_node(&c, "Dropout", "drop", "i,w", "d");
    builder_node(&c, "Add", "add", "t,d", "a");
    builder_node(&c, "Relu", "relu", "d", "r");
    builder_output(&c, "i", QDQI_FLOAT32);
    ck_assert_int_eq(builder_open(&c, &other, &err), QDQ_OK);
    ck_assert_int_eq(qdqi_classes_new(NULL, 0, NULL, 0, &spec, arena, &classes, &err),
                     QDQ_OK);
    ck_assert_int_eq(qdqi_layers_new(other, classes, arena, &layers, &err), QDQ_OK);
    const struct qdqi_node *conv = qdqi_layer_find(layers, "conv");
    const struct qdqi_node *add = qdqi_layer_find(layers, "add");
    int n = 0;
    ck_assert_ptr_eq(qdqi_layer_producer(layers, add, 0), conv);
    ck_assert_ptr_eq(qdqi_layer_producer(layers, add, 1), conv);
    ck_assert_ptr_null(qdqi_layer_producer(layers, add, 2));
    ck_assert_ptr_null(qdqi_layer_producer(layers, conv, 0));
    ck_assert_ptr_null(qdqi_layer_producer(layers, conv, 1));
    ck_assert_ptr_eq(qdqi_layer_find(layers, "bias_add"), conv);
    ck_assert_ptr_eq(qdqi_layer_find(layers, "@cb"), conv);
    qdqi_layer_consumers(layers, conv, count, &n);
    ck_assert_int_eq(n, 3); /* `add` counts twice, and the relu once */
    ck_assert_int_eq(layers->n_consumers[qdqi_layer_index(layers, conv)], 4);
    builder_close(&c, &other);
    qdqi_arena_free(&arena);
}

/* --- globs ---------------------------------------------------------------- */

static const struct {
    const char *pattern, *text;
    bool fits;
} globs[] = {
    {"", "", true},           {"", "a", false},         {"*", "", true},
    {"*", "a/b", true},       {"a", "a", true},         {"a", "ab", false},
    {"a*", "a/b/c", true},    {"*b", "a/b", true},      {"*b", "a/bc", false},
    {"a*c*e", "abcde", true}, {"a*c*e", "abde", false}, {"a?c", "abc", true},
    {"a?c", "ac", false},     {"**a**", "xay", true},   {"[ab]", "a", false},
    {"[ab]", "[ab]", true},   {"*aab", "aaab", true},   {"a*", "", false},
};

UNIT_LOOP(a_glob_is_of_the_whole_name, N(globs))
{
    ck_assert_msg(qdqi_glob(globs[_i].pattern, globs[_i].text) == globs[_i].fits,
                  "'%s' and '%s'", globs[_i].pattern, globs[_i].text);
}

UNIT_TEST(a_glob_has_its_limits)
{
    char *pattern = malloc(QDQI_MAX_GLOB + 2);
    memset(pattern, '*', QDQI_MAX_GLOB + 1);
    pattern[QDQI_MAX_GLOB + 1] = '\0';
    const struct qdq_layer_entry entry = {
        .by = QDQ_BY_MATCH, .names = (const char *const *)&pattern, .n_names = 1};
    spec.layers = &entry;
    spec.n_layers = 1;
    ck_assert_int_eq(qdq_plan_make(NULL, m, &spec, &plan, &err), QDQ_LIMIT_EXCEEDED);
    ck_assert_str_eq(err.where, "/layers/0/match");
    pattern[QDQI_MAX_GLOB] = '\0';
    err = (struct qdq_error){0};
    ck_assert_int_eq(qdq_plan_make(NULL, m, &spec, &plan, &err), QDQ_OK);
    free(pattern);
}

UNIT_SUITE("select", .setup = set_up, .teardown = tear_down)
