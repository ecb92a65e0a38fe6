/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads any bytes as what a registry, a user or an operator can write: the first byte says
 * which. Refs that are accepted have safe names, and a description of a model always gives
 * another one.
 *
 *   clang -DFUZZING -fsanitize=fuzzer,address,undefined -I… fuzz_remote.c remote/… api/…
 */
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/kind.h"
#include "mlflow/mlmodel.h"
#include "oci/oci_api.h"
#include "s3/s3_api.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const kinds[] = {"mlflow", "oci", "s3", "webhook"};

static bool
on_object(void *arg, const struct s3_object *object, struct api_problem *problem)
{
    struct qdqr_source *source = arg;
    return source_add(source, object->key, object->size, role_by_name(object->key),
                      problem);
}

static void
read_page(const char *text, size_t skip)
{
    struct qdqr_source *source = calloc(1, sizeof *source);
    struct api_problem problem = {0};
    assert(source);
    bool ok = s3_visit_page(text, skip, on_object, source, &problem);
    assert(ok != problem.set);
    for (size_t i = 0; i < source->n_files; i++)
        assert(name_is_safe(source->files[i].name));
    qdqr_source_free(&source);
}

static void
read_ref(const char *text, const char *kind)
{
    struct qdqr_remote remote = {.name = "prod", .kind = kind};
    for (int to_publish = 0; to_publish < 2; to_publish++) {
        struct api_problem problem = {0};
        bool ok = qdqr_check_ref(&remote, text, to_publish, &problem);
        assert(ok != problem.set);
        assert(!ok || !strstr(text, "/../"));
    }
}

static void
read_credentials(const char *text, const char *kind)
{
    struct qdqr_remote remote = {.name = "prod",
                                 .kind = kind,
                                 .url = "https://registry.example/bucket",
                                 .credentials = text,
                                 .secret = text};
    struct api_problem problem = {0};
    assert(qdqr_check(&remote, &problem) != problem.set);
}

static void
read_report(const char *text, size_t len)
{
    struct qdqr_metric *metrics = NULL;
    struct api_problem problem = {0};
    size_t n = 0;
    assert(qdqr_metrics_of_report(text, len, &metrics, &n, &problem));
    qdqr_metrics_free(metrics, n);
}

static void
read_description(const char *text)
{
    struct mlmodel model = {"models:/m-1", "m-1", "r-1", "model.onnx"};
    char *made = make_mlmodel(text, &model);
    assert(made);
    free(made);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char value[64];
    if (size < 2)
        return 0;
    char *text = strndup((const char *)data + 2, size - 2);
    const char *kind = kinds[data[1] % 4];
    assert(text);
    switch (data[0]) {
    case 'p':
        read_page(text, data[1] % 8);
        break;
    case 'r':
        read_ref(text, kind);
        break;
    case 'c':
        read_credentials(text, kind);
        break;
    case 'm':
        read_report(text, strlen(text));
        break;
    case 'd':
        read_description(text);
        break;
    case 'w':
        oci_parameter(text, "realm", value, sizeof value);
        break;
    default:
        break;
    }
    free(text);
    return 0;
}

#define CORPUS "tests/fuzz/corpus/remote"
#include "replay.h"
