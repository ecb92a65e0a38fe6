/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api/genai.h"

#include <string.h>

#include "base/json.h"

static const char pointer[] = "/model/decoder/filename";

/* Returns the object that holds the decoder's file name. */
static json_t *
find_decoder(json_t *config, struct api_problem *problem)
{
    json_t *decoder = json_object_get(json_object_get(config, "model"), "decoder");
    if (json_is_string(json_object_get(decoder, "filename")))
        return decoder;
    api_fail_at(problem, API_INVALID_MODEL, pointer,
                API_GENAI_CONFIG " does not name the file of a decoder");
    return NULL;
}

char *
api_genai_model(const char *text, size_t len, struct api_problem *problem)
{
    json_t *config = api_json_load(text, len, API_INVALID_JSON, problem);
    const json_t *decoder = config ? find_decoder(config, problem) : NULL;
    char *name = NULL;
    if (decoder) {
        const char *file = json_string_value(json_object_get(decoder, "filename"));
        if (!*file || strchr(file, '/') || strcmp(file, "..") == 0 ||
            strcmp(file, ".") == 0)
            api_fail_at(problem, API_INVALID_MODEL, pointer,
                        "the decoder of " API_GENAI_CONFIG
                        " is to be a file of its folder, not '%.128s'",
                        file);
        else if (!(name = strdup(file)))
            api_problem_no_memory(problem);
    }
    json_decref(config);
    return name;
}

int64_t
api_genai_context(const char *text, size_t len)
{
    struct api_problem problem = {0};
    json_t *config = api_json_load(text, len, API_INVALID_JSON, &problem);
    const json_t *context =
        json_object_get(json_object_get(config, "model"), "context_length");
    const json_int_t n = json_is_integer(context) ? json_integer_value(context) : 0;
    json_decref(config);
    return n > 0 ? n : 0;
}

char *
api_genai_rename(const char *text, size_t len, const char *name,
                 struct api_problem *problem)
{
    json_t *config = api_json_load(text, len, API_INVALID_JSON, problem);
    json_t *decoder = config ? find_decoder(config, problem) : NULL;
    char *ret = NULL;
    if (decoder && (json_object_set_new(decoder, "filename", json_string(name)) != 0 ||
                    !(ret = json_dumps(config, JSON_INDENT(4)))))
        api_problem_no_memory(problem);
    json_decref(config);
    return ret;
}

/* --- scales of caches -------------------------------------------------------------- */

static json_t *
encode_scales(const void *items, size_t i)
{
    const struct qdq_cache_scales *row = (const struct qdq_cache_scales *)items + i;
    json_t *list = json_array();
    bool ok = list;
    for (size_t k = 0; ok && k < row->n; k++)
        ok = json_array_append_new(list, api_json_real((double)row->scales[k])) == 0;
    return api_json_if(ok, list);
}

static json_t *
encode_layer(const void *items, size_t i)
{
    return json_integer(((const struct qdq_cache_scales *)items + i)->layer);
}

char *
api_genai_scales(const struct qdq_kv_cache *kv)
{
    json_t *scales = api_pack("k_scales:a v_scales:a", kv->keys, kv->n, encode_scales,
                              kv->values, kv->n, encode_scales);
    return api_json_dump(api_pack("scales:j qmax:r layer_ids:a", scales, kv->qmax,
                                  kv->keys, kv->n, encode_layer),
                         0);
}
