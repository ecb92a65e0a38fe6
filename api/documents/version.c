/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api/version.h"

#include <stdio.h>

#include "base/json.h"
#include "qdq/quantize.h"

static json_t *
encode_backend(const char *name, const char *version, const char *path,
               const char *problem)
{
    return json_pack("{s:s, s:o, s:o, s:o}", "name", name, "version",
                     api_json_text(version), "path", api_json_text(path), "problem",
                     api_json_text(problem));
}

static json_t *
encode_device(const char *device, const char *name, const char *problem)
{
    return json_pack("{s:s, s:o, s:o}", "device", device, "name", api_json_text(name),
                     "problem", api_json_text(problem));
}

char *
api_runtime_encode(const char *path, const char *version, const char *problem)
{
    return api_json_dump(encode_backend("onnxruntime", version, path, problem), 0);
}

char *
api_judge_encode(const char *name, const char *path, const char *version,
                 const char *problem)
{
    return api_json_dump(encode_backend(name, version, path, problem), 0);
}

char *
api_gpu_encode(const struct api_gpu *gpu)
{
    char device[24];
    snprintf(device, sizeof device, "cuda:%d", gpu->index);
    return api_json_dump(json_pack("{s:o, s:o}", "backend",
                                   encode_backend("cuda", NULL, gpu->module,
                                                  gpu->cuda ? NULL : gpu->problem),
                                   "device",
                                   encode_device(device, gpu->name, gpu->problem)),
                         0);
}

/* Returns a new reference to a member of an object. */
static json_t *
get_member(const json_t *json, const char *member)
{
    return json_incref(json_object_get(json, member));
}

/* Appends `item`. Owns both; returns the array, or NULL when out of memory. */
static json_t *
append(json_t *array, json_t *item)
{
    if (json_array_append_new(array, item) == 0)
        return array;
    json_decref(array);
    return NULL;
}

char *
api_backends_encode(const struct api_backends *from)
{
    json_t *runtime = api_json_embed(from->runtime), *cuda = NULL;
    const char *problem = json_string_value(json_object_get(runtime, "problem"));
    json_t *devices = json_pack("[o]", encode_device("cpu", NULL, problem));
    json_t *backends = append(json_array(), runtime);
    for (size_t i = 0; i < from->n_judges; i++)
        backends = append(backends, api_json_embed(from->judges[i]));
    for (size_t i = 0; i < from->n_gpus; i++) {
        json_t *gpu = api_json_embed(from->gpus[i]);
        if (!cuda)
            cuda = get_member(gpu, "backend");
        devices = append(devices, get_member(gpu, "device"));
        json_decref(gpu);
    }
    if (!from->n_gpus)
        cuda = encode_backend("cuda", NULL, from->module,
                              "no GPU is configured (gpu.devices)");
    return api_json_dump(
        json_pack("{s:o, s:o}", "backends", append(backends, cuda), "devices", devices),
        0);
}

char *
api_version_encode(const char *backends)
{
    json_t *found = api_json_embed(backends);
    json_t *json =
        json_pack("{s:s, s:s, s:O?, s:O?}", "version", PACKAGE_VERSION, "engine",
                  qdq_version(), "backends", json_object_get(found, "backends"),
                  "devices", json_object_get(found, "devices"));
    json_decref(found);
    return api_json_dump(json, 0);
}
