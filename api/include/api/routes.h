/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every route: ROUTE(NAME, "METHOD", "/pattern/{id}", BODY).
 *
 * {id} matches one non-empty path segment. BODY says what the route takes:
 *   NONE  no body
 *   FILE  one file: the raw body, or the part `calibration` of a form
 *   MODEL the raw body; the parts `model` and `external` of a form; or, as JSON, the
 *         digests of stored files
 *   BLOB  one file: the raw body, whatever it is called; {id} is its digest
 *   JOB   a job: JSON, or a multipart form of parts
 */
ROUTE(BLOB_PUT, "PUT", "/v1/blobs/{id}", BLOB)
ROUTE(BLOB_GET, "GET", "/v1/blobs/{id}", NONE)
ROUTE(BLOB_DELETE, "DELETE", "/v1/blobs/{id}", NONE)
ROUTE(MODELS_POST, "POST", "/v1/models", MODEL)
ROUTE(MODEL_GET, "GET", "/v1/models/{id}", NONE)
ROUTE(MODEL_INFO, "GET", "/v1/models/{id}/info", NONE)
ROUTE(MODEL_DELETE, "DELETE", "/v1/models/{id}", NONE)
ROUTE(DATASETS_POST, "POST", "/v1/datasets", FILE)
ROUTE(DATASET_GET, "GET", "/v1/datasets/{id}", NONE)
ROUTE(DATASET_DELETE, "DELETE", "/v1/datasets/{id}", NONE)
ROUTE(PLAN_POST, "POST", "/v1/plan", JOB)
ROUTE(QUANTIZE_POST, "POST", "/v1/quantize", JOB)
ROUTE(JOBS_POST, "POST", "/v1/jobs", JOB)
ROUTE(JOBS_GET, "GET", "/v1/jobs", NONE)
ROUTE(JOB_GET, "GET", "/v1/jobs/{id}", NONE)
ROUTE(JOB_EVENTS, "GET", "/v1/jobs/{id}/events", NONE)
ROUTE(JOB_CANCEL, "POST", "/v1/jobs/{id}/cancel", NONE)
ROUTE(JOB_DELETE, "DELETE", "/v1/jobs/{id}", NONE)
ROUTE(JOB_MODEL, "GET", "/v1/jobs/{id}/model", NONE)
ROUTE(JOB_REPORT, "GET", "/v1/jobs/{id}/report", NONE)
ROUTE(JOB_SPEC, "GET", "/v1/jobs/{id}/spec", NONE)
ROUTE(TENANTS_GET, "GET", "/v1/tenants", NONE)
ROUTE(LAYERS_GET, "GET", "/v1/layers", NONE)
ROUTE(CASES_GET, "GET", "/v1/cases", NONE)
ROUTE(ERRORS_GET, "GET", "/v1/errors", NONE)
ROUTE(HEALTHZ, "GET", "/healthz", NONE)
ROUTE(READYZ, "GET", "/readyz", NONE)
ROUTE(METRICS, "GET", "/metrics", NONE)
ROUTE(VERSION, "GET", "/version", NONE)
ROUTE(OPENAPI, "GET", "/openapi.yaml", NONE)
