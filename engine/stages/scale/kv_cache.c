/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scales of the caches that GroupQueryAttention of ONNX Runtime keeps as integers: q = round(x /
 * scale), clamped to the lowest and the highest integer. A scale is the largest magnitude over the
 * samples, divided by 128 for 8 bits and by 8 for 4 bits.
 *
 * A key has been turned by its position: elements d and d + h/2 of a head of h are a vector, and
 * low frequencies turn it little within a sample. So the magnitude of both is the length of that
 * vector, which no position changes. (Both as calibrate_kv_scales of ONNX Runtime GenAI 0.18 does
 * it with its method "minmax".)
 */
#include "config.h"
#include "stages/scale/kv_cache.h"

#include "run/session/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A cache of a layer: an output of the graph. */
struct cache {
    long layer;
    bool is_key;
    size_t output;   /* of the graph */
    size_t channels; /* heads * size; 0: not known yet */
    float *largest;  /* by channel */
};

struct caches {
    struct qdqi_attempt *attempt;
    struct cache *all;
    size_t n;
    Onnx__ModelProto model; /* that of the attempt, with these outputs alone */
    Onnx__GraphProto graph;
    struct qdqi_session *session;
    struct qdqi_feed *feed;
};

static const double LEAST = 1e-6; /* magnitude */

/* --- which outputs ------------------------------------------------------------ */

static bool
is_cache(const char *name, struct cache *ret)
{
    int end = 0;
    *ret = (struct cache){0};
    if (sscanf(name, "present.%ld.%n", &ret->layer, &end) != 1 || end == 0)
        return false;
    ret->is_key = strcmp(name + end, "key") == 0;
    return ret->layer >= 0 && (ret->is_key || strcmp(name + end, "value") == 0);
}

static int
compare_caches(const void *a, const void *b)
{
    const struct cache *x = a, *y = b;
    if (x->is_key != y->is_key)
        return x->is_key ? -1 : 1;
    return x->layer < y->layer ? -1 : x->layer > y->layer;
}

/* Lists the keys, then the values, both by their layers. */
static enum qdq_code
list_caches(struct caches *c, struct qdq_error *err)
{
    const Onnx__GraphProto *graph = c->attempt->model->proto->graph;
    struct qdqi_arena *arena = c->attempt->scratch;
    c->all = qdqi_arena_array(arena, graph->n_output, sizeof *c->all);
    c->model = *c->attempt->model->proto;
    c->graph = *graph;
    c->model.graph = &c->graph;
    c->graph.output = qdqi_arena_array(arena, graph->n_output, sizeof *c->graph.output);
    if (!c->all || !c->graph.output)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < graph->n_output; i++) {
        if (!is_cache(graph->output[i]->name, &c->all[c->n]))
            continue;
        c->all[c->n].output = c->n;
        c->graph.output[c->n++] = graph->output[i];
    }
    c->graph.n_output = c->n;
    qsort(c->all, c->n, sizeof *c->all, compare_caches);
    bool ok = c->n > 0 && c->n % 2 == 0;
    for (size_t i = 0; ok && i < c->n / 2; i++)
        ok = c->all[i].is_key && !c->all[c->n / 2 + i].is_key &&
             c->all[i].layer == c->all[c->n / 2 + i].layer;
    return ok ? QDQ_OK
              : qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_POINTER, "/output/kv_cache",
                              "the model has no caches: outputs \"present.N.key\" and "
                              "\"present.N.value\" for each of some layers N");
}

/* --- magnitudes ------------------------------------------------------------------ */

/* Takes in a head: [positions][size]. */
static void
take_head(const struct cache *cache, const float *x, size_t positions, size_t size,
          float *largest)
{
    const size_t half = size / 2;
    for (size_t i = 0; i < positions; i++, x += size)
        for (size_t d = 0; d < size; d++) {
            const float a = x[d], b = x[d < half ? d + half : d - half];
            const float by = cache->is_key ? sqrtf(a * a + b * b) : fabsf(a);
            largest[d] = by > largest[d] || isnan(by) ? by : largest[d];
        }
}

static enum qdq_code
take_output(struct caches *c, struct cache *cache, const struct qdqi_output *from,
            struct qdq_error *err)
{
    const char *name = c->graph.output[cache->output]->name;
    if (from->dtype != QDQI_FLOAT32 || from->rank != 4 || from->shape[1] < 1 ||
        from->shape[3] < 2 || from->shape[3] % 2 != 0)
        return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_TENSOR, name,
                             "the cache '%s' is not of float32, [batch, heads, "
                             "positions, size] with an even size",
                             name);
    const size_t heads = (size_t)from->shape[1], size = (size_t)from->shape[3];
    const size_t positions = (size_t)from->shape[2];
    if (cache->channels == 0) {
        cache->channels = heads * size;
        cache->largest = qdqi_arena_array(c->attempt->scratch, cache->channels,
                                          sizeof *cache->largest);
        if (!cache->largest)
            return qdqi_no_memory(err);
    }
    if (cache->channels != heads * size)
        return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_TENSOR, name,
                             "the cache '%s' has not the same heads in all samples",
                             name);
    const float *x = from->data;
    for (size_t i = 0; i < (size_t)from->shape[0] * heads; i++, x += positions * size)
        take_head(cache, x, positions, size, cache->largest + i % heads * size);
    for (size_t i = 0; i < cache->channels; i++)
        if (!isfinite(cache->largest[i]))
            return qdq_error_set(err, QDQ_NONFINITE, QDQ_AT_TENSOR, name,
                                 "the cache '%s' holds a NaN or an infinity, so it "
                                 "has no scale",
                                 name);
    return QDQ_OK;
}

static enum qdq_code
run_samples(struct caches *c, struct qdq_error *err)
{
    const struct qdqi_input *inputs;
    const struct qdqi_output *outputs;
    size_t n;
    for (;;) {
        int64_t samples;
        enum qdq_code code = qdqi_feed_next(c->feed, &inputs, &samples, err);
        if (code || samples == 0)
            return code;
        code = qdqi_session_run(c->session, inputs, c->attempt->model->info.n_inputs,
                                &outputs, &n, err);
        for (size_t i = 0; !code && i < c->n; i++)
            code = take_output(c, &c->all[i], &outputs[c->all[i].output], err);
        code = qdqi_feed_name_samples(c->feed, code, err);
        if (code)
            return code;
    }
}

enum { SAMPLES = 24 }; /* where the spec does not say how many */

static enum qdq_code
run_model(struct caches *c, struct qdq_error *err)
{
    struct qdqi_attempt *a = c->attempt;
    const struct qdq_calibration_spec *spec = &a->spec->calibration;
    const struct qdqi_feed_options options = {
        .batch = qdqi_attempt_batch(a),
        .max_samples = spec->max_samples > 0 ? spec->max_samples : SAMPLES};
    const struct qdqi_session_options session = {.unpacked = qdqi_attempt_is_large(a)};
    struct qdqi_runtime *runtime;
    enum qdq_code code = qdqi_engine_runtime(a->context->engine, &runtime, err);
    if (!code)
        code = qdqi_feed_open(&a->fixed, a->context->dataset, &options, &c->feed, err);
    if (!code)
        code =
            qdqi_session_open(runtime, a->model, &c->model, &session, &c->session, err);
    if (!code)
        code = run_samples(c, err);
    qdqi_session_close(&c->session);
    qdqi_feed_close(&c->feed);
    return code;
}

/* --- scales ------------------------------------------------------------------------- */

static const struct forms {
    double divisor;
    bool is_per_channel;
} forms[] = {
    [QDQ_KV_INT8_PER_TENSOR] = {128, false},
    [QDQ_KV_INT8_PER_CHANNEL] = {128, true},
    [QDQ_KV_INT4_PER_TENSOR] = {8, false},
    [QDQ_KV_INT4_PER_CHANNEL] = {8, true},
};

static float
scale_of(double largest, double divisor)
{
    return (float)((largest > LEAST ? largest : LEAST) / divisor);
}

static struct qdq_cache_scales
scales_of(const struct caches *c, const struct cache *cache)
{
    const struct forms *form = &forms[c->attempt->spec->kv_cache];
    const size_t n = form->is_per_channel ? cache->channels : 1;
    float *scales = qdqi_arena_array(c->attempt->arena, n, sizeof *scales);
    double largest = 0;
    for (size_t i = 0; scales && i < cache->channels; i++) {
        const double x = (double)cache->largest[i];
        largest = x > largest ? x : largest;
        scales[form->is_per_channel ? i : 0] =
            scale_of(form->is_per_channel ? x : largest, form->divisor);
    }
    return (struct qdq_cache_scales){cache->layer, n, scales};
}

static enum qdq_code
fill_rows(struct caches *c, struct qdq_error *err)
{
    struct qdqi_attempt *a = c->attempt;
    struct qdq_kv_cache *ret = qdqi_arena_alloc(a->arena, sizeof *ret);
    struct qdq_cache_scales *rows = qdqi_arena_array(a->arena, c->n, sizeof *rows);
    if (!ret || !rows)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < c->n; i++)
        rows[i] = scales_of(c, &c->all[i]);
    *ret = (struct qdq_kv_cache){.qmax = forms[a->spec->kv_cache].divisor,
                                 .n = c->n / 2,
                                 .keys = rows,
                                 .values = rows + c->n / 2};
    a->rows.kv_cache = ret;
    return qdqi_arena_exhausted(a->arena) ? qdqi_no_memory(err) : QDQ_OK;
}

enum qdq_code
qdqi_kv_cache(struct qdqi_attempt *a, struct qdq_error *err)
{
    struct caches c = {.attempt = a};
    if (a->spec->kv_cache == QDQ_KV_NONE)
        return QDQ_OK;
    enum qdq_code code = list_caches(&c, err);
    if (code)
        return code;
    if (!a->context->dataset)
        return qdq_error_set(err, QDQ_NO_CALIBRATION, QDQ_AT_POINTER,
                             "/output/kv_cache",
                             "scales of caches need calibration data, and there is "
                             "none");
    code = run_model(&c, err);
    return code ? code : fill_rows(&c, err);
}
