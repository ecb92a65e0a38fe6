/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record: models, datasets and jobs in SQLite (WAL). The only door to sqlite3.h.
 *
 * What a call has written survives a power loss when it returns; but after
 * store_file_add(), store_job_add() and store_job_end() that is so when store_sync() has
 * returned, which is best called without a lock, so that threads share their syncs. What
 * nobody was told need not survive: store_job_claim(), store_observations_use() and
 * store_recover(). The log keeps the order, so nothing survives without what was written
 * before it.
 *
 * Any thread may call; one lock inside makes each call one step. Every string of a row
 * that a call returns is owned by the row. Times are milliseconds since 1970 UTC.
 *
 * jobs/job.h says who changes a job's state, and when: the calls here carry the state that
 * they expect and say whether it was so. Before a row changes they check that the change
 * is one of those that may be (store_job_may_change()).
 */
#ifndef QDQD_STORE_STORE_H
#define QDQD_STORE_STORE_H

#include "base/digest.h"
#include "api/job.h"

#define JOB_ID_SIZE 40

enum store_kind { STORE_MODEL, STORE_DATASET, STORE_BLOB };

struct store;

/* A stored model, dataset or blob: bytes that somebody stored by their digest. */
struct store_file {
    char id[DIGEST_SIZE];
    uint64_t size;
    int64_t created_at;
    int64_t expires_at; /* not before; 0: never */
    char *info;         /* JSON; of a model: its files, where there are several */
};

/* A file of a model of several; the model is the first. */
struct store_model_file {
    char *path;
    char digest[DIGEST_SIZE];
    uint64_t size;
};

struct store_model_files {
    size_t n; /* 0: the model is one file, its id the digest of that */
    struct store_model_file *items;
};

struct store_job {
    char id[JOB_ID_SIZE];
    int64_t seq; /* in order of arrival, unique */
    enum api_job_state state;
    int64_t priority, attempts; /* attempts: workers that it brought down */
    bool fresh;                 /* nothing that earlier jobs found is to be used */
    int64_t created_at, started_at, ended_at;
    int64_t expires_at;        /* not before; 0: never, or not known yet */
    char *model, *calibration; /* ids; calibration may be NULL */
    char *spec, *labels;       /* JSON as it was sent, or NULL */
    /* What follows from these and was decided at submit; see store/derive.h. */
    char *effective_spec;           /* JSON; NULL once the job has ended */
    char observations[DIGEST_SIZE]; /* key of what it observes; "": nothing */
    bool wants_gpu;
    /* ids and JSON; NULL until succeeded, or failed for what was made (ACCURACY). Jobs of
       schema 1 have no frozen spec. */
    char *result_model, *report, *frozen, *summary;
    uint64_t result_size;
    struct api_problem error; /* set when failed */
    int64_t changes;          /* of its state; 1: the first place in the queue */
    char *result_files;       /* JSON, where the result is several files; else NULL */
    /* Ids of jobs, or NULL: the one whose end is its end, too, and the one whose result
       it has, or whose error. */
    char *waits_for, *cached_from;
};

/* Waits until all that was written before this call is on the disk. */
bool store_sync(struct store *store, struct api_problem *p);

/* What tells whether a job was asked before: digests, and NULL where it is not to be
   found by this. Borrowed. */
struct store_asking {
    const char *key;      /* Idempotency-Key; as it was sent */
    const char *asked;    /* of all that was asked with the key */
    const char *identity; /* of what determines the result */
};

enum store_added {
    STORE_QUEUED,   /* it is to run */
    STORE_ANSWERED, /* it has succeeded: another had the same result */
    STORE_JOINED    /* it waits for another that is on its way to the same result */
};

/* What became of a job that was to end. */
struct store_ended {
    bool was;       /* it was in the state that was expected; else nothing happened */
    int64_t joined; /* jobs that had joined it: they ended with it, or run now */
};

/* What ends a job. Borrowed strings; those that do not apply are NULL. */
struct store_end {
    enum api_job_state state;
    const char *result_model, *report, *frozen, *summary;
    uint64_t result_size;
    const struct store_model_files *result_files; /* NULL: one file */
    const struct api_problem *error;
};

/* `path` of the database file, made when absent. */
bool store_open(const char *path, struct store **ret, struct api_problem *p);
void store_close(struct store **store);

/* For how long what has ended, or is not used, is kept: milliseconds, 0: for ever. */
struct store_retention {
    _Atomic int64_t jobs, files;
};
void store_set_retention(struct store *store, const struct store_retention *retention);

/* ret_new: false when it was there already; then it counts as used now. created_at is
   the time, expires_at is not read. */
bool store_file_add(struct store *store, enum store_kind kind,
                    const struct store_file *file, bool *ret_new,
                    struct api_problem *p);
/* NOT_FOUND. A model that a job made counts as a model. */
bool store_file_get(struct store *store, enum store_kind kind, const char *id,
                    struct store_file *ret, struct api_problem *p);
/* NOT_FOUND; IN_USE when a job that has not ended needs it. */
bool store_file_remove(struct store *store, enum store_kind kind, const char *id,
                       struct api_problem *p);
void store_file_fini(struct store_file *file);

/* The same as store_file_add() for a model of several files, whose blobs count as used. */
bool store_model_add(struct store *store, const struct store_file *file,
                     const struct store_model_files *files, bool *ret_new,
                     struct api_problem *p);
/* The files of a model, stored or made by a job; none where that is one, or unknown. */
bool store_model_files(struct store *store, const char *id,
                       struct store_model_files *ret, struct api_problem *p);
void store_model_files_fini(struct store_model_files *files);

/* What calibrations of a model and its data have observed. */
struct store_observations {
    char key[DIGEST_SIZE]; /* digest of their identity */
    const char *model;
    const char *calibration; /* NULL: samples were made up */
    char blob[DIGEST_SIZE];
    uint64_t size;
};

/* The blob of a key, which counts as used now. *ret_any: is there one? */
bool store_observations_use(struct store *store, const char *key, int64_t now,
                            char ret[DIGEST_SIZE], bool *ret_any,
                            struct api_problem *p);
/* Adds or replaces. *ret_stored: false when model or data are not stored any more. */
bool store_observations_put(struct store *store, const struct store_observations *row,
                            int64_t now, bool *ret_stored, struct api_problem *p);
/* Removes one row of a model or dataset and tells its blob. *ret_any: was there one? */
bool store_observations_forget(struct store *store, enum store_kind kind,
                               const char *id, char ret[DIGEST_SIZE], bool *ret_any,
                               struct api_problem *p);
/* The same with the row that was used least recently, where there are more bytes or
   rows than these. */
bool store_observations_evict(struct store *store, int64_t bytes, int64_t rows,
                              char ret[DIGEST_SIZE], bool *ret_any,
                              struct api_problem *p);

/* --- what may go ---------------------------------------------------------- */

/*
 * The job that ended first, or the file that was not used for longest, if that is `age`
 * milliseconds ago or more. What a job needs that has not ended is left out. A file is
 * used by being stored again, and by jobs: when they are added and when they end.
 * *ret_any: is there one?
 */
bool store_oldest_job(struct store *store, int64_t now, int64_t age,
                      char ret[JOB_ID_SIZE], bool *ret_any, struct api_problem *p);
bool store_oldest_file(struct store *store, int64_t now, int64_t age,
                       enum store_kind *ret_kind, char ret[DIGEST_SIZE], bool *ret_any,
                       struct api_problem *p);

/* Does any row need this blob? True also when that cannot be found out. */
bool store_needs_blob(struct store *store, const char *id);

/*
 * May a job's state change so? The changes of jobs/job.h, and for a job that was answered
 * or joined another: from queued to the end of that one.
 */
bool store_job_may_change(enum api_job_state from, enum api_job_state to);

/*
 * Adds a queued job; seq, state, changes and the end's members are not read. If it is not
 * fresh and another one was asked the same, it is answered or joins that one; see *ret.
 * NOT_FOUND when its model or calibration data is not stored.
 */
bool store_job_add(struct store *store, const struct store_job *job,
                   const struct store_asking *asking, enum store_added *ret,
                   struct api_problem *p);
/* The job of an Idempotency-Key, and what was asked with it. *ret_any: is there one? */
bool store_job_of_key(struct store *store, const char *key, char ret_id[JOB_ID_SIZE],
                      char ret_asked[DIGEST_SIZE], bool *ret_any,
                      struct api_problem *p);
bool store_job_get(struct store *store, const char *id, struct store_job *ret,
                   struct api_problem *p);
/*
 * The queued job that is next (highest priority, then oldest) becomes running.
 * *ret_any is false when none is queued.
 */
bool store_job_claim(struct store *store, int64_t now, bool gpu, struct store_job *ret,
                     bool *ret_any, struct api_problem *p);
/* running -> queued, attempts + `charge`. *ret_was: was it running? */
bool store_job_requeue(struct store *store, const char *id, int charge, bool *ret_was,
                       struct api_problem *p);
/*
 * from -> end->state. Those who joined it end the same way; but if it was cancelled, or
 * failed for what another try may mend, the first of them is to run, and the others join
 * that one.
 */
bool store_job_end(struct store *store, const char *id, enum api_job_state from,
                   const struct store_end *end, int64_t now, struct store_ended *ret,
                   struct api_problem *p);
/* Removes a job that has ended; fills *ret with what it was. NOT_FOUND, IN_USE (also when
   another that has not ended needs its model). */
bool store_job_remove(struct store *store, const char *id, struct store_job *ret,
                      struct api_problem *p);
/* All running jobs -> queued: for the start after a crash. */
bool store_recover(struct store *store, int64_t *ret_n, struct api_problem *p);
bool store_queue_length(struct store *store, int64_t *ret, struct api_problem *p);
/* What is to be watched of a store. */
struct store_counts {
    int64_t jobs[API_N_JOB_STATES];
    int64_t waiting; /* as store_queue_length() */
    int64_t oldest;  /* of these, when it was made; 0: there is none */
    /* Bytes of models, datasets, blobs, results and observations. */
    int64_t bytes[5];
};
bool store_count(struct store *store, struct store_counts *ret, struct api_problem *p);
/* Place of a queued job in the queue, from 1; 0 when it is not queued. */
bool store_job_position(struct store *store, const char *id, int64_t *ret,
                        struct api_problem *p);

struct store_filter {
    enum api_job_state state;            /* API_N_JOB_STATES: any */
    const char *label_key, *label_value; /* NULL: any */
    int64_t before; /* only jobs with a lower seq; INT64_MAX: from the newest */
    int limit;
    bool by_time; /* by when they were made, which is comparable between stores: only */
    int64_t time; /* jobs made before this, or then and with a lower seq */
};
/* Newest first; the caller ends each job and frees the array. */
bool store_job_list(struct store *store, const struct store_filter *filter,
                    struct store_job **ret, size_t *ret_n, struct api_problem *p);

void store_job_fini(struct store_job *job);

#endif
