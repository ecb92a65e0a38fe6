/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "mlflow/mlmodel.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Without a source: MLflow's client needs these members and no environment. */
static const char plain[] = "artifact_path: -\n"
                            "flavors:\n"
                            "  onnx:\n"
                            "    code: null\n"
                            "    data: model.onnx\n"
                            "    onnx_session_options: null\n"
                            "    providers:\n"
                            "    - CPUExecutionProvider\n"
                            "  python_function:\n"
                            "    data: model.onnx\n"
                            "    loader_module: mlflow.onnx\n"
                            "model_id: -\n"
                            "run_id: -\n";

/* Returns whether the line begins with the key, which has its indentation. */
static bool
has_key(const char *line, const char *key)
{
    return strncmp(line, key, strlen(key)) == 0 && line[strlen(key)] == ':';
}

/* Writes a YAML string that needs no other escapes: the names have no control characters. */
static void
print_quoted(FILE *to, const char *key, const char *value)
{
    fprintf(to, "%s: '", key);
    for (; *value; value++)
        fprintf(to, *value == '\'' ? "''" : "%c", *value);
    fputs("'\n", to);
}

/* Returns whether the line is the file of a flavour: two levels deep, "data: ….onnx". */
static bool
is_data(const char *line, size_t len)
{
    return has_key(line, "    data") && len > 5 &&
           memmem(line, len, ".onnx", 5) != NULL;
}

char *
make_mlmodel(const char *source, const struct mlmodel *model)
{
    const struct {
        const char *key, *value;
    } rows[] = {{"artifact_path", model->artifacts},
                {"model_id", model->model_id},
                {"model_uuid", model->model_id},
                {"run_id", model->run_id}};
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    for (const char *line = source ? source : plain; *line;) {
        size_t len = strcspn(line, "\n"), row = 0;
        len += line[len] == '\n';
        while (row < 4 && !has_key(line, rows[row].key))
            row++;
        if (row < 4)
            print_quoted(to, rows[row].key, rows[row].value);
        else if (is_data(line, len))
            print_quoted(to, "    data", model->file);
        else if (!has_key(line, "model_size_bytes"))
            fwrite(line, 1, len, to);
        line += len;
    }
    if (fclose(to) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
