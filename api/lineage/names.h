/* SPDX-License-Identifier: Apache-2.0 */
/* The names in statements, which are written in one file and read in another. */
#ifndef API_LINEAGE_NAMES_H
#define API_LINEAGE_NAMES_H

#include <jansson.h>

#define API_STATEMENT_TYPE "https://in-toto.io/Statement/v1"
#define API_MANIFEST_TYPE "https://model_signing/signature/v1.0"
#define API_PROVENANCE_TYPE "https://slsa.dev/provenance/v1"
#define API_BUILD_TYPE "urn:qdqd:quantization:v1"
#define API_BUILDER "urn:qdqd"
#define API_MODEL_URI "urn:qdqd:model:"

/* Names of resolvedDependencies. */
#define API_MODEL_INPUT "model"
#define API_EXTERNAL_INPUT "external"
#define API_CALIBRATION_INPUT "calibration"
#define API_EVALUATION_INPUT "evaluation"
#define API_RUNTIME_INPUT "runtime"
#define API_RUNTIME_NAME "ONNX Runtime"

#endif
