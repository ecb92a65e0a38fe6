/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of equal surroundings are one pattern. */
#include "config.h"

#include "builder.h"
#include "stages/frontier/patterns.h"

enum { BLOCKS = 12, WIDER = 8 };

static struct builder b;
static struct qdq_model *model;
static size_t nodes[BLOCKS];
static double costs[BLOCKS];
static bool ignored[BLOCKS];
static struct qdqi_layer_patterns found;

/* Makes a chain of MatMul and Relu, in which one weight has another size, and finds the patterns of the MatMuls. */
static void
setup(void)
{
    char name[16], inputs[32], made[16];
    builder_init(&b, 13);
    builder_input(&b, "x0", QDQI_FLOAT32);
    for (int i = 0; i < BLOCKS; i++) {
        const int64_t dims[] = {i == WIDER + 1 ? 8 : 4, i == WIDER ? 8 : 4};
        snprintf(name, sizeof name, "w%d", i);
        builder_weight(&b, name, 2, dims);
        snprintf(inputs, sizeof inputs, "x%d,w%d", i, i);
        snprintf(made, sizeof made, "y%d", i);
        builder_node(&b, "MatMul", name, inputs, made);
        snprintf(name, sizeof name, "r%d", i);
        snprintf(inputs, sizeof inputs, "x%d", i + 1);
        builder_node(&b, "Relu", name, made, inputs);
        nodes[i] = 2 * (size_t)i;
        costs[i] = 1;
        ignored[i] = false;
    }
    snprintf(made, sizeof made, "x%d", BLOCKS);
    builder_output(&b, made, QDQI_FLOAT32);
    struct qdq_error err = {0};
    ck_assert_int_eq(builder_open(&b, &model, &err), QDQ_OK);
}

static void
teardown(void)
{
    builder_close(&b, &model);
}

static void
find(void)
{
    struct qdq_error err = {0};
    const struct qdqi_placed_layers layers = {
        .n = BLOCKS, .nodes = nodes, .costs = costs, .ignored = ignored};
    ck_assert_int_eq(qdqi_patterns_find(&model->graph, &layers, b.arena, &found, &err),
                     QDQ_OK);
}

UNIT_TEST(test_equal_surroundings)
{
    find();
    for (size_t i = 2; i < WIDER - 1; i++)
        ck_assert_uint_eq(found.of[i], found.of[2]);
    ck_assert_uint_ne(found.of[0], found.of[2]);
    ck_assert_uint_ne(found.of[BLOCKS - 1], found.of[2]);
    ck_assert_uint_ne(found.of[WIDER], found.of[2]);
    ck_assert_uint_ne(found.of[WIDER + 1], found.of[WIDER]);
    ck_assert_uint_eq(found.first[found.of[2]], 1);
}

UNIT_TEST(test_shares_and_sizes)
{
    double sum = 0;
    size_t layers = 0;
    ignored[4] = true;
    costs[0] = BLOCKS;
    find();
    ck_assert_uint_eq(found.of[4], QDQI_NO_PATTERN);
    for (size_t i = 0; i < found.n; i++) {
        sum += found.shares[i];
        layers += found.sizes[i];
    }
    ck_assert_double_eq_tol(sum, 1, 1e-12);
    ck_assert_uint_eq(layers, BLOCKS - 1);
    ck_assert_double_gt(found.shares[found.of[0]], 0.5);
}

/* Patterns that pass a tensor to each other are pairs, each of which is listed once. */
UNIT_TEST(test_pairs)
{
    find();
    for (size_t i = 0; i + 1 < BLOCKS; i++) {
        const size_t a = found.of[i], c = found.of[i + 1];
        size_t n = 0;
        for (size_t k = 0; k < found.n_pairs; k++)
            n += (found.pairs[k].a == a && found.pairs[k].b == c) ||
                 (found.pairs[k].a == c && found.pairs[k].b == a);
        ck_assert_uint_eq(n, a != c);
    }
}

UNIT_SUITE("patterns", .setup = setup, .teardown = teardown)
