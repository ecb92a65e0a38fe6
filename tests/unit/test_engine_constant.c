/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors made of constants alone: which they are, and how they are read. */
#include "config.h"

#include "builder.h"

#define MAX_RANK 6

/* Tests that open a model whose tensor "v" is looked at. */
static const struct qdqi_tensor *
open_tensor(struct builder *b, struct qdq_model **m, const char *name)
{
    struct qdq_error err = {0};
    enum qdq_code code = builder_open(b, m, &err);
    ck_assert_msg(code == QDQ_OK, "%s", err.text);
    const struct qdqi_tensor *t = qdqi_map_get((*m)->graph.tensors, name);
    ck_assert_msg(t != NULL, "there is no tensor %s", name);
    return t;
}

static void
close_model(struct builder *b, struct qdq_model **m)
{
    qdq_model_free(m);
    builder_fini(b);
}

/* --- one operator --------------------------------------------------------- */

/* Where the operator's integers stand. */
enum form { NONE, INT, INTS, INPUT };

#define C_ORDER \
    {           \
        0       \
    }
#define UNREAD 99, {0}, C_ORDER

#define BIG ((int64_t)1 << 40)

/*
 * From w of shape [2,3,4], or u of [1,3,1,2], whose elements are 1, 2, 3…, to v; the
 * shape and the strides that its elements have.
 */
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

START_TEST(operators_pass_elements_on)
{
    struct builder b;
    struct qdq_model *m = NULL;
    struct qdqi_constant c;
    struct qdq_error err = {0};
    const int64_t *dims;
    size_t rank;
    build_op(&b, _i);
    const struct qdqi_tensor *v = open_tensor(&b, &m, "v");
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
    close_model(&b, &m);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("constant");
    TCase *t = tcase_create("constant");
    tcase_add_loop_test(t, operators_pass_elements_on, 0, sizeof ops / sizeof *ops);
    suite_add_tcase(s, t);
    return s;
}

UNIT_MAIN(suite)
