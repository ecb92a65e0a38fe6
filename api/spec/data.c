/* SPDX-License-Identifier: Apache-2.0 */
/* The members calibration.dims ({"seq": 128}) and calibration.random ({input: [low,
   high]}). */
#include "config.h"
#include "spec/members.h"

#include <math.h>
#include <stdio.h>

/* Returns a decoder for the member `key` of an object whose keys are names of the model;
   `at` becomes its pointer. */
static struct decoder
decoder_at(const struct decoder *d, char at[static 256], const struct member *m,
           const char *key)
{
    snprintf(at, 256, "%s%s", d->at, m->pointer);
    api_json_pointer_add(at, 256, key);
    return (struct decoder){d->to, d->problem, NULL, NULL, at};
}

/* --- dims ----------------------------------------------------------------- */

static bool
decode_dim(struct decoder *d, const char *symbol, json_t *value,
           struct qdq_dim_value *to)
{
    int64_t n;
    if (!json_is_number(value) || !api_json_integer(value, &n))
        return api_refuse(d, API_INVALID_SPEC, "",
                          "the size of \"%.64s\" is to be an integer, not %s", symbol,
                          json_is_real(value) ? "a fraction or so large a number"
                                              : api_json_type_name(value));
    to->symbol = symbol;
    return api_parse_integer(d, "", value, 1, API_COUNT_MAX, &to->size);
}

bool
api_decode_dims(struct decoder *d, const struct member *m, json_t *value)
{
    struct qdq_calibration_spec *c = &d->to->spec.calibration;
    struct qdq_dim_value *dims =
        api_spec_alloc(d, json_object_size(value), sizeof *dims);
    const char *key;
    json_t *item;
    c->dims = dims;
    if (!dims)
        return false;
    json_object_foreach (value, key, item) {
        char at[256];
        struct decoder inner = decoder_at(d, at, m, key);
        if (!decode_dim(&inner, key, item, &dims[c->n_dims]))
            return false;
        c->n_dims++;
    }
    return true;
}

json_t *
api_encode_dims(const void *object, const struct member *m)
{
    const struct qdq_calibration_spec *c =
        &((const struct qdq_spec *)object)->calibration;
    (void)m;
    json_t *dims = c->n_dims ? json_object() : json_null();
    for (size_t i = 0; dims && i < c->n_dims; i++)
        if (json_object_set_new(dims, c->dims[i].symbol,
                                json_integer(c->dims[i].size)) != 0) {
            json_decref(dims);
            dims = NULL;
        }
    return dims;
}

/* --- random --------------------------------------------------------------- */

static bool
decode_bounds(struct decoder *d, const char *input, json_t *value,
              struct qdq_random_input *to)
{
    json_t *low = json_array_get(value, 0), *high = json_array_get(value, 1);
    if (json_array_size(value) != 2 || !json_is_number(low) || !json_is_number(high))
        return api_refuse(d, API_INVALID_SPEC, "",
                          "the random values of \"%.64s\" are to be two numbers: "
                          "lowest, highest",
                          input);
    *to = (struct qdq_random_input){input, json_number_value(low),
                                    json_number_value(high)};
    if (to->low > to->high)
        return api_refuse(d, API_INVALID_SPEC, "",
                          "the lowest random value of \"%.64s\" is above its highest",
                          input);
    return isfinite(to->high - to->low) ||
           api_refuse(d, API_INVALID_SPEC, "",
                      "the random values of \"%.64s\" are too far apart", input);
}

bool
api_decode_random(struct decoder *d, const struct member *m, json_t *value)
{
    struct qdq_calibration_spec *c = &d->to->spec.calibration;
    struct qdq_random_input *random =
        api_spec_alloc(d, json_object_size(value), sizeof *random);
    const char *key;
    json_t *item;
    c->random = random;
    if (!random)
        return false;
    json_object_foreach (value, key, item) {
        char at[256];
        struct decoder inner = decoder_at(d, at, m, key);
        if (!decode_bounds(&inner, key, item, &random[c->n_random]))
            return false;
        c->n_random++;
    }
    return true;
}

json_t *
api_encode_random(const void *object, const struct member *m)
{
    const struct qdq_calibration_spec *c =
        &((const struct qdq_spec *)object)->calibration;
    (void)m;
    json_t *random = c->n_random ? json_object() : json_null();
    for (size_t i = 0; random && i < c->n_random; i++)
        if (json_object_set_new(random, c->random[i].input,
                                json_pack("[o, o]", api_json_real(c->random[i].low),
                                          api_json_real(c->random[i].high))) != 0) {
            json_decref(random);
            random = NULL;
        }
    return random;
}

bool
api_check_random(struct decoder *d)
{
    const struct qdq_calibration_spec *c = &d->to->spec.calibration;
    return c->n_random == 0 || c->random_samples > 0 ||
           api_refuse(d, API_INVALID_SPEC, "/calibration/random",
                      "calibration.random says what random samples are, and "
                      "calibration.random_samples asks for none");
}
