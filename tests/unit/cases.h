/* SPDX-License-Identifier: Apache-2.0 */
/* A model on which insertion cases run, for the tests of engine/plan/cases. */
#ifndef TESTS_UNIT_CASES_H
#define TESTS_UNIT_CASES_H

#include "builder.h"
#include "plan/cases/case.h"
#include "plan/cases/catalog.h"
#include "qdq/plan.h"

struct world {
    struct builder b;
    struct qdq_model *model;
    struct qdq_catalog *catalog;
    struct qdq_spec spec;
    struct qdqi_arena *arena;
    struct qdqi_layers *layers;
    struct qdq_layer_entry *entries; /* entries of the last run */
    size_t n;
    struct qdq_error err;
};

/* Opens the model that was built in w->b, and finds its layers. */
static inline void
world_open(struct world *w)
{
    struct qdqi_classes *rows;
    qdq_spec_init(&w->spec);
    qdq_spec_complete(&w->spec);
    ck_assert_int_eq(builder_open(&w->b, &w->model, &w->err), QDQ_OK);
    w->arena = qdqi_arena_new();
    ck_assert_int_eq(
        qdqi_classes_new(NULL, 0, NULL, 0, &w->spec, w->arena, &rows, &w->err), QDQ_OK);
    ck_assert_int_eq(qdqi_layers_new(w->model, rows, w->arena, &w->layers, &w->err),
                     QDQ_OK);
}

static inline void
world_close(struct world *w)
{
    qdq_catalog_free(&w->catalog);
    qdqi_arena_free(&w->arena);
    qdq_model_free(&w->model);
    builder_fini(&w->b);
}

/* Runs the script `lua`, or the case `name` of the catalog when `lua` is NULL. *left is the
   processor time of all cases; NULL: there is no such bound. */
static inline enum qdq_code
run_within(struct world *w, const char *name, const char *lua, int64_t *left)
{
    const struct qdq_case_use use = {.name = name, .lua = lua};
    w->err = (struct qdq_error){0};
    w->entries = NULL;
    w->n = 0;
    const struct qdqi_script_host host = {.catalog = w->catalog,
                                          .layers = w->layers,
                                          .spec = &w->spec,
                                          .arena = w->arena};
    return qdqi_case_run(&host, &use, "/cases/0", left, &w->entries, &w->n, &w->err);
}

/* The same without a bound for all cases. */
static inline enum qdq_code
run(struct world *w, const char *name, const char *lua)
{
    return run_within(w, name, lua, NULL);
}

#define SCRIPT(body) "return { case = function(model, spec) " body " end }"

/* Builds x -> conv1 -> relu -> conv2 -> bn -> add(relu, bn) -> pool -> fc -> y, with
   the ONNX names of NVIDIA's toolkit's models. `fc` is a MatMul and a bias Add. */
static inline void
world_residual(struct world *w)
{
    struct builder *b = &w->b;
    builder_init(b, 13);
    builder_input(b, "x", QDQI_FLOAT32);
    builder_weight(b, "w1", 4, (const int64_t[]){4, 3, 3, 3});
    builder_weight(b, "w2", 4, (const int64_t[]){4, 4, 1, 1});
    builder_weight(b, "w3", 2, (const int64_t[]){4, 2});
    for (int i = 0; i < 4; i++)
        builder_weight(b, (const char *[]){"s", "b", "m", "v"}[i], 1,
                       (const int64_t[]){4});
    builder_weight(b, "bias", 1, (const int64_t[]){2});
    builder_node(b, "Conv", "conv1", "x,w1", "c1");
    builder_node(b, "Relu", "relu", "c1", "r1");
    builder_node(b, "Conv", "conv2", "r1,w2", "c2");
    builder_node(b, "BatchNormalization", "bn", "c2,s,b,m,v", "n2");
    builder_node(b, "Dropout", "dropout", "n2", "d2");
    builder_node(b, "Add", "add", "r1,d2", "a");
    builder_node(b, "MaxPool", "pool", "a", "p");
    builder_node(b, "Flatten", "flatten", "p", "f");
    builder_node(b, "MatMul", "fc", "f,w3", "g");
    builder_node(b, "Add", "fc_bias", "g,bias", "y");
    builder_output(b, "y", QDQI_FLOAT32);
    world_open(w);
}

/* Returns the entries as "name[index] name[index]"; "*" stands for all inputs, "-w"
   and "-i" for flags that are off. */
static inline const char *
text_of(const struct world *w)
{
    static char text[4096];
    size_t len = 0;
    text[0] = '\0';
    for (size_t i = 0; i < w->n; i++) {
        const struct qdq_layer_entry *e = &w->entries[i];
        for (size_t k = 0; k < e->n_names; k++)
            len += (size_t)snprintf(text + len, sizeof text - len, "%s%s",
                                    k   ? ","
                                    : i ? " "
                                        : "",
                                    e->names[k]);
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s[",
                                e->quantize_input ? "" : "-i",
                                e->quantize_weight ? "" : "-w");
        for (size_t k = 0; k < e->n_index; k++)
            len += (size_t)snprintf(text + len, sizeof text - len, "%s%d", k ? "," : "",
                                    e->index[k]);
        len +=
            (size_t)snprintf(text + len, sizeof text - len, "%s]", e->index ? "" : "*");
    }
    return text;
}

static inline void
expect_in(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "'%s' is not in '%s'", part, text);
}

#endif
