/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs, models and datasets on the wire. Every encoder returns text that the caller
 * frees, or NULL when out of memory. Times are milliseconds since 1970 UTC; 0 means
 * "not yet" and becomes null.
 */
#ifndef API_JOB_H
#define API_JOB_H

#include "api/problem.h"
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
/* The state of a name, or API_N_JOB_STATES. */
enum api_job_state api_job_state_parse(const char *name);
bool api_job_state_ended(enum api_job_state state);

/* NULL strings become null. Texts marked JSON are embedded as they are. */
struct api_job {
    const char *id;
    enum api_job_state state;
    const char *stage; /* of the progress, NULL before it starts */
    uint64_t done, total;
    int64_t eta_s;           /* -1: not known */
    int64_t position;        /* in the queue from 1; 0 when it has no place in it */
    const char *waiting_for; /* the job that it joined, NULL: none */
    const char *cached_from; /* the job whose result it has, NULL: its own */
    int64_t attempts;        /* how often a worker has begun it */
    int64_t created_at, started_at, ended_at, expires_at;
    const char *model, *calibration; /* ids */
    const char *spec;                /* JSON, as it was sent */
    const char *labels;              /* JSON object */
    const char *result_model; /* "sha256:…" of the quantized model; of a job that
                                        did not succeed nothing is said of it here */
    const char *result_files; /* JSON, where it is several files */
    uint64_t result_size;
    const char *summary;             /* JSON */
    const struct api_problem *error; /* NULL unless failed or cancelled */
    const char *tenant; /* whose it is, "": nobody's; NULL: that is not said */
};

char *api_job_encode(const struct api_job *job);
/* Its `progress` alone. */
char *api_progress_encode(const struct api_job *job);
/* {"jobs":[…],"next_cursor":…}; `cursor` NULL on the last page. */
char *api_jobs_encode(const struct api_job *jobs, size_t n, const char *cursor);

/* What an administrator sees of a tenant; a limit of 0 is none. */
struct api_tenant {
    const char *name; /* "": without one */
    int64_t jobs[API_N_JOB_STATES];
    int64_t bytes;
    int64_t queue, max_bytes, job_timeout; /* limits */
};

/* {"tenants":[…]} */
char *api_tenants_encode(const struct api_tenant *tenants, size_t n);

/* A job's JSON body. Strings are NULL where the member is absent. */
struct api_job_request {
    char *model;       /* a stored model's id */
    char *calibration; /* a stored dataset's id */
    char *spec;        /* JSON text of the member `spec` */
    char *labels;      /* JSON text of the member `labels` */
    int64_t priority;
    bool fresh; /* nothing that earlier jobs found is to be used */
};

/*
 * What a job's result depends on, as text: ids, the effective spec (api_spec_encode()),
 * the engine. `scripts`
 * stands for what the operator added to it, `runtime` for the ONNX Runtime that it loads:
 * another one rounds in other ways. What is asked with the same text, in another
 * order, form or with defaults written out, has the same identity.
 */
char *api_job_identity(const struct api_job_request *request,
                       const char *effective_spec, const char *scripts,
                       const char *runtime);
/* All that was asked, in the same way: the identity's members without the engine's, and
   labels, priority and fresh. */
char *api_job_asked(const struct api_job_request *request, const char *effective_spec);

/* BAD_REQUEST and INVALID_JSON name the member by JSON pointer. */
bool api_job_request_decode(const char *text, size_t len, struct api_job_request *ret,
                            struct api_problem *problem);
void api_job_request_fini(struct api_job_request *request);
/* Checks the text of the form part `labels`: an object of strings. */
bool api_labels_check(const char *text, struct api_problem *problem);

/* {"id","size","created_at","expires_at","files"}; `files`: their JSON where there are
   several, else NULL. For a dataset `info` is the JSON text of api_dataset_info_encode(),
   whose members are added. */
char *api_model_encode(const char *id, uint64_t size, int64_t created_at,
                       int64_t expires_at, const char *files);
/* Without "files". */
char *api_blob_encode(const char *id, uint64_t size, int64_t created_at,
                      int64_t expires_at);
char *api_dataset_encode(const char *id, uint64_t size, int64_t created_at,
                         int64_t expires_at, const char *info);

/* {"status":…} of /healthz and /readyz. */
char *api_status_encode(const char *status);

#endif
