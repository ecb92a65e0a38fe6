/* SPDX-License-Identifier: Apache-2.0 */
/* The bill of materials of a result: CycloneDX 1.6, ECMA-424. */
#include "config.h"
#include "api/lineage.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "lineage/names.h"

/* The refs of components. A further file has its number behind this. */
#define RESULT "result"
#define SOURCE "source"
#define RUNTIME "runtime"
enum { REF_SIZE = 40 };

/* Sets a member. Owns the value; returns the object, or NULL when out of memory. */
static json_t *
with(json_t *object, const char *name, json_t *value)
{
    return api_json_if(json_object_set_new(object, name, value) == 0, object);
}

static json_t *
encode_hash(const char *id)
{
    return json_pack("[o]",
                     api_pack("alg:t content:t", "SHA-256", strchr(id, ':') + 1));
}

/* Appends an item. Owns both; returns the list, or NULL when out of memory. */
static json_t *
append(json_t *list, json_t *item)
{
    return api_json_if(json_array_append_new(list, item) == 0, list);
}

/* Encodes a file; one whose digest is not known has no hash. */
static json_t *
encode_file(const char *type, const char *ref, const char *name, const char *id)
{
    json_t *file = api_pack("type:t bom-ref:t name:t", type, ref, name);
    return id ? with(file, "hashes", encode_hash(id)) : file;
}

/* Data of a kind of CycloneDX's: what a model is made or judged with. */
static json_t *
encode_data(const char *ref, const char *id)
{
    return with(encode_file("data", ref, ref, id), "data",
                json_pack("[{s:s, s:s}]", "type", "dataset", "name", ref));
}

/* Appends the files of a model, the first as a model and the others as files beside it. */
static json_t *
append_files(json_t *list, const char *ref, const struct api_file *files, size_t from,
             size_t n)
{
    char name[REF_SIZE];
    for (size_t i = from; i < n; i++) {
        snprintf(name, sizeof name, i ? "%s-%zu" : "%s", ref, i);
        list = append(list, encode_file(i ? "file" : "machine-learning-model", name,
                                        files[i].path, files[i].digest));
    }
    return list;
}

/* Returns the refs of data, as modelParameters lists them. */
static json_t *
encode_datasets(const struct api_lineage *lineage)
{
    json_t *list = json_array();
    if (lineage->calibration)
        list = append(list, api_pack("ref:t", "calibration"));
    if (lineage->evaluation)
        list = append(list, api_pack("ref:t", "evaluation"));
    return list;
}

/* The verdict of the service's own evaluation, and what made the result. */
static json_t *
encode_properties(const struct api_lineage *lineage, const json_t *summary)
{
    static const char *const names[] = {"engine", "build", "processor"};
    const json_t *made = json_object_get(summary, "made_by");
    const char *verdict = json_string_value(json_object_get(summary, "verdict"));
    json_t *list =
        append(json_array(), api_pack("name:t value:t", "qdqd:job", lineage->job));
    if (verdict)
        list = append(list, api_pack("name:t value:t", "qdqd:verdict", verdict));
    if (lineage->spec_id)
        list = append(list, api_pack("name:t value:t", "qdqd:spec", lineage->spec_id));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = json_string_value(json_object_get(made, names[i]));
        char name[REF_SIZE];
        snprintf(name, sizeof name, "qdqd:%s", names[i]);
        if (value && *value)
            list = append(list, api_pack("name:t value:t", name, value));
    }
    return list;
}

static json_t *
encode_result(const struct api_lineage *lineage, const json_t *summary)
{
    static const struct api_file removed = {"model", NULL, 0};
    const struct api_file *source = lineage->n_model ? &lineage->model[0] : &removed;
    json_t *result = encode_file("machine-learning-model", RESULT,
                                 lineage->result[0].path, lineage->result[0].digest);
    json_t *ancestors =
        json_pack("[o]", encode_file("machine-learning-model", SOURCE "-ancestor",
                                     source->path, source->digest));
    result = with(result, "modelCard",
                  json_pack("{s:{s:o}}", "modelParameters", "datasets",
                            encode_datasets(lineage)));
    result = with(result, "pedigree", api_pack("ancestors:j", ancestors));
    return with(result, "properties", encode_properties(lineage, summary));
}

static json_t *
encode_components(const struct api_lineage *lineage, const char *runtime)
{
    json_t *list =
        append_files(json_array(), SOURCE, lineage->model, 0, lineage->n_model);
    if (!lineage->n_model)
        list =
            append(list, encode_file("machine-learning-model", SOURCE, "model", NULL));
    list = append_files(list, RESULT, lineage->result, 1, lineage->n_result);
    if (lineage->calibration)
        list = append(list, encode_data("calibration", lineage->calibration));
    if (lineage->evaluation)
        list = append(list, encode_data("evaluation", lineage->evaluation));
    if (lineage->metric)
        list = append(list, encode_file("machine-learning-model", "metric", "metric",
                                        lineage->metric));
    if (runtime)
        list = append(list, api_pack("type:t bom-ref:t name:t version:t", "library",
                                     RUNTIME, API_RUNTIME_NAME, runtime));
    return list;
}

/* Says that the result depends on every component. */
static json_t *
encode_dependencies(const json_t *components)
{
    json_t *refs = json_array();
    const json_t *row;
    for (size_t i = 0; (row = json_array_get(components, i)); i++)
        refs = append(refs, json_incref(json_object_get(row, "bom-ref")));
    return json_pack("[o]", api_pack("ref:t dependsOn:j", RESULT, refs));
}

/* Writes a UUID (version 8, RFC 9562) of the result's digest, so that the same result has the
   same number. */
static void
find_serial(const char *id, char *to, size_t size)
{
    const char *hex = strchr(id, ':') + 1;
    snprintf(to, size, "urn:uuid:%.8s-%.4s-8%.3s-8%.3s-%.12s", hex, hex + 8, hex + 12,
             hex + 15, hex + 18);
}

char *
api_bom_encode(const struct api_lineage *lineage)
{
    char serial[64];
    json_t *summary = api_json_embed(lineage->summary);
    const json_t *made = json_object_get(summary, "made_by");
    const char *engine = json_string_value(json_object_get(made, "engine"));
    const char *runtime = json_string_value(json_object_get(made, "runtime"));
    json_t *tool = api_pack("type:t name:t", "application", "qdqd");
    if (engine)
        tool = with(tool, "version", json_string(engine));
    json_t *metadata = json_pack("{s:{s:[o]}, s:o}", "tools", "components", tool,
                                 "component", encode_result(lineage, summary));
    if (lineage->ended_at)
        metadata = with(metadata, "timestamp", api_json_time(lineage->ended_at));
    json_t *components = encode_components(lineage, runtime);
    json_t *dependencies = encode_dependencies(components);
    find_serial(lineage->result[0].digest, serial, sizeof serial);
    json_decref(summary);
    return api_json_dump(
        api_pack("bomFormat:t specVersion:t serialNumber:t version:d metadata:j "
                 "components:j dependencies:j",
                 "CycloneDX", "1.6", serial, 1, metadata, components, dependencies),
        0);
}
