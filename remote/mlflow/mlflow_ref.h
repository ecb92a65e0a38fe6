/* SPDX-License-Identifier: Apache-2.0 */
/* Refs of MLflow's model registry: "models:/NAME/VERSION" and "models:/NAME@ALIAS". */
#ifndef REMOTE_MLFLOW_MLFLOW_REF_H
#define REMOTE_MLFLOW_MLFLOW_REF_H

#include "remote/remote.h"

struct mlflow_ref {
    char name[QDQR_REF], version[QDQR_REF], alias[QDQR_REF]; /* "": absent */
};

/* Parses a ref. For publishing it has no version and may do without an alias. */
bool parse_mlflow_ref(const char *ref, bool to_publish, struct mlflow_ref *ret,
                      struct api_problem *problem);

#endif
