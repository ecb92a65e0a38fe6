/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors that follow from constants alone: which they are, and how their elements
   are read. */
#include "config.h"

#include "builder.h"

#define MAX_RANK 6

/* --- one operator --------------------------------------------------------- */

/* How the operator gets its integers. */
enum form { NONE, INT, INTS, INPUT };

#define C_ORDER \
    {           \
        0       \
    }
#define UNREAD 99, {0}, C_ORDER

#define BIG ((int64_t)1 << 40)

/* Operators from w of shape [2,3,4], or u of [1,3,1,2], whose elements are 1, 2, 3…,
   to v, with the shape and the strides of v's elements. */
static const struct {
    const char *op, *from;
    enum form form;
    const char *attribute;
    size_t n;
    int64_t ints[MAX_RANK];
    size_t rank;
    int64_t dims[MAX_RANK];
    int64_t strides[MAX_RANK];
} ops[] = {
    {"Identity", "w", NONE, "", 0, {0}, 3, {2, 3, 4}, C_ORDER},
    {"Dropout", "w", NONE, "", 0, {0}, 3, {2, 3, 4}, C_ORDER},
    {"Cast", "w", INT, "to", 1, {QDQI_FLOAT32}, 3, {2, 3, 4}, C_ORDER},
    {"Cast", "w", INT, "to", 1, {QDQI_FLOAT16}, UNREAD},
    {"Cast", "w", NONE, "", 0, {0}, UNREAD},
    {"Relu", "w", NONE, "", 0, {0}, UNREAD},

    {"Transpose", "w", NONE, "", 0, {0}, 3, {4, 3, 2}, {1, 4, 12}},
    {"Transpose", "w", INTS, "perm", 3, {0, 2, 1}, 3, {2, 4, 3}, {12, 1, 4}},
    {"Transpose", "w", INTS, "perm", 3, {0, 1, 2}, 3, {2, 3, 4}, C_ORDER},
    {"Transpose", "u", INTS, "perm", 4, {2, 1, 0, 3}, 4, {1, 3, 1, 2}, C_ORDER},
    {"Transpose", "w", INTS, "perm", 3, {0, 1, 1}, UNREAD},
    {"Transpose", "w", INTS, "perm", 3, {0, 1, 3}, UNREAD},
    {"Transpose", "w", INTS, "perm", 3, {0, 1, -1}, UNREAD},
    {"Transpose", "w", INTS, "perm", 2, {0, 1}, UNREAD},
    {"Transpose", "w", INTS, "perm", 4, {0, 1, 2, 3}, UNREAD},
    {"Transpose", "w", INTS, "perm", 0, {0}, UNREAD},

    {"Reshape", "w", INPUT, "", 2, {6, 4}, 2, {6, 4}, C_ORDER},
    {"Reshape", "w", INPUT, "", 1, {24}, 1, {24}, C_ORDER},
    {"Reshape", "w", INPUT, "", 2, {-1, 4}, 2, {6, 4}, C_ORDER},
    {"Reshape", "w", INPUT, "", 2, {0, -1}, 2, {2, 12}, C_ORDER},
    {"Reshape", "w", INPUT, "", 5, {1, 2, 12, 1, 1}, 5, {1, 2, 12, 1, 1}, C_ORDER},
    {"Reshape", "w", INTS, "shape", 2, {3, 8}, 2, {3, 8}, C_ORDER},
    {"Reshape", "w", INPUT, "", 2, {-1, -1}, UNREAD},
    {"Reshape", "w", INPUT, "", 2, {5, -1}, UNREAD},
    {"Reshape", "w", INPUT, "", 2, {5, 5}, UNREAD},
    {"Reshape", "w", INPUT, "", 2, {-2, -12}, UNREAD},
    {"Reshape", "w", INPUT, "", 4, {0, 0, 0, 0}, UNREAD},
    {"Reshape", "w", INPUT, "", 2, {BIG, BIG}, UNREAD},
    {"Reshape", "w", INPUT, "", 0, {0}, UNREAD},
    {"Reshape", "w", NONE, "", 0, {0}, UNREAD},

    {"Flatten", "w", NONE, "", 0, {0}, 2, {2, 12}, C_ORDER},
    {"Flatten", "w", INT, "axis", 1, {0}, 2, {1, 24}, C_ORDER},
    {"Flatten", "w", INT, "axis", 1, {3}, 2, {24, 1}, C_ORDER},
    {"Flatten", "w", INT, "axis", 1, {-1}, 2, {6, 4}, C_ORDER},
    {"Flatten", "w", INT, "axis", 1, {4}, UNREAD},
    {"Flatten", "w", INT, "axis", 1, {-4}, UNREAD},
    {"Flatten", "w", INT, "axis", 1, {INT64_MIN}, UNREAD},

    {"Squeeze", "u", NONE, "", 0, {0}, 2, {3, 2}, C_ORDER},
    {"Squeeze", "u", INPUT, "", 1, {0}, 3, {3, 1, 2}, C_ORDER},
    {"Squeeze", "u", INTS, "axes", 1, {-2}, 3, {1, 3, 2}, C_ORDER},
    {"Squeeze", "u", INPUT, "", 0, {0}, 4, {1, 3, 1, 2}, C_ORDER},
    {"Squeeze", "u", INPUT, "", 1, {1}, UNREAD},
    {"Squeeze", "u", INPUT, "", 2, {0, -4}, UNREAD},
    {"Squeeze", "u", INPUT, "", 1, {4}, UNREAD},
    {"Squeeze", "u", INPUT, "", 1, {INT64_MIN}, UNREAD},

    {"Unsqueeze", "w", INPUT, "", 1, {0}, 4, {1, 2, 3, 4}, C_ORDER},
    {"Unsqueeze", "w", INPUT, "", 2, {-1, 1}, 5, {2, 1, 3, 4, 1}, C_ORDER},
    {"Unsqueeze", "w", INTS, "axes", 2, {1, 2}, 5, {2, 1, 1, 3, 4}, C_ORDER},
    {"Unsqueeze", "w", INPUT, "", 1, {4}, UNREAD},
    {"Unsqueeze", "w", INPUT, "", 2, {1, -4}, UNREAD},
    {"Unsqueeze", "w", INPUT, "", 1, {INT64_MAX}, UNREAD},
    {"Unsqueeze", "w", NONE, "", 0, {0}, UNREAD},
};

static void
build_op(struct builder *b, int i)
{
    builder_init(b, 13);
    builder_weight(b, "w", 3, (const int64_t[]){2, 3, 4});
    builder_weight(b, "u", 4, (const int64_t[]){1, 3, 1, 2});
    builder_ints_weight(b, "ints", ops[i].n, ops[i].ints);
    const char *inputs = qdqi_arena_printf(b->arena, "%s%s", ops[i].from,
                                           ops[i].form == INPUT ? ",ints" : "");
    Onnx__NodeProto *node = builder_node(b, ops[i].op, "n", inputs, "v");
    if (ops[i].form == INT)
        builder_int(b, node, ops[i].attribute, ops[i].ints[0]);
    if (ops[i].form == INTS)
        builder_ints(b, node, ops[i].attribute, ops[i].n, ops[i].ints);
}

UNIT_ROWS(operators_pass_elements_on, ops)
{
    struct builder b;
    struct qdq_model *m = NULL;
    struct qdqi_constant c;
    struct qdq_error err = {0};
    const int64_t *dims;
    size_t rank;
    build_op(&b, _i);
    const struct qdqi_tensor *v = builder_open_tensor(&b, &m, "v");
    ck_assert(v->is_fixed);
    bool read = qdqi_tensor_dims(v, &dims, &rank);
    ck_assert_msg(read == (ops[_i].rank != 99), "row %d (%s)", _i, ops[_i].op);
    if (!read) {
        ck_assert_int_eq(qdqi_constant_read(m, v, &c, &err), QDQ_UNSUPPORTED);
        ck_assert_str_eq(err.where, "v");
    } else {
        bool c_order = ops[_i].strides[0] == 0;
        ck_assert_int_eq(qdqi_constant_read(m, v, &c, &err), QDQ_OK);
        ck_assert_uint_eq(rank, ops[_i].rank);
        ck_assert_uint_eq(c.rank, rank);
        ck_assert_ptr_eq(c.dims, dims);
        ck_assert_uint_eq(c.n, ops[_i].from[0] == 'w' ? 24 : 6);
        ck_assert_int_eq(v->dtype, QDQI_FLOAT32);
        ck_assert_msg((c.strides == NULL) == c_order, "row %d (%s)", _i, ops[_i].op);
        for (size_t i = 0; i < rank; i++) {
            ck_assert_int_eq(dims[i], ops[_i].dims[i]);
            if (!c_order)
                ck_assert_int_eq(c.strides[i], ops[_i].strides[i]);
        }
    }
    builder_close(&b, &m);
}

/* --- several operators ---------------------------------------------------- */

static void
node_ints(struct builder *b, const char *op, const char *from, const char *to,
          const char *attribute, size_t n, const int64_t *ints)
{
    builder_ints(b, builder_node(b, op, to, from, to), attribute, n, ints);
}

/* Each of these builds v from w, [2,3,4]. */
static void
transposed_back(struct builder *b)
{
    node_ints(b, "Transpose", "w", "t", "perm", 3, (const int64_t[]){1, 2, 0});
    node_ints(b, "Transpose", "t", "v", "perm", 3, (const int64_t[]){2, 0, 1});
}
static void
transposed_then_split(struct builder *b)
{
    node_ints(b, "Transpose", "w", "t", "perm", 3, (const int64_t[]){2, 0, 1});
    node_ints(b, "Reshape", "t", "v", "shape", 4, (const int64_t[]){2, 2, 3, 2});
}
static void
transposed_then_joined(struct builder *b)
{
    node_ints(b, "Transpose", "w", "t", "perm", 3, (const int64_t[]){2, 0, 1});
    node_ints(b, "Reshape", "t", "v", "shape", 3, (const int64_t[]){4, 6, 1});
}
static void
transposed_then_mixed(struct builder *b)
{
    node_ints(b, "Transpose", "w", "t", "perm", 3, (const int64_t[]){2, 0, 1});
    node_ints(b, "Reshape", "t", "v", "shape", 2, (const int64_t[]){12, 2});
}
static void
transposed_then_all_joined(struct builder *b)
{
    builder_node(b, "Transpose", "t", "w", "t");
    node_ints(b, "Reshape", "t", "v", "shape", 1, (const int64_t[]){-1});
}
static void
transposed_then_unsqueezed(struct builder *b)
{
    builder_node(b, "Transpose", "t", "w", "t");
    node_ints(b, "Unsqueeze", "t", "v", "axes", 1, (const int64_t[]){1});
}
static void
cast_like_itself(struct builder *b)
{
    builder_node(b, "CastLike", "v", "w,w", "v");
}
static void
cast_like_integers(struct builder *b)
{
    builder_node(b, "Shape", "shape", "w", "s");
    builder_node(b, "CastLike", "v", "w,s", "v");
}
static void
shaped_by_another(struct builder *b)
{
    builder_weight(b, "other", 2, (const int64_t[]){8, 3});
    builder_node(b, "Shape", "shape", "other", "s");
    builder_node(b, "Identity", "same", "s", "s2");
    builder_node(b, "Reshape", "v", "w,s2", "v");
}
static void
shaped_by_part(struct builder *b)
{
    Onnx__NodeProto *shape = builder_node(b, "Shape", "shape", "w", "s");
    builder_int(b, shape, "start", -2); /* gives 3, 4 */
    builder_int(b, shape, "end", 2);    /* gives 3 */
    builder_weight(b, "three", 1, (const int64_t[]){3});
    builder_node(b, "Reshape", "v", "three,s", "v");
}
static void
of_value_ints(struct builder *b)
{
    Onnx__NodeProto *shape = builder_node(b, "Constant", "shape", "", "s");
    builder_ints(b, shape, "value_ints", 2, (const int64_t[]){4, 6});
    builder_node(b, "Reshape", "v", "w,s", "v");
}
static void
of_value_int(struct builder *b)
{
    Onnx__NodeProto *axis = builder_node(b, "Constant", "axis", "", "a");
    builder_int(b, axis, "value_int", 3);
    builder_node(b, "Unsqueeze", "v", "w,a", "v");
}
static void
of_filled_shape(struct builder *b)
{
    builder_ints_weight(b, "three", 1, (const int64_t[]){3});
    Onnx__NodeProto *shape = builder_node(b, "ConstantOfShape", "shape", "three", "s");
    Onnx__TensorProto *one = builder_ints_tensor(b, 1, (const int64_t[]){0});
    builder_tensor(b, shape, "value", one);
    builder_node(b, "Reshape", "v", "w,s", "v"); /* [0,0,0] keeps the shape */
}
static void
of_bytes_that_are_no_shape(struct builder *b)
{
    builder_weight(b, "floats", 1, (const int64_t[]){2});
    builder_node(b, "Reshape", "v", "w,floats", "v");
}
static void
of_a_shape_that_is_no_vector(struct builder *b)
{
    builder_ints_weight(b, "s", 4, (const int64_t[]){1, 2, 3, 4});
    node_ints(b, "Reshape", "s", "t", "shape", 2, (const int64_t[]){2, 2});
    builder_node(b, "Transpose", "t2", "t", "s2");
    builder_node(b, "Reshape", "v", "w,s2", "v");
}
static void
shaped_by_itself(struct builder *b)
{
    builder_node(b, "Shape", "shape", "w", "known");
    builder_node(b, "Reshape", "v", "w,known", "v");
}
static void
of_many_axes(struct builder *b)
{
    builder_ints_weight(b, "front", 1, (const int64_t[]){0});
    builder_node(b, "Unsqueeze", "1", "w,front", "v1");
    for (int i = 1; i < 14; i++)
        builder_node(b, "Unsqueeze", qdqi_arena_printf(b->arena, "%d", i + 1),
                     qdqi_arena_printf(b->arena, "v%d,front", i),
                     i == 13 ? "v" : qdqi_arena_printf(b->arena, "v%d", i + 1));
}

static const struct {
    void (*build)(struct builder *b);
    size_t rank;
    int64_t dims[MAX_RANK];
    int64_t strides[MAX_RANK];
} chains[] = {
    {transposed_back, 3, {2, 3, 4}, C_ORDER},
    {transposed_then_split, 4, {2, 2, 3, 2}, {2, 1, 8, 4}},
    {transposed_then_joined, 3, {4, 6, 1}, {1, 4, 4}},
    {transposed_then_mixed, UNREAD},
    {transposed_then_all_joined, UNREAD},
    {transposed_then_unsqueezed, 4, {4, 1, 3, 2}, {1, 12, 4, 12}},
    {cast_like_itself, 3, {2, 3, 4}, C_ORDER},
    {cast_like_integers, UNREAD},
    {shaped_by_another, 2, {8, 3}, C_ORDER},
    {shaped_by_part, 1, {3}, C_ORDER},
    {of_value_ints, 2, {4, 6}, C_ORDER},
    {of_value_int, 4, {2, 3, 4, 1}, C_ORDER},
    {of_filled_shape, 3, {2, 3, 4}, C_ORDER},
    {of_bytes_that_are_no_shape, UNREAD},
    {of_a_shape_that_is_no_vector, UNREAD},
    {shaped_by_itself, 3, {2, 3, 4}, C_ORDER},
    {of_many_axes, UNREAD},
};

UNIT_ROWS(operators_follow_each_other, chains)
{
    struct builder b;
    struct qdq_model *m = NULL;
    builder_init(&b, 13);
    builder_weight(&b, "w", 3, (const int64_t[]){2, 3, 4});
    chains[_i].build(&b);
    const struct qdqi_tensor *v = builder_open_tensor(&b, &m, "v");
    const int64_t *dims;
    size_t rank;
    ck_assert(v->is_fixed);
    bool read = qdqi_tensor_dims(v, &dims, &rank);
    ck_assert_msg(read == (chains[_i].rank != 99), "row %d", _i);
    if (read) {
        bool c_order = chains[_i].strides[0] == 0;
        ck_assert_uint_eq(rank, chains[_i].rank);
        ck_assert_msg((v->view.strides == NULL) == c_order, "row %d", _i);
        for (size_t i = 0; i < rank; i++) {
            ck_assert_int_eq(dims[i], chains[_i].dims[i]);
            if (!c_order)
                ck_assert_int_eq(v->view.strides[i], chains[_i].strides[i]);
        }
    }
    builder_close(&b, &m);
}

UNIT_TEST(allowzero_means_zero)
{
    for (int allow = 0; allow < 2; allow++) {
        struct builder b;
        struct qdq_model *m = NULL;
        builder_init(&b, 14);
        builder_weight(&b, "w", 3, (const int64_t[]){2, 0, 4});
        builder_ints_weight(&b, "s", 2, (const int64_t[]){5, 0});
        builder_ints_weight(&b, "open", 2, (const int64_t[]){0, -1});
        builder_int(&b, builder_node(&b, "Reshape", "n", "w,s", "v"), "allowzero",
                    allow);
        builder_int(&b, builder_node(&b, "Reshape", "o", "w,open", "o"), "allowzero",
                    allow);
        const struct qdqi_tensor *v = builder_open_tensor(&b, &m, "v");
        const struct qdqi_tensor *o = qdqi_map_get(m->graph.tensors, "o");
        /* [5,0]: 0 copies the size 0 of w, or means 0 itself */
        ck_assert_ptr_nonnull(v->view.stored);
        ck_assert_int_eq(v->view.dims[0], 5);
        ck_assert_int_eq(v->view.dims[1], 0);
        ck_assert_int_eq(o->view.stored != NULL, allow == 0); /* 0 / 0 gives no size */
        builder_close(&b, &m);
    }
}

/* --- ConstantOfShape ------------------------------------------------------ */

static Onnx__TensorProto *
float_tensor(struct builder *b, size_t n, float value)
{
    Onnx__TensorProto *t = qdqi_constant_new(b->arena, QDQI_FLOAT32, 1, (int64_t)n);
    t->float_data = qdqi_arena_array(b->arena, n, sizeof *t->float_data);
    t->n_float_data = n;
    for (size_t i = 0; i < n; i++)
        t->float_data[i] = value;
    return t;
}

/* A shape, the number of floats in the value (-1: no value), and whether the tensor
   can be read. */
static const struct {
    size_t rank;
    int64_t dims[MAX_RANK];
    int values;
    bool read;
    size_t n;
} fills[] = {
    {2, {3, 5}, 1, true, 15},
    {2, {3, 5}, -1, true, 15},
    {3, {BIG, 1 << 20, 1}, 1, true, (size_t)BIG << 20},
    {2, {BIG, 0}, 1, true, 0},
    {0, {0}, 1, true, 1},
    {2, {1, 1}, 1, true, 1},
    {2, {BIG, BIG}, 1, false, 0},
    {2, {3, -1}, 1, false, 0},
    {2, {3, 5}, 2, false, 0},
    {2, {3, 5}, 0, false, 0},
};

UNIT_ROWS(constant_of_shape_repeats_one_element, fills)
{
    struct builder b;
    struct qdq_model *m = NULL;
    struct qdqi_constant c;
    builder_init(&b, 13);
    builder_ints_weight(&b, "s", fills[_i].rank, fills[_i].dims);
    Onnx__NodeProto *node = builder_node(&b, "ConstantOfShape", "n", "s", "v");
    if (fills[_i].values >= 0)
        builder_tensor(&b, node, "value",
                       float_tensor(&b, (size_t)fills[_i].values, 2.5f));
    const struct qdqi_tensor *v = builder_open_tensor(&b, &m, "v");
    ck_assert(v->is_fixed);
    ck_assert_int_eq(v->dtype, QDQI_FLOAT32);
    int code = (int)qdqi_constant_read(m, v, &c, NULL);
    ck_assert_msg(code == (fills[_i].read ? QDQ_OK : QDQ_UNSUPPORTED), "row %d", _i);
    if (!code) {
        float value;
        memcpy(&value, c.bytes, sizeof value);
        ck_assert_float_eq(value, fills[_i].values < 0 ? 0 : 2.5f);
        ck_assert_uint_eq(c.n, fills[_i].n);
        ck_assert_uint_eq(c.rank, fills[_i].rank);
        ck_assert_int_eq(qdqi_constant_is_fill(&c), c.n > 1);
    }
    builder_close(&b, &m);
}

UNIT_TEST(fills_take_any_shape)
{
    struct builder b;
    struct qdq_model *m = NULL;
    struct qdqi_constant c;
    builder_init(&b, 13);
    builder_ints_weight(&b, "s", 3, (const int64_t[]){6, BIG, 10});
    builder_node(&b, "ConstantOfShape", "n", "s", "f");
    builder_node(&b, "Transpose", "t", "f", "t");
    node_ints(&b, "Reshape", "t", "r", "shape", 4, (const int64_t[]){15, 4, BIG, 1});
    node_ints(&b, "Unsqueeze", "r", "v", "axes", 1, (const int64_t[]){0});
    const struct qdqi_tensor *v = builder_open_tensor(&b, &m, "v");
    ck_assert_int_eq(qdqi_constant_read(m, v, &c, NULL), QDQ_OK);
    ck_assert(qdqi_constant_is_fill(&c));
    ck_assert_uint_eq(c.rank, 5);
    ck_assert_int_eq(c.dims[1], 15);
    for (size_t i = 0; i < c.rank; i++)
        ck_assert_int_eq(c.strides[i], 0);
    builder_close(&b, &m);
}

UNIT_TEST(element_type_is_that_of_the_value)
{
    struct builder b;
    struct qdq_model *m = NULL;
    Onnx__ValueInfoProto *infos[1];
    builder_init(&b, 13);
    builder_ints_weight(&b, "s", 1, (const int64_t[]){4});
    Onnx__NodeProto *node = builder_node(&b, "ConstantOfShape", "n", "s", "v");
    builder_tensor(&b, node, "value", builder_ints_tensor(&b, 1, (const int64_t[]){7}));
    infos[0] = builder_value(&b, "v", QDQI_FLOAT32); /* a wrong declaration */
    b.graph.value_info = infos;
    b.graph.n_value_info = 1;
    const struct qdqi_tensor *v = builder_open_tensor(&b, &m, "v");
    int64_t ints[4];
    size_t n;
    ck_assert_int_eq(v->dtype, QDQI_INT64);
    ck_assert(!qdqi_constant_ints(m, v, ints, 3, &n));
    ck_assert(qdqi_constant_ints(m, v, ints, 4, &n));
    ck_assert_uint_eq(n, 4);
    ck_assert_int_eq(ints[3], 7);
    builder_close(&b, &m);
}

UNIT_TEST(external_fill_is_an_error)
{
    struct builder b;
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    builder_init(&b, 13);
    builder_ints_weight(&b, "s", 1, (const int64_t[]){4});
    Onnx__TensorProto *value = float_tensor(&b, 1, 1);
    builder_external(&b, value, "fill.bin", NULL, NULL);
    builder_tensor(&b, builder_node(&b, "ConstantOfShape", "n", "s", "v"), "value",
                   value);
    ck_assert_int_eq(builder_open(&b, &m, &err), QDQ_EXTERNAL_MISSING);
    ck_assert_str_eq(err.where, "v");
    builder_fini(&b);
}

/* --- Constant ------------------------------------------------------------- */

UNIT_TEST(constants_have_many_forms)
{
    struct builder b;
    struct qdq_model *m = NULL;
    struct qdqi_constant c;
    builder_init(&b, 13);
    Onnx__AttributeProto *a = builder_attribute(
        &b, builder_node(&b, "Constant", "1", "", "f"), "value_float");
    a->has_f = 1;
    a->f = 2.5f;
    a = builder_attribute(&b, builder_node(&b, "Constant", "2", "", "fs"),
                          "value_floats");
    a->floats = (float[]){1, 2, 3};
    a->n_floats = 3;
    builder_int(&b, builder_node(&b, "Constant", "3", "", "i"), "value_int", -4);
    node_ints(&b, "Constant", "", "is", "value_ints", 2, (const int64_t[]){5, 6});
    builder_attribute(&b, builder_node(&b, "Constant", "5", "", "str"), "value_string");
    builder_node(&b, "Constant", "6", "", "none");
    const struct qdqi_tensor *t = builder_open_tensor(&b, &m, "f");
    ck_assert(t->is_fixed && t->constant && t->dtype == QDQI_FLOAT32);
    ck_assert_int_eq(qdqi_constant_read(m, t, &c, NULL), QDQ_OK);
    ck_assert_uint_eq(c.rank, 0);
    ck_assert_float_eq(*(const float *)(const void *)c.bytes, 2.5f);
    t = qdqi_map_get(m->graph.tensors, "fs");
    ck_assert_int_eq(qdqi_constant_read(m, t, &c, NULL), QDQ_OK);
    ck_assert(c.rank == 1 && c.n == 3);
    int64_t ints[2];
    size_t n;
    ck_assert(qdqi_constant_ints(m, qdqi_map_get(m->graph.tensors, "i"), ints, 2, &n));
    ck_assert(n == 1 && ints[0] == -4);
    ck_assert(qdqi_constant_ints(m, qdqi_map_get(m->graph.tensors, "is"), ints, 2, &n));
    ck_assert(n == 2 && ints[1] == 6);
    t = qdqi_map_get(m->graph.tensors, "str");
    ck_assert(t->is_fixed && !t->view.stored && t->dtype == QDQI_STRING);
    t = qdqi_map_get(m->graph.tensors, "none");
    ck_assert(t->is_fixed && !t->view.stored);
    builder_close(&b, &m);
}

UNIT_TEST(constants_of_no_shape_cannot_be_read)
{
    struct builder b;
    struct qdq_model *m = NULL;
    builder_init(&b, 13);
    Onnx__TensorProto *value = float_tensor(&b, 2, 1);
    value->dims[0] = -2;
    builder_tensor(&b, builder_node(&b, "Constant", "c", "", "v"), "value", value);
    const struct qdqi_tensor *v = builder_open_tensor(&b, &m, "v");
    ck_assert(v->is_fixed && !v->view.stored);
    builder_close(&b, &m);
}

/* The shape is valid and the data too short, which the reader of the elements
   notices. */
UNIT_TEST(too_little_data_is_an_error)
{
    struct builder b;
    struct qdq_model *m = NULL;
    struct qdqi_constant c;
    struct qdq_error err = {0};
    builder_init(&b, 13);
    Onnx__TensorProto *value = float_tensor(&b, 2, 1);
    value->dims[0] = 6;
    builder_tensor(&b, builder_node(&b, "Constant", "c", "", "v"), "value", value);
    node_ints(&b, "Reshape", "v", "r", "shape", 2, (const int64_t[]){2, 3});
    const struct qdqi_tensor *r = builder_open_tensor(&b, &m, "r");
    ck_assert_int_eq(qdqi_constant_read(m, r, &c, &err), QDQ_INVALID_MODEL);
    ck_assert_str_eq(err.where, "r");
    builder_close(&b, &m);
}

UNIT_SUITE("constant")
