/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the arrays of a dataset, or the samples that a model gets of it. */
#include "config.h"
#include "files/data/cast.h"
#include "files/data/dataset.h"
#include "files/data/feed.h"
#include "files/data/scaling.h"
#include "ground/base/arena.h"

#include <math.h>
#include <string.h>

enum { PIECE = 4096 }; /* elements that are looked at together */

struct visiting {
    const struct qdq_visitor *visitor; /* may be NULL */
    struct qdq_array_facts *facts;
    double *sums;
    int64_t **shapes; /* those of the facts */
    double piece[PIECE];
};

/* Makes a model of which each array is an input, as it is; images, which need a model's size,
   are left out. */
static enum qdq_code
model_of_arrays(const struct qdq_dataset *ds, struct qdqi_arena *arena,
                struct qdq_model_info *ret, struct qdq_error *err)
{
    struct qdq_value *inputs =
        qdqi_arena_array(arena, ds->info.n_arrays, sizeof *inputs);
    if (!inputs)
        return qdqi_no_memory(err);
    *ret = (struct qdq_model_info){.inputs = inputs};
    for (size_t i = ds->images ? 1 : 0; i < ds->info.n_arrays; i++)
        inputs[ret->n_inputs++] =
            (struct qdq_value){.name = ds->arrays[i].name, .dtype = ""};
    return QDQ_OK;
}

static void
measure(struct qdq_array_facts *facts, double *sum, const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) {
            facts->not_finite++;
            continue;
        }
        facts->low = facts->finite++ == 0 || x[i] < facts->low ? x[i] : facts->low;
        facts->high = facts->finite == 1 || x[i] > facts->high ? x[i] : facts->high;
        *sum += x[i];
    }
}

/* Integers of 64 bits are no exact doubles, and the feed has no such cast; here it is enough. */
static void
round_int64(void *to, const void *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((double *)to)[i] = (double)((const int64_t *)from)[i];
}

static void
round_uint64(void *to, const void *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((double *)to)[i] = (double)((const uint64_t *)from)[i];
}

static qdqi_cast_fn
to_double(enum qdqi_dtype from)
{
    return from == QDQI_INT64    ? round_int64
           : from == QDQI_UINT64 ? round_uint64
                                 : qdqi_cast_find(from, QDQI_FLOAT64).fn;
}

static enum qdq_code
visit_input(struct visiting *v, size_t at, const struct qdqi_input *input,
            struct qdq_error *err)
{
    const qdqi_cast_fn cast = to_double(input->dtype);
    const size_t element = qdqi_dtype_size(input->dtype), n = input->size / element;
    for (size_t done = 0; cast && done < n;) {
        const size_t take = n - done < PIECE ? n - done : PIECE;
        cast(v->piece, (const char *)input->data + done * element, take);
        measure(&v->facts[at], &v->sums[at], v->piece, take);
        if (v->visitor && !v->visitor->values(v->visitor->arg, at, v->piece, take))
            return qdq_error_set(err, QDQ_CANCELLED, QDQ_AT_NOTHING, NULL,
                                 "the visitor ended");
        done += take;
    }
    return QDQ_OK;
}

/* Describes the inputs by those of the first run. */
static enum qdq_code
describe(struct visiting *v, const struct qdqi_input *inputs, size_t n, int64_t samples,
         struct qdqi_arena *arena, struct qdq_error *err)
{
    for (size_t i = 0; i < n; i++) {
        int64_t *shape =
            qdqi_arena_copy(arena, inputs[i].shape, inputs[i].rank, sizeof *shape);
        const char *name = qdqi_arena_strdup(arena, inputs[i].name);
        if (!shape || !name)
            return qdqi_no_memory(err);
        if (inputs[i].rank > 0 && shape[0] == samples)
            shape[0] = 1;
        v->shapes[i] = shape;
        v->facts[i].array = (struct qdq_array){
            name, qdqi_dtype_name((int)inputs[i].dtype), inputs[i].rank, shape};
    }
    return QDQ_OK;
}

/* Notes sizes that differ from those of the first run. */
static void
meet_shapes(struct visiting *v, const struct qdqi_input *inputs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 1; k < inputs[i].rank; k++)
            if (inputs[i].shape[k] != v->facts[i].array.shape[k])
                v->shapes[i][k] = QDQ_DIFFERS;
}

static enum qdq_code
visit_runs(struct visiting *v, struct qdqi_feed *feed, size_t n,
           struct qdqi_arena *arena, struct qdq_error *err)
{
    const struct qdqi_input *inputs;
    int64_t samples = 0;
    bool first = true;
    enum qdq_code code;
    while (!(code = qdqi_feed_next(feed, &inputs, &samples, err)) && samples > 0) {
        if (first)
            code = describe(v, inputs, n, samples, arena, err);
        else
            meet_shapes(v, inputs, n);
        for (size_t i = 0; !code && i < n; i++)
            code = visit_input(v, i, &inputs[i], err);
        if (code)
            break;
        first = false;
    }
    for (size_t i = 0; i < n; i++)
        if (v->facts[i].finite > 0)
            v->facts[i].mean = v->sums[i] / (double)v->facts[i].finite;
    return code;
}

static enum qdq_code
visit_model(struct qdq_dataset *ds, const struct qdq_model_info *model,
            const struct qdq_visitor *visitor, const struct qdq_array_facts **ret,
            struct qdq_error *err)
{
    const struct qdqi_feed_options options = {.batch = 1};
    struct visiting v = {.visitor = visitor};
    struct qdqi_feed *feed = NULL;
    struct qdqi_arena *arena = ds->arena;
    v.facts = qdqi_arena_array(arena, model->n_inputs, sizeof *v.facts);
    v.sums = qdqi_arena_array(arena, model->n_inputs, sizeof *v.sums);
    v.shapes = qdqi_arena_array(arena, model->n_inputs, sizeof *v.shapes);
    if (!v.facts || !v.sums || !v.shapes)
        return qdqi_no_memory(err);
    enum qdq_code code = qdqi_feed_open(model, ds, &options, &feed, err);
    if (!code)
        code = visit_runs(&v, feed, model->n_inputs, arena, err);
    qdqi_feed_close(&feed);
    *ret = v.facts;
    return code;
}

enum qdq_code
qdq_dataset_visit(struct qdq_dataset *ds, const struct qdq_model_info *model,
                  const struct qdq_spec *spec, const struct qdq_visitor *visitor,
                  const struct qdq_array_facts **ret, size_t *ret_n,
                  struct qdq_error *err)
{
    struct qdq_model_info own;
    enum qdq_code code = model ? QDQ_OK : model_of_arrays(ds, ds->arena, &own, err);
    if (code)
        return code;
    model = model ? model : &own;
    *ret = NULL;
    *ret_n = model->n_inputs;
    if (model->n_inputs == 0)
        return QDQ_OK;
    qdqi_dataset_prepare(ds, spec);
    code = visit_model(ds, model, visitor, ret, err);
    qdqi_dataset_prepare(ds, NULL);
    return code;
}
