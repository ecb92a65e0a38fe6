/* SPDX-License-Identifier: Apache-2.0 */
/* The file MLmodel, which tells MLflow's client how a model is loaded. */
#ifndef REMOTE_MLFLOW_MLMODEL_H
#define REMOTE_MLFLOW_MLMODEL_H

#include <stddef.h>

struct mlmodel {
    const char *artifacts; /* URI of the folder */
    const char *model_id, *run_id;
    const char *file; /* name of the ONNX file */
};

/*
 * Returns the description of the source with the ids and the file of this model; of `source`
 * NULL, a description with the flavours onnx and python_function. The caller frees it. NULL:
 * out of memory.
 */
char *make_mlmodel(const char *source, const struct mlmodel *model);

#endif
