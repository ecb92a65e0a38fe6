/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs any text as an insertion case: it returns entries that a plan accepts, or fails
 * with a reason on one line. The same text gives the same answer twice.
 *
 *   clang -DFUZZING -fsanitize=fuzzer,address,undefined -I… fuzz_case.c engine/… -llua5.4
 */
#include "config.h"

#include <assert.h>

#include "unit.h"
/* Replaces the assertions that the builder uses, because those of libcheck work only
   inside its tests. */
#undef ck_assert_int_eq
#undef ck_assert_int_ge
#undef ck_assert_uint_lt
#define ck_assert_int_eq(a, b) assert((a) == (b))
#define ck_assert_int_ge(a, b) assert((a) >= (b))
#define ck_assert_uint_lt(a, b) assert((a) < (b))
#include "builder.h"
#include "plan/cases/case.h"

static struct qdq_model *
open_model(void)
{
    struct builder b;
    struct qdq_model *model = NULL;
    struct qdq_error err = {0};
    builder_init(&b, 13);
    builder_input(&b, "x", QDQI_FLOAT32);
    builder_weight(&b, "w", 4, (const int64_t[]){4, 4, 1, 1});
    builder_weight(&b, "s", 1, (const int64_t[]){4});
    builder_node(&b, "Conv", "conv1", "x,w", "c1");
    builder_node(&b, "BatchNormalization", "bn", "c1,s,s,s,s", "n1");
    builder_node(&b, "Relu", "relu", "n1", "r1");
    builder_node(&b, "Conv", "conv2", "r1,w", "c2");
    builder_node(&b, "Add", "add", "r1,c2", "a");
    builder_node(&b, "MaxPool", "pool", "a", "p");
    builder_node(&b, "Sigmoid", "gate", "p", "g");
    builder_node(&b, "Mul", "mul", "a,g", "y");
    builder_output(&b, "y", QDQI_FLOAT32);
    enum qdq_code code = builder_open(&b, &model, &err);
    assert(code == QDQ_OK);
    builder_fini(&b);
    return model;
}

static void
expect_entries(const struct qdq_layer_entry *entries, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct qdq_layer_entry *e = &entries[i];
        assert(e->n_names > 0 && (e->n_names == 1 || e->by == QDQ_BY_NAME));
        for (size_t k = 0; k < e->n_names; k++)
            assert(*e->names[k]);
        assert((e->index == NULL) == (e->n_index == 0));
        for (size_t k = 0; k < e->n_index; k++)
            assert(e->index[k] >= 0);
    }
}

static void
expect_reason(const struct qdq_error *err)
{
    assert(strncmp(err->text, "case 'fuzz'", 11) == 0);
    for (const char *c = err->text; *c; c++)
        assert((unsigned char)*c >= ' ');
}

static enum qdq_code
run(struct qdqi_layers *layers, const struct qdq_spec *spec, const char *lua,
    struct qdq_error *err)
{
    const struct qdq_case_use use = {.name = "fuzz", .lua = lua};
    struct qdq_layer_entry *entries = NULL;
    size_t n = 0;
    struct qdqi_arena *arena = qdqi_arena_new();
    const struct qdqi_script_host host = {
        .layers = layers, .spec = spec, .arena = arena};
    enum qdq_code code =
        qdqi_case_run(&host, &use, "/cases/0", NULL, &entries, &n, err);
    assert(code == QDQ_OK || code == QDQ_CASE_FAILED);
    if (code)
        expect_reason(err);
    else
        expect_entries(entries, n);
    qdqi_arena_free(&arena);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int index[] = {0, 1};
    const char *const names[] = {"add"};
    const struct qdq_layer_entry layer = {
        .by = QDQ_BY_NAME, .names = names, .n_names = 1, .index = index, .n_index = 2};
    struct qdq_error err = {0}, again = {0};
    struct qdq_spec spec;
    struct qdqi_classes *rows;
    struct qdqi_layers *layers;
    qdq_spec_init(&spec);
    spec.layers = &layer;
    spec.n_layers = 1;
    char *lua = malloc(size + 1);
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdq_model *model = open_model();
    assert(lua && arena);
    memcpy(lua, data, size);
    lua[size] = '\0';
    enum qdq_code code = qdqi_classes_new(NULL, 0, NULL, 0, &spec, arena, &rows, &err);
    assert(code == QDQ_OK);
    code = qdqi_layers_new(model, rows, arena, &layers, &err);
    assert(code == QDQ_OK);
    code = run(layers, &spec, lua, &err);
    enum qdq_code code_again = run(layers, &spec, lua, &again);
    /* A script that runs out of time may stop at another line. */
    if (!strstr(err.text, "used up") && !strstr(again.text, "used up"))
        assert(code == code_again && strcmp(err.text, again.text) == 0);
    qdq_model_free(&model);
    qdqi_arena_free(&arena);
    free(lua);
    return 0;
}

#define CORPUS "tests/fuzz/corpus/case"
#include "replay.h"
