/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs, models and datasets as JSON. Every encoder returns text that the caller frees,
 * or NULL when out of memory. Times are milliseconds since 1970 UTC; 0 means "not yet"
 * and becomes null.
 */
#ifndef API_JOB_H
#define API_JOB_H

#include "api/problem.h"
#include "api/remote.h"
#include "qdq/spec.h"

enum api_job_state {
    API_JOB_QUEUED,
    API_JOB_RUNNING,
    API_JOB_SUCCEEDED,
    API_JOB_FAILED,
    API_JOB_CANCELLED,
    API_N_JOB_STATES
};

const char *api_job_state_name(enum api_job_state state);
/* Returns the state of that name, or API_N_JOB_STATES. */
enum api_job_state api_job_state_parse(const char *name);
bool api_job_state_ended(enum api_job_state state);

/* Limits of the labels of a new job: their number, and the bytes of their JSON. */
#define API_MAX_LABELS 64
#define API_MAX_LABELS_TEXT 4096
/* Where jobs are listed, a spec or labels of more bytes are left out. */
#define API_MAX_LISTED 4096

/* A job to encode. NULL strings become null. Texts marked JSON are embedded
   unchanged. */
struct api_job {
    const char *id;
    enum api_job_state state;
    const char *stage; /* stage of the progress, NULL before the first */
    uint64_t done, total;
    int64_t eta_s;    /* -1: not known */
    int64_t position; /* place in the queue from 1; 0 when it is not in the queue */
    const char *waiting_for; /* the job that this one joined, NULL: none */
    const char *cached_from; /* the job whose result this one got, NULL: none */
    int64_t attempts;        /* how often a worker has begun the job */
    int64_t created_at, started_at, ended_at, expires_at;
    const char *model, *calibration; /* ids */
    const char *evaluation;          /* likewise */
    const char *spec;                /* JSON, as the client sent it */
    const char *labels;              /* JSON object */
    /* "sha256:…" of the quantized model; absent for a job that did not succeed */
    const char *result_model;
    const char *result_files; /* JSON, where the result has several files */
    uint64_t result_size;
    const char *summary;    /* JSON */
    const char *source;     /* JSON: where the inputs came from (api_source_encode()) */
    const char *deliveries; /* JSON array; NULL: none */
    const struct api_problem *error; /* NULL unless failed or cancelled */
    /* name of the job's tenant, "": the tenant without a name; NULL: the member is
       left out */
    const char *tenant;
    /* the job of which it is one target; NULL: the member is left out */
    const char *parent;
    /* JSON array of the targets of a job that has several, as the record has them; NULL: the member
       is left out. Each has target, job (its id), state, model, size, files, summary (as
       api_summary_encode() writes it) and the parts of an error: error_code (a slug), error_kind,
       error_where, error_detail. */
    const char *targets;
    /* whether the member `omitted` is there, and what it names */
    bool omits, omits_spec, omits_labels;
};

char *api_job_encode(const struct api_job *job);
/* Encodes the job's member `progress` alone. */
char *api_progress_encode(const struct api_job *job);

/* The data of a tenant for an administrator. A limit of 0 is none. */
struct api_tenant {
    const char *name; /* "": the tenant without a name */
    int64_t jobs[API_N_JOB_STATES];
    int64_t bytes;
    int64_t queue, max_bytes, job_timeout; /* limits */
};

/* Encodes {"tenants":[…]}. */
char *api_tenants_encode(const struct api_tenant *tenants, size_t n);

#define API_NODE_ID 64

/* A daemon of those that share a record. Times are in ms since 1970. */
struct api_node {
    char id[API_NODE_ID], version[32];
    int64_t started_at, seen_at;
    int64_t running; /* jobs that it runs, or whose inputs it fetches */
    int64_t lanes;   /* jobs that it can run at the same time */
};

/* Encodes {"nodes":[…]}. */
char *api_nodes_encode(const struct api_node *nodes, size_t n);

/* A remote that jobs may name. */
struct api_remote {
    const char *name, *kind;
};

/* Encodes {"remotes":[…]}. */
char *api_remotes_encode(const struct api_remote *remotes, size_t n);

/* The JSON body of a request for a job. Strings are NULL where the member is absent. */
struct api_job_request {
    char *model;       /* id of a stored model */
    char *calibration; /* id of a stored dataset */
    char *evaluation;  /* likewise, to judge the result by */
    /* Where the model and the dataset are fetched from, instead of an id. */
    struct api_place model_place, calibration_place;
    char *publish; /* JSON text of the member `publish`, checked */
    char *spec;    /* JSON text of the member `spec` */
    char *labels;  /* JSON text of the member `labels` */
    int64_t priority;
    bool fresh; /* results and observations of earlier jobs are not used */
};

/*
 * Returns as text all that a job's result depends on: the ids, the effective spec
 * (api_spec_encode()) and the engine. `scripts` stands for the operator's cases and
 * layer support, `runtime` for the ONNX Runtime that is loaded, because another one
 * rounds differently. Requests that differ only in the order of members, in their form
 * or in defaults that are written out have the same identity.
 */
char *api_job_identity(const struct api_job_request *request,
                       const char *effective_spec, const char *scripts,
                       const char *runtime);
/* Returns as text all that the client asked for: the members of the identity without
   those of the engine, and labels, priority and fresh. */
char *api_job_asked(const struct api_job_request *request, const char *effective_spec);

/* Decodes the body of a request. BAD_REQUEST and INVALID_JSON name the member by a
   JSON pointer. */
bool api_job_request_decode(const char *text, size_t len, struct api_job_request *ret,
                            struct api_problem *problem);
void api_job_request_fini(struct api_job_request *request);
/* Reads the text of the form part `publish` into the request. */
bool api_job_request_publish(struct api_job_request *request, const char *text,
                             struct api_problem *problem);
/* Checks that the form part `labels` is the text of an object of strings. */
bool api_labels_check(const char *text, struct api_problem *problem);

/*
 * Encode {"id","size","created_at","expires_at","files"}. `files` is their JSON where
 * there are several, else NULL. For a dataset the members of `info`, the JSON text of
 * api_dataset_info_encode(), are added.
 */
char *api_model_encode(const char *id, uint64_t size, int64_t created_at,
                       int64_t expires_at, const char *files);
/* Encodes the same members without "files". */
char *api_blob_encode(const char *id, uint64_t size, int64_t created_at,
                      int64_t expires_at);
char *api_dataset_encode(const char *id, uint64_t size, int64_t created_at,
                         int64_t expires_at, const char *info);

/* Encodes {"status":…}, the body of /healthz and /readyz. */
char *api_status_encode(const char *status);

#endif
