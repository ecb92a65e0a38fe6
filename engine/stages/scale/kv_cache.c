/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scales of the caches that GroupQueryAttention of ONNX Runtime keeps as integers: q = round(x /
 * scale), clamped to the lowest and the highest integer. A scale is a magnitude over 128 for 8 bits,
 * and over 8 for 4 bits: the largest over the samples, or one that cache_rows.h chooses below it.
 *
 * A key has been turned by its position: elements d and d + h/2 of a head of h are a vector, and
 * low frequencies turn it little within a sample. So both have the length of that vector, which no
 * position changes, as their magnitude. (All as calibrate_kv_scales of ONNX Runtime GenAI 0.18 does
 * it.)
 */
#include "config.h"
#include "stages/scale/kv_cache.h"

#include "graph/layers/caches.h"
#include "ground/base/tasks.h"
#include "numbers/arithmetic/half.h"
#include "run/session/session.h"
#include "stages/scale/cache_rows.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A cache of a layer: an output of the graph. */
struct cache {
    long layer;
    bool is_key;
    size_t output;   /* of the graph */
    size_t channels; /* heads * size; 0: not known yet */
    float *largest;  /* by channel */
    struct qdqi_cache_rows rows;
    float *magnitudes; /* by channel: what the scales are made of */
};

struct caches {
    struct qdqi_attempt *attempt;
    struct cache *all;
    size_t n;
    Onnx__ModelProto model; /* that of the attempt, with these outputs alone */
    Onnx__GraphProto graph;
    struct qdqi_session *session;
    struct qdqi_feed *feed;
    size_t budget; /* positions of a sequence that are kept */
    size_t row_size;
    float *row;    /* [row_size] a position of all heads */
    float *floats; /* an output of float16; owned */
};

static const double LEAST = 1e-6; /* magnitude */

/* --- which outputs ------------------------------------------------------------ */

static bool
is_named(const char *name, struct cache *ret)
{
    static const char begin[] = "present.", digits[] = "0123456789";
    enum { MOST_DIGITS = 9 }; /* a file with more layers is not believed */
    *ret = (struct cache){0};
    if (strncmp(name, begin, strlen(begin)) != 0)
        return false;
    name += strlen(begin);
    const size_t n = strspn(name, digits);
    if (n == 0 || n > MOST_DIGITS || name[n] != '.')
        return false;
    ret->layer = strtol(name, NULL, 10);
    ret->is_key = strcmp(name + n + 1, "key") == 0;
    return ret->is_key || strcmp(name + n + 1, "value") == 0;
}

static void
add_cache(struct caches *c, const struct cache *cache, Onnx__ValueInfoProto *output)
{
    c->all[c->n] = *cache;
    c->all[c->n].output = c->n;
    c->graph.output[c->n++] = output;
}

static void
list_named(struct caches *c)
{
    const Onnx__GraphProto *graph = c->attempt->model->proto->graph;
    struct cache cache;
    for (size_t i = 0; i < graph->n_output; i++)
        if (is_named(graph->output[i]->name, &cache))
            add_cache(c, &cache, graph->output[i]);
}

/* Lists what attention hands to its next run, whatever its name: the keys and values of a node
   have the node's place among the others as their layer. */
static void
list_made(struct caches *c)
{
    const struct qdq_model *model = c->attempt->model;
    const Onnx__GraphProto *graph = model->proto->graph;
    for (size_t i = 0; i < graph->n_output; i++) {
        struct cache cache = {0};
        cache.layer = qdqi_caches_layer(model, graph->output[i]->name, &cache.is_key);
        if (cache.layer >= 0)
            add_cache(c, &cache, graph->output[i]);
    }
}

static int
compare_caches(const void *a, const void *b)
{
    const struct cache *x = a, *y = b;
    if (x->is_key != y->is_key)
        return x->is_key ? -1 : 1;
    return x->layer < y->layer ? -1 : x->layer > y->layer;
}

/* Returns whether each layer has its keys and its values once. */
static bool
are_pairs(const struct caches *c)
{
    const size_t half = c->n / 2;
    bool ok = c->n > 0 && c->n % 2 == 0;
    for (size_t i = 0; ok && i < half; i++)
        ok = c->all[i].is_key && !c->all[half + i].is_key &&
             c->all[i].layer == c->all[half + i].layer &&
             (i == 0 || c->all[i - 1].layer < c->all[i].layer);
    return ok;
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
    list_named(c);
    if (c->n == 0)
        list_made(c);
    c->graph.n_output = c->n;
    qsort(c->all, c->n, sizeof *c->all, compare_caches);
    return are_pairs(c)
               ? QDQ_OK
               : qdq_error_set(
                     err, QDQ_UNSUPPORTED, QDQ_AT_POINTER, "/output/kv_cache",
                     "the model has no caches: outputs of GroupQueryAttention, "
                     "or \"present.N.key\" and \"present.N.value\" for each "
                     "of some layers N");
}

/* --- magnitudes ------------------------------------------------------------------ */

/* Returns the length of a vector. Squares that float32 does not hold are those of float64; the largest
   float32 stands for a longer vector of finite numbers. */
static float
length_of(float a, float b)
{
    const float ret = sqrtf(a * a + b * b);
    if (!isinf(ret) || isinf(a) || isinf(b))
        return ret;
    const double wide = sqrt((double)a * (double)a + (double)b * (double)b);
    return wide > (double)FLT_MAX ? FLT_MAX : (float)wide;
}

/* Writes what the scales of a head are made for, at one position: values, or the lengths of the
   vectors that a key consists of. */
static void
read_position(const struct cache *cache, const float *x, size_t size, float *to)
{
    const size_t half = size / 2;
    if (!cache->is_key)
        memcpy(to, x, size * sizeof *to);
    for (size_t d = 0; cache->is_key && d < half; d++)
        to[d] = to[d + half] = length_of(x[d], x[d + half]);
}

/* Takes in the positions of a sequence: [heads][positions][size]. */
static bool
take_sequence(struct caches *c, struct cache *cache, const float *x, size_t positions,
              size_t size)
{
    const size_t heads = cache->channels / size;
    const size_t kept = positions < c->budget ? positions : c->budget;
    if (kept > 0 && !qdqi_cache_rows_grow(&cache->rows, cache->channels, kept))
        return false;
    for (size_t i = 0, k = 0; i < positions; i++) {
        for (size_t h = 0; h < heads; h++)
            read_position(cache, x + (h * positions + i) * size, size,
                          c->row + h * size);
        for (size_t d = 0; d < cache->channels; d++) {
            const float by = fabsf(c->row[d]);
            cache->largest[d] =
                by > cache->largest[d] || isnan(by) ? by : cache->largest[d];
        }
        if (k < kept && i == qdqi_cache_rows_place(k, kept, positions)) {
            qdqi_cache_rows_add(&cache->rows, c->row);
            k++;
        }
    }
    return true;
}

static enum qdq_code
begin_cache(struct caches *c, struct cache *cache, size_t channels, const char *name,
            struct qdq_error *err)
{
    if (cache->channels == 0) {
        cache->channels = channels;
        cache->largest =
            qdqi_arena_array(c->attempt->scratch, channels, sizeof *cache->largest);
        cache->magnitudes =
            qdqi_arena_array(c->attempt->scratch, channels, sizeof *cache->magnitudes);
        if (!cache->largest || !cache->magnitudes)
            return qdqi_no_memory(err);
    }
    if (channels > c->row_size) {
        c->row_size = channels;
        c->row = qdqi_arena_array(c->attempt->scratch, channels, sizeof *c->row);
        if (!c->row)
            return qdqi_no_memory(err);
    }
    return cache->channels == channels
               ? QDQ_OK
               : qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_TENSOR, name,
                               "the cache '%s' has not the same heads in all samples",
                               name);
}

/* Sets *ret to the elements of an output as float32, which live until the next call. */
static enum qdq_code
load_output(struct caches *c, const struct qdqi_output *from, size_t n,
            const float **ret, struct qdq_error *err)
{
    *ret = from->data;
    if (from->dtype == QDQI_FLOAT32)
        return QDQ_OK;
    float *floats = realloc(c->floats, (n ? n : 1) * sizeof *floats);
    if (!floats)
        return qdqi_no_memory(err);
    qdqi_load_floats(floats, from->dtype, from->data, n);
    *ret = c->floats = floats;
    return QDQ_OK;
}

static enum qdq_code
take_output(struct caches *c, struct cache *cache, const struct qdqi_output *from,
            struct qdq_error *err)
{
    const char *name = c->graph.output[cache->output]->name;
    const float *x;
    if ((from->dtype != QDQI_FLOAT32 && from->dtype != QDQI_FLOAT16) ||
        from->rank != 4 || from->shape[1] < 1 || from->shape[3] < 2 ||
        from->shape[3] % 2 != 0)
        return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_TENSOR, name,
                             "the cache '%s' is not of float32 or float16, [batch, "
                             "heads, positions, size] with an even size",
                             name);
    const size_t heads = (size_t)from->shape[1], size = (size_t)from->shape[3];
    const size_t batch = (size_t)from->shape[0], positions = (size_t)from->shape[2];
    enum qdq_code code = begin_cache(c, cache, heads * size, name, err);
    if (!code)
        code = load_output(c, from, batch * heads * positions * size, &x, err);
    for (size_t i = 0; i < batch && !code; i++, x += heads * positions * size)
        if (!take_sequence(c, cache, x, positions, size))
            code = qdqi_no_memory(err);
    for (size_t i = 0; i < cache->channels && !code; i++)
        if (!isfinite(cache->largest[i]))
            return qdq_error_set(err, QDQ_NONFINITE, QDQ_AT_TENSOR, name,
                                 "the cache '%s' holds a NaN or an infinity, so it "
                                 "has no scale",
                                 name);
    return code;
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

enum {
    SAMPLES = 24,   /* where the spec does not say how many */
    BUDGET = 12288, /* positions of all samples that are kept, at most */
};

/* Up to so many bytes of a model its weights are packed, as they are in a session of GenAI's: sums of
   packed weights are built in another order, and a magnitude differs by some millionths. */
static const uint64_t PACKED = (uint64_t)1 << 30;

/* Sets how many positions of a sequence are kept, spread over it. */
static void
share_budget(struct caches *c)
{
    const int64_t n = qdqi_feed_samples(c->feed);
    if (c->attempt->spec->kv_method != QDQ_KV_MINMAX)
        c->budget = n > 0 && n < BUDGET ? BUDGET / (size_t)n : 1;
}

static enum qdq_code
run_model(struct caches *c, struct qdq_error *err)
{
    struct qdqi_attempt *a = c->attempt;
    const struct qdq_calibration_spec *spec = &a->spec->calibration;
    const struct qdqi_feed_options options = {
        .batch = qdqi_attempt_batch(a),
        .max_samples = spec->max_samples > 0 ? spec->max_samples : SAMPLES};
    const struct qdqi_session_options session = {
        .unpacked = qdqi_attempt_is_large(a) && qdqi_model_bytes(a->model) > PACKED};
    struct qdqi_runtime *runtime;
    enum qdq_code code = qdqi_engine_runtime(a->context->engine, &runtime, err);
    if (!code)
        code = qdqi_feed_open(&a->fixed, a->context->dataset, &options, &c->feed, err);
    if (!code) {
        share_budget(c);
        code =
            qdqi_session_open(runtime, a->model, &c->model, &session, &c->session, err);
    }
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

static enum qdq_code
find_magnitudes(void *arg, size_t i, struct qdq_error *err)
{
    const struct caches *c = arg;
    const struct cache *cache = &c->all[i];
    const struct qdq_spec *spec = c->attempt->spec;
    (void)err;
    if (spec->kv_method == QDQ_KV_PERCENTILE)
        qdqi_cache_percentile(&cache->rows, spec->kv_percentile, cache->magnitudes);
    else if (spec->kv_method == QDQ_KV_MSE)
        return qdqi_cache_mse(&cache->rows, cache->largest,
                              forms[spec->kv_cache].divisor, cache->magnitudes, err);
    else
        memcpy(cache->magnitudes, cache->largest, cache->channels * sizeof(float));
    return QDQ_OK;
}

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
        const double x = (double)cache->magnitudes[i];
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
    const struct qdqi_tasks tasks = {.executor = a->context->engine->executor,
                                     .threads = a->context->engine->threads};
    struct qdq_kv_cache *ret = qdqi_arena_alloc(a->arena, sizeof *ret);
    struct qdq_cache_scales *rows = qdqi_arena_array(a->arena, c->n, sizeof *rows);
    if (!ret || !rows)
        return qdqi_no_memory(err);
    enum qdq_code code = qdqi_tasks_run(&tasks, c->n, find_magnitudes, c, err);
    if (code)
        return code;
    for (size_t i = 0; i < c->n; i++)
        rows[i] = scales_of(c, &c->all[i]);
    *ret = (struct qdq_kv_cache){.qmax = forms[a->spec->kv_cache].divisor,
                                 .n = c->n / 2,
                                 .keys = rows,
                                 .values = rows + c->n / 2};
    a->rows.kv_cache = ret;
    return qdqi_arena_exhausted(a->arena) ? qdqi_no_memory(err) : QDQ_OK;
}

static void
release(struct caches *c)
{
    for (size_t i = 0; i < c->n; i++)
        qdqi_cache_rows_fini(&c->all[i].rows);
    free(c->floats);
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
    if (!code)
        code = fill_rows(&c, err);
    release(&c);
    return code;
}
