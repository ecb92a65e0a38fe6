/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of all routes; see handler_fn. */
#ifndef QDQD_HANDLERS_HANDLERS_H
#define QDQD_HANDLERS_HANDLERS_H

#include "http/request.h"
#include "jobs/job.h"
#include "pool/pool.h"

/* NULL when this version has no such route. */
handler_fn handler_of(enum api_route route);

/* files.c */
void handle_blob_put(struct request *request);
void handle_blob_get(struct request *request);
void handle_blob_delete(struct request *request);
void handle_models_post(struct request *request);
void handle_model_get(struct request *request);
void handle_model_info(struct request *request);
void handle_model_delete(struct request *request);
void handle_datasets_post(struct request *request);
void handle_dataset_get(struct request *request);
void handle_dataset_delete(struct request *request);
/* Answers with the bytes of a stored model. */
void reply_model(struct request *request, const char *id);
/* Adds the digest of the bytes that `id` names. */
void reply_digest(struct request *request, const char *id);
/* Has a dataset checked; *ret is what the worker says of it, which the caller frees. */
bool check_dataset(struct request *request, struct spool *file, char **ret,
                   struct api_problem *p);

/* jobs.c */
void handle_plan_post(struct request *request);
void handle_quantize_post(struct request *request);
void handle_jobs_post(struct request *request);
void handle_job_get(struct request *request);
void handle_job_cancel(struct request *request);
void handle_job_delete(struct request *request);
void handle_job_model(struct request *request);
void handle_job_report(struct request *request);
void handle_job_spec(struct request *request);
/* A job as it is encoded; borrows from the view. */
struct api_job show_job(const struct job_view *view);

/* lists.c */
void handle_jobs_get(struct request *request);
void handle_tenants_get(struct request *request);

/* metrics.c */
void handle_metrics(struct request *request);

/* events.c */
void handle_job_events(struct request *request);

#endif
