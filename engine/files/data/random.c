/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/data/random.h"
#include "files/data/dataset.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- drawing -------------------------------------------------------------- */

static uint64_t
hash_of(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
    return hash;
}

/* Returns output i of splitmix64, counted from 0. */
static uint64_t
output(uint64_t seed, uint64_t i)
{
    uint64_t x = seed + (i + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Rounds to the nearest binary16, ties to even; |x| is at most 65504. */
static uint16_t
half_of(double x)
{
    double size = fabs(x);
    int exponent = 0;
    frexp(size, &exponent); /* size < 2^exponent */
    if (exponent < -13)
        exponent = -13;
    double quanta = nearbyint(ldexp(size, 11 - exponent)); /* from 0 to 2048 */
    unsigned bits = (unsigned)quanta;
    if (bits >= 1024) /* a normal number; 2048 carries into the exponent */
        bits += (unsigned)(exponent + 13) << 10;
    return (uint16_t)((signbit(x) ? 0x8000u : 0) | bits);
}

static double
draw_float(const struct qdqi_draw *d, uint64_t i)
{
    double u = (double)(output(d->seed, i) >> 40) * 0x1p-24;
    return fma(u, d->high - d->low, d->low);
}

/* Returns the two's complement of an integer; the caller uses as many low bytes as
   the type has. */
static uint64_t
draw_integer(const struct qdqi_draw *d, uint64_t i)
{
    uint64_t low = (uint64_t)(int64_t)d->low;
    uint64_t span = (uint64_t)(int64_t)d->high - low + 1; /* at most 2^54 + 1 */
    return low + output(d->seed, i) % span;
}

void
qdqi_draw(const struct qdqi_draw *d, uint64_t first, void *to, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        uint64_t i = first + k;
        switch (d->dtype) {
        case QDQI_FLOAT32:
            ((float *)to)[k] = (float)draw_float(d, i);
            break;
        case QDQI_FLOAT64:
            ((double *)to)[k] = draw_float(d, i);
            break;
        case QDQI_FLOAT16:
            ((uint16_t *)to)[k] = half_of(draw_float(d, i));
            break;
        case QDQI_BOOL:
            ((uint8_t *)to)[k] = (uint8_t)(output(d->seed, i) >> 63);
            break;
        default: {
            uint64_t value = draw_integer(d, i);
            size_t size = qdqi_dtype_size(d->dtype);
            for (size_t byte = 0; byte < size; byte++) /* little-endian */
                ((uint8_t *)to)[k * size + byte] = (uint8_t)(value >> 8 * byte);
        }
        }
    }
}

/* --- what can be drawn ---------------------------------------------------- */

/* The bounds of a type's values; for 64-bit integers those that JSON numbers
   represent exactly. */
static const struct bounds {
    enum qdqi_dtype dtype;
    bool is_float;
    double low, high;
} bounds[] = {
    {QDQI_FLOAT16, true, -65504, 65504},
    {QDQI_FLOAT32, true, -0x1.fffffep127, 0x1.fffffep127},
    {QDQI_FLOAT64, true, -0x1.fffffffffffffp1023, 0x1.fffffffffffffp1023},
    {QDQI_BOOL, false, 0, 1},
    {QDQI_INT8, false, INT8_MIN, INT8_MAX},
    {QDQI_UINT8, false, 0, UINT8_MAX},
    {QDQI_INT16, false, INT16_MIN, INT16_MAX},
    {QDQI_UINT16, false, 0, UINT16_MAX},
    {QDQI_INT32, false, INT32_MIN, INT32_MAX},
    {QDQI_UINT32, false, 0, UINT32_MAX},
    {QDQI_INT64, false, -0x1p53, 0x1p53},
    {QDQI_UINT64, false, 0, 0x1p53},
};

static const struct bounds *
bounds_of(const char *dtype)
{
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        if (strcmp(qdqi_dtype_name(bounds[i].dtype), dtype) == 0)
            return &bounds[i];
    return NULL;
}

const struct qdq_random_input *
qdqi_random_given(const struct qdq_calibration_spec *c, const char *input)
{
    for (size_t i = 0; i < c->n_random; i++)
        if (strcmp(c->random[i].input, input) == 0)
            return &c->random[i];
    return NULL;
}

static enum qdq_code
check_shape(const struct qdq_value *input, struct qdq_error *err)
{
    if (!input->has_shape)
        return qdq_error_set(err, QDQ_INVALID_SPEC, QDQ_AT_INPUT, input->name,
                             "no random samples can be made for input '%s': the model "
                             "does not say its shape",
                             input->name);
    for (size_t i = 1; i < input->rank; i++) {
        const struct qdq_dim *dim = &input->dims[i];
        if (dim->value >= 1)
            continue;
        if (dim->value < 0 && dim->symbol)
            return qdq_error_set(err, QDQ_INVALID_SPEC, QDQ_AT_INPUT, input->name,
                                 "no random samples can be made for input '%.128s': "
                                 "axis %zu is '%.128s', which calibration.dims gives "
                                 "no size",
                                 input->name, i, dim->symbol);
        return qdq_error_set(err, QDQ_INVALID_SPEC, QDQ_AT_INPUT, input->name,
                             "no random samples can be made for input '%s': axis %zu "
                             "has no size in the model",
                             input->name, i);
    }
    return QDQ_OK;
}

static enum qdq_code
check_given(const struct qdq_value *input, const struct qdq_random_input *given,
            const struct bounds *b, const char *pointer, struct qdq_error *err)
{
    if (b->dtype == QDQI_BOOL)
        return qdq_error_set(err, QDQ_INVALID_SPEC, QDQ_AT_POINTER, pointer,
                             "input '%s' is bool; its random values are true and "
                             "false and take no bounds",
                             input->name);
    if (!b->is_float &&
        (given->low != floor(given->low) || given->high != floor(given->high)))
        return qdq_error_set(err, QDQ_INVALID_SPEC, QDQ_AT_POINTER, pointer,
                             "input '%s' is %s; the bounds of its random values are "
                             "to be integers",
                             input->name, input->dtype);
    if (given->low < b->low || given->high > b->high)
        return qdq_error_set(err, QDQ_INVALID_SPEC, QDQ_AT_POINTER, pointer,
                             "input '%s' is %s; the bounds of its random values are "
                             "to lie from %.17g to %.17g",
                             input->name, input->dtype, b->low, b->high);
    return QDQ_OK;
}

enum qdq_code
qdqi_draw_init(const struct qdq_value *input, const struct qdq_random_input *given,
               const char *pointer, struct qdqi_draw *ret, struct qdq_error *err)
{
    const struct bounds *b = bounds_of(input->dtype);
    if (!b)
        return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_INPUT, input->name,
                             "no random samples can be made for input '%s' of type %s",
                             input->name, *input->dtype ? input->dtype : "unknown");
    enum qdq_code code = check_shape(input, err);
    if (!code && given)
        code = check_given(input, given, b, pointer, err);
    if (!code && !given && !b->is_float && b->dtype != QDQI_BOOL)
        code =
            qdq_error_set(err, QDQ_INVALID_SPEC, QDQ_AT_POINTER, "/calibration/random",
                          "input '%s' is %s; calibration.random has to say from "
                          "what to what its random values go",
                          input->name, input->dtype);
    if (code)
        return code;
    *ret = (struct qdqi_draw){b->dtype, hash_of(input->name), given ? given->low : 0,
                              given ? given->high : 1};
    return QDQ_OK;
}

/* --- a dataset of random samples ----------------------------------------- */

/*
 * Returns the batch that axis 0 of all inputs has: 0 where the model leaves it open, -1
 * where axis 0 is not one common batch, so that samples are counted by an extra axis.
 */
static int64_t
batch_of(const struct qdq_model_info *model)
{
    int64_t batch = 0;
    for (size_t i = 0; i < model->n_inputs; i++) {
        const struct qdq_value *input = &model->inputs[i];
        int64_t n = input->rank ? input->dims[0].value : -1;
        if (input->rank == 0 || (n > 0 && batch > 0 && n != batch))
            return -1;
        if (n > 0)
            batch = n;
    }
    return batch;
}

/* Sets shape and size of one input's elements over all samples. */
static enum qdq_code
add_array(struct qdq_dataset *ds, const struct qdq_value *input, int64_t batch,
          struct qdq_error *err)
{
    size_t own = batch < 0 ? 1 : 0, rank = input->rank + own;
    size_t n = ds->info.n_arrays;
    const char *name = qdqi_arena_strdup(ds->arena, input->name);
    int64_t *shape = qdqi_arena_array(ds->arena, rank, sizeof *shape);
    uint64_t size = qdqi_dtype_size(ds->draws[n].dtype);
    if (!name || !shape)
        return qdqi_no_memory(err);
    shape[0] = ds->info.samples;
    for (size_t i = 1; i < rank; i++) {
        int64_t dim = input->dims[i - own].value;
        shape[i] = dim > 0 ? dim : 1; /* an open axis 0 gets one row for each sample */
    }
    for (size_t i = 0; i < rank; i++)
        if (__builtin_mul_overflow(size, (uint64_t)shape[i], &size) || size > INT64_MAX)
            return qdq_error_set(err, QDQ_LIMIT_EXCEEDED, QDQ_AT_INPUT, name,
                                 "the random samples of input '%s' are too large",
                                 name);
    ds->arrays[n] =
        (struct qdq_array){name, qdqi_dtype_name((int)ds->draws[n].dtype), rank, shape};
    ds->items[n] = (struct qdqi_item){
        .dtype = ds->draws[n].dtype, .size = size, .input = QDQI_NAMED};
    ds->info.n_arrays++;
    return QDQ_OK;
}

static enum qdq_code
fill(struct qdq_dataset *ds, const struct qdq_model_info *model,
     const struct qdq_calibration_spec *c, struct qdq_error *err)
{
    int64_t batch = batch_of(model), n = c->random_samples;
    ds->arena = qdqi_arena_new();
    if (!ds->arena)
        return qdqi_no_memory(err);
    ds->arrays = qdqi_arena_array(ds->arena, model->n_inputs, sizeof *ds->arrays);
    ds->items = qdqi_arena_array(ds->arena, model->n_inputs, sizeof *ds->items);
    ds->draws = qdqi_arena_array(ds->arena, model->n_inputs, sizeof *ds->draws);
    if (!ds->arrays || !ds->items || !ds->draws)
        return qdqi_no_memory(err);
    ds->info.arrays = ds->arrays;
    ds->info.samples = batch > 1 ? (n + batch - 1) / batch * batch : n;
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; !code && i < model->n_inputs; i++) {
        const struct qdq_value *input = &model->inputs[i];
        code = qdqi_draw_init(input, qdqi_random_given(c, input->name),
                              "/calibration/random", &ds->draws[i], err);
        if (!code)
            code = add_array(ds, input, batch, err);
    }
    return code;
}

enum qdq_code
qdqi_random_open(const struct qdq_model_info *model,
                 const struct qdq_calibration_spec *c, struct qdq_dataset **ret,
                 struct qdq_error *err)
{
    struct qdq_dataset *ds = calloc(1, sizeof *ds);
    if (!ds)
        return qdqi_no_memory(err);
    ds->fd = -1;
    enum qdq_code code = fill(ds, model, c, err);
    if (code) {
        qdqi_arena_free(&ds->arena); /* it has nothing else yet */
        free(ds);
        return code;
    }
    *ret = ds;
    return QDQ_OK;
}
