/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every route: ROUTE(name, "METHOD", "/pattern/{id}", BODY, SCOPE, LOG). The daemon's
 * function handle_NAME() answers it (docs/extend/adding-a-route.md).
 *
 * {id} or {name} matches one non-empty path segment; {target} or {delivery} another one behind it.
 *
 * BODY is the body that a request has:
 *   NONE  no body
 *   FILE  one file: the raw body, or the part `calibration` of a form
 *   MODEL the raw body; the parts `model` and `external` of a form; or, as JSON, the
 *         digests of stored files
 *   BLOB  one file: the raw body, whatever it is called; {id} is its digest
 *   JOB   a job: JSON, or a multipart form of parts
 *   MESSAGE  a short text, as it was sent, whatever its type
 *
 * SCOPE is the scope that an access token needs: READ, SUBMIT, METRICS or ADMIN, where
 * ADMIN has all of them; ANYBODY needs no token and is answered even when there are too
 * many connections; SIGNED needs no token, because the handler checks the signature of the
 * body.
 *
 * LOG says whether requests have a line in the log: LOGGED, or QUIET for what is asked
 * every few seconds.
 */
ROUTE(blob_put, "PUT", "/v1/blobs/{id}", BLOB, SUBMIT, LOGGED)
ROUTE(blob_get, "GET", "/v1/blobs/{id}", NONE, READ, LOGGED)
ROUTE(blob_delete, "DELETE", "/v1/blobs/{id}", NONE, SUBMIT, LOGGED)
ROUTE(models_post, "POST", "/v1/models", MODEL, SUBMIT, LOGGED)
ROUTE(model_get, "GET", "/v1/models/{id}", NONE, READ, LOGGED)
ROUTE(model_info, "GET", "/v1/models/{id}/info", NONE, READ, LOGGED)
ROUTE(model_delete, "DELETE", "/v1/models/{id}", NONE, SUBMIT, LOGGED)
ROUTE(datasets_post, "POST", "/v1/datasets", FILE, SUBMIT, LOGGED)
ROUTE(dataset_get, "GET", "/v1/datasets/{id}", NONE, READ, LOGGED)
ROUTE(dataset_delete, "DELETE", "/v1/datasets/{id}", NONE, SUBMIT, LOGGED)
ROUTE(plan_post, "POST", "/v1/plan", JOB, SUBMIT, LOGGED)
ROUTE(quantize_post, "POST", "/v1/quantize", JOB, SUBMIT, LOGGED)
ROUTE(jobs_post, "POST", "/v1/jobs", JOB, SUBMIT, LOGGED)
ROUTE(jobs_get, "GET", "/v1/jobs", NONE, READ, LOGGED)
ROUTE(job_get, "GET", "/v1/jobs/{id}", NONE, READ, LOGGED)
ROUTE(job_events, "GET", "/v1/jobs/{id}/events", NONE, READ, LOGGED)
ROUTE(job_cancel, "POST", "/v1/jobs/{id}/cancel", NONE, SUBMIT, LOGGED)
ROUTE(job_delete, "DELETE", "/v1/jobs/{id}", NONE, SUBMIT, LOGGED)
ROUTE(job_model, "GET", "/v1/jobs/{id}/model", NONE, READ, LOGGED)
ROUTE(job_report, "GET", "/v1/jobs/{id}/report", NONE, READ, LOGGED)
ROUTE(job_compare, "GET", "/v1/jobs/{id}/compare", NONE, READ, LOGGED)
ROUTE(job_spec, "GET", "/v1/jobs/{id}/spec", NONE, READ, LOGGED)
ROUTE(job_signature, "GET", "/v1/jobs/{id}/signature", NONE, READ, LOGGED)
ROUTE(job_provenance, "GET", "/v1/jobs/{id}/provenance", NONE, READ, LOGGED)
ROUTE(job_bom, "GET", "/v1/jobs/{id}/bom", NONE, READ, LOGGED)
ROUTE(target_model, "GET", "/v1/jobs/{id}/targets/{target}/model", NONE, READ, LOGGED)
ROUTE(target_report, "GET", "/v1/jobs/{id}/targets/{target}/report", NONE, READ, LOGGED)
ROUTE(target_spec, "GET", "/v1/jobs/{id}/targets/{target}/spec", NONE, READ, LOGGED)
ROUTE(target_signature, "GET", "/v1/jobs/{id}/targets/{target}/signature", NONE, READ,
      LOGGED)
ROUTE(target_provenance, "GET", "/v1/jobs/{id}/targets/{target}/provenance", NONE, READ,
      LOGGED)
ROUTE(target_bom, "GET", "/v1/jobs/{id}/targets/{target}/bom", NONE, READ, LOGGED)
ROUTE(deliveries_get, "GET", "/v1/jobs/{id}/deliveries", NONE, READ, LOGGED)
ROUTE(delivery_retry, "POST", "/v1/jobs/{id}/deliveries/{delivery}/retry", NONE, SUBMIT,
      LOGGED)
ROUTE(hook_post, "POST", "/v1/hooks/{name}", MESSAGE, SIGNED, QUIET)
ROUTE(tenants_get, "GET", "/v1/tenants", NONE, ADMIN, LOGGED)
ROUTE(nodes_get, "GET", "/v1/nodes", NONE, ADMIN, LOGGED)
ROUTE(remotes_get, "GET", "/v1/remotes", NONE, READ, LOGGED)
ROUTE(layers_get, "GET", "/v1/layers", NONE, READ, LOGGED)
ROUTE(cases_get, "GET", "/v1/cases", NONE, READ, LOGGED)
ROUTE(targets_get, "GET", "/v1/targets", NONE, READ, LOGGED)
ROUTE(errors_get, "GET", "/v1/errors", NONE, READ, LOGGED)
ROUTE(healthz, "GET", "/healthz", NONE, ANYBODY, QUIET)
ROUTE(readyz, "GET", "/readyz", NONE, ANYBODY, QUIET)
ROUTE(metrics, "GET", "/metrics", NONE, METRICS, QUIET)
ROUTE(version, "GET", "/version", NONE, READ, LOGGED)
ROUTE(root, "GET", "/", NONE, ANYBODY, LOGGED)
ROUTE(ui, "GET", "/ui", NONE, ANYBODY, LOGGED)
ROUTE(openapi, "GET", "/openapi.yaml", NONE, READ, LOGGED)
