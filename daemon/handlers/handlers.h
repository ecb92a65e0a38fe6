/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of all routes; see handler_fn in http/request.h. */
#ifndef QDQD_HANDLERS_HANDLERS_H
#define QDQD_HANDLERS_HANDLERS_H

#include "http/request.h"
#include "jobs/job.h"
#include "pool/pool.h"

/* Bytes of memory for a byte of a report that is decoded. */
#define HANDLERS_REPORT_COST 24

handler_fn handler_of(enum api_route route);

/* Declares the handler of each route in api/routes.h. */
#define ROUTE(name, ...) void handle_##name(struct request *request);
#include "api/routes.h"
#undef ROUTE

/* files.c */
/* Answers with the bytes of a stored model. */
void reply_model(struct request *request, const char *id);
/* Adds the digest of the bytes that `id` names. */
void reply_digest(struct request *request, const char *id);
/* Has a worker check a dataset; *ret is the worker's description, which the caller
   frees. */
bool check_dataset(const struct service *service, struct spool *file, char **ret,
                   struct api_problem *p);

/* submit.c */
/*
 * Submits the request's job, or finds the earlier one with the same key. `key` is the request's
 * Idempotency-Key, or NULL. Unless `several`, a spec with several targets is UNSUPPORTED.
 */
bool submit_job(struct request *request, const char *key, bool several,
                char id[JOB_ID_SIZE], struct api_problem *p);
/* Checks the room for the texts of a new job, which are stored with it. DISK_FULL. */
bool has_room_for_texts(const struct service *service, const struct store_job *job,
                        struct api_problem *p);
/* The spec of a request: decoded, and as the text of its effective form. */
struct asked_spec {
    struct api_spec *decoded;
    char *effective;
};
bool asked_spec_decode(const char *text, size_t len, struct asked_spec *ret,
                       struct api_problem *p);
void asked_spec_fini(struct asked_spec *spec);

/* jobs.c */
/* Reads a job, after waiting as long as the request asks for. */
bool wait_for_job(struct request *request, const char *id, struct job_view *ret);
/* Converts a job for its encoder; borrows from the view. */
struct api_job show_job(const struct job_view *view);

/* results.c */
/* Refuses with 409 and the reason when the job has not succeeded. */
bool check_succeeded(const struct job_view *view, struct api_problem *p);
/* An open JSON document of a job: its report or its frozen spec. */
struct job_document {
    char id[DIGEST_SIZE];
    int fd; /* the caller closes it */
    uint64_t size;
};
/* Opens the report of a job that ran, after waiting as long as the request asks for. */
bool open_job_report(struct request *request, const char *job,
                     struct job_document *ret);
/* Reserves memory until the request ends, for so many bytes of reports that are decoded. */
bool reserve_decoded(struct request *request, uint64_t bytes);
/* Reads a report, for which memory is reserved where `ok`, and closes it. The caller frees the text;
   NULL: the request has a problem. */
char *read_job_report(struct request *request, const struct job_document *document,
                      bool ok);
/* Chooses one of the types by the header Accept, else sets the problem that names them.
   Returns `n` where none is accepted. */
size_t choose_type(struct request *request, const char *const types[], size_t n,
                   const char *known);
/* Replies with a text that was made of reports. */
void reply_made(struct request *request, const char *type, char *text, bool is_page);
/* Adds the headers of a page, of which one is its content security policy. */
void reply_policy(struct request *request, const char *policy);

/* places.c: the places in remotes that a request for a job names */
/*
 * Checks that a token with these scopes (bits of tenants/tokens.h) may use the remotes of the
 * job's places, and that their refs have the form of the remote's kind. No connection is
 * opened. REMOTE_UNKNOWN, REMOTE_DENIED, BAD_REQUEST, UNSUPPORTED.
 */
bool places_check(const struct service *service, unsigned scopes,
                  const struct api_job_request *job, struct api_problem *p);

#endif
