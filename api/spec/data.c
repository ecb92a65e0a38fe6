/* SPDX-License-Identifier: Apache-2.0 */
/* The members calibration.dims ({"seq": 128}) and calibration.random ({input: [low,
   high]}). */
#include "config.h"
#include "spec/members.h"

#include <math.h>

/* --- dims ----------------------------------------------------------------- */

static bool
decode_dim(struct decoder *d, const char *symbol, json_t *value)
{
    struct qdq_dim_value *to = d->object;
    int64_t n;
    if (!json_is_number(value) || !api_json_integer(value, &n))
        return api_refuse(d, API_INVALID_SPEC, "",
                          "the size of \"%.64s\" is to be an integer, not %s", symbol,
                          json_is_real(value) ? "a fraction or so large a number"
                                              : api_json_type_name(value));
    to->symbol = symbol;
    return api_parse_integer(d, "", value, 1, API_COUNT_MAX, &to->size);
}

static json_t *
encode_dim(const void *item)
{
    return json_integer(((const struct qdq_dim_value *)item)->size);
}

const struct list api_dims = {
    .size = sizeof(struct qdq_dim_value),
    .max = API_COUNT_MAX,
    .decode = decode_dim,
    .encode = encode_dim,
    .items = offsetof(struct qdq_spec, calibration.dims),
    .n = offsetof(struct qdq_spec, calibration.n_dims),
};

/* --- random --------------------------------------------------------------- */

static bool
decode_bounds(struct decoder *d, const char *input, json_t *value)
{
    struct qdq_random_input *to = d->object;
    json_t *low = json_array_get(value, 0), *high = json_array_get(value, 1);
    if (json_array_size(value) != 2 || !json_is_number(low) || !json_is_number(high))
        return api_refuse(
            d, API_INVALID_SPEC, "",
            "the random values of \"%.64s\" are to be two numbers: lowest, highest",
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

static json_t *
encode_bounds(const void *item)
{
    const struct qdq_random_input *random = item;
    return json_pack("[o, o]", api_json_real(random->low), api_json_real(random->high));
}

const struct list api_random = {
    .size = sizeof(struct qdq_random_input),
    .max = API_COUNT_MAX,
    .decode = decode_bounds,
    .encode = encode_bounds,
    .items = offsetof(struct qdq_spec, calibration.random),
    .n = offsetof(struct qdq_spec, calibration.n_random),
};

bool
api_check_random(struct decoder *d)
{
    const struct qdq_calibration_spec *c = &d->to->spec.calibration;
    return c->n_random == 0 || c->random_samples > 0 ||
           api_refuse(d, API_INVALID_SPEC, "/calibration/random",
                      "calibration.random says what random samples are, and "
                      "calibration.random_samples asks for none");
}
