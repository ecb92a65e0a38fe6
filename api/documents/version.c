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
    return api_pack("name:t version:t path:t problem:t", name, version, path, problem);
}

static json_t *
encode_device(const char *device, const char *name, const char *problem)
{
    return api_pack("device:t name:t problem:t", device, name, problem);
}

char *
api_runtime_encode(const char *path, const char *version, const char *problem)
{
    return api_json_dump(encode_backend("onnxruntime", version, path, problem), 0);
}

char *
api_judge_encode(const char *path, const char *version, const char *problem)
{
    return api_json_dump(encode_backend("openvino", version, path, problem), 0);
}

char *
api_gpu_encode(const struct api_gpu *gpu)
{
    char device[24];
    snprintf(device, sizeof device, "cuda:%d", gpu->index);
    return api_json_dump(api_pack("backend:j device:j",
                                  encode_backend("cuda", NULL, gpu->module,
                                                 gpu->cuda ? NULL : gpu->problem),
                                  encode_device(device, gpu->name, gpu->problem)),
                         0);
}

char *
api_backends_encode(const char *runtime, const char *judge, const char *const *gpus,
                    size_t n, const char *module)
{
    json_t *onnxruntime = api_json_embed(runtime), *cuda = NULL;
    const char *problem = json_string_value(json_object_get(onnxruntime, "problem"));
    json_t *devices = json_pack("[o]", encode_device("cpu", NULL, problem));
    bool ok = true;
    for (size_t i = 0; i < n; i++) {
        json_t *gpu = api_json_embed(gpus[i]);
        if (!cuda)
            cuda = json_incref(json_object_get(gpu, "backend"));
        ok = json_array_append(devices, json_object_get(gpu, "device")) == 0 && ok;
        json_decref(gpu);
    }
    if (!n)
        cuda =
            encode_backend("cuda", NULL, module, "no GPU is configured (gpu.devices)");
    return api_json_dump(json_pack("{s:[o, o, o], s:o}", "backends", onnxruntime,
                                   api_json_embed(judge), cuda, "devices",
                                   api_json_if(ok, devices)),
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
