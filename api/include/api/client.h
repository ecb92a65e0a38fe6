/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wire from the side of a client: its requests as JSON, and the service's documents as
 * the structs of which api/report.h and api/job.h make them.
 *
 * A member that a document lacks, or has in another type, is NULL, 0, NaN or empty, so that a
 * client can read the documents of other versions. All texts and arrays belong to the
 * document and live until api_document_free().
 */
#ifndef API_CLIENT_H
#define API_CLIENT_H

#include "api/files.h"
#include "api/job.h"
#include "api/problem.h"
#include "qdq.h"

/* --- requests ------------------------------------------------------------- */

/* Encodes the body of a plan or a job with its ids, labels and spec. The spec's text is
   embedded as it is, so that the service finds members that stand twice. Returns NULL when
   out of memory. */
char *api_job_request_encode(const struct api_job_request *request);
/* Encodes {"files":[{"path","digest"},…]}, the model first. Returns NULL when out of memory. */
char *api_files_encode(const struct api_file *files, size_t n);
/* Encodes the label of a job: {"name": name}. Returns NULL when out of memory. */
char *api_name_label_encode(const char *name);
/* Checks that a text is a JSON object, before it is embedded. Duplicate members are left to
   the service. */
bool api_object_check(const char *text, size_t len, struct api_problem *problem);

/* --- answers -------------------------------------------------------------- */

struct api_document;

/* Parses a document; INVALID_JSON or NO_MEMORY. */
bool api_document_parse(const char *text, size_t len, struct api_document **ret,
                        struct api_problem *problem);
void api_document_free(struct api_document **document);

/* Sets the problem that an answer with an error tells. `text` may be something else than a
   problem document, for example the page of a proxy; `status` counts then. */
void api_problem_decode(const char *text, size_t len, long status,
                        struct api_problem *problem);

/* A job, as a list and its events have it. */
struct api_job_facts {
    const char *id;
    enum api_job_state state;   /* API_N_JOB_STATES: unknown */
    const char *name, *created; /* the label `name`, and the time as text; or NULL */
    const char *stage;          /* of its progress, or NULL */
    uint64_t done, total;
    int64_t eta_s;            /* -1: not known */
    int64_t position;         /* in the queue from 1, or 0 */
    const char *waiting_for;  /* or NULL */
    const char *result_model; /* id, or NULL */
    uint64_t result_size;
    const struct api_file *files; /* of the result, where it has several */
    size_t n_files;
    struct api_problem error; /* set where the job has an error */
};

/* Each returns false, or NULL, when out of memory. */
bool api_document_job(struct api_document *document, struct api_job_facts *ret);
/* Reads the data of the event `progress` into the members of the progress. */
void api_document_progress(struct api_document *document, struct api_job_facts *ret);
/* Reads a page of jobs. *ret_cursor is NULL on the last page. */
bool api_document_jobs(struct api_document *document, const struct api_job_facts **ret,
                       size_t *ret_n, const char **ret_cursor);
/* Reads the layers and warnings of a plan or a report. The document counts pairs of
   activations and weights together: *ret_pairs. */
const struct qdq_plan_view *api_document_plan(struct api_document *document,
                                              size_t *ret_pairs);
/* Reads the facts of a model. *ret_plan has the counts of its default plan, and is NULL where
   none can be made. */
const struct qdq_model_info *api_document_model(struct api_document *document,
                                                const struct qdq_plan_view **ret_plan);
/* Reads the members of a report that its summary for a terminal has: layers, warnings, sizes,
   timings, evaluation, gates, profile, verdict. */
const struct qdq_report *api_document_report(struct api_document *document);

#endif
