/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record: models, datasets and jobs, in a file of SQLite (WAL) or in a schema of
 * PostgreSQL, which several daemons share. Only files of this folder include sqlite3.h
 * and libpq-fe.h.
 *
 * When a call returns, its changes survive a power loss. The exceptions are
 * store_file_add(), store_job_add() and store_job_end(): their changes do so when
 * store_sync() has returned. Call that without a lock, so that threads share their
 * syncs. Changes that no client was told of need not survive: those of
 * store_job_claim(), store_observations_use() and store_recover(). The log keeps the
 * order, so no change survives without those before it.
 *
 * Any thread may call; a lock inside makes each call one step. A row that a call
 * returns owns its strings. Times are milliseconds since 1970 UTC.
 *
 * jobs/job.h says which function changes a job's state, and when. The calls here carry
 * the state that they expect and report whether the job had it. Before a row changes
 * they check that the change is allowed (store_job_may_change()).
 *
 * Texts may hold any bytes: U+FFFD is kept in the place of those that are not UTF-8. INTERNAL is the
 * code of a statement that the database refuses for its values, and would refuse again; UNAVAILABLE
 * that of one that may be run later.
 */
#ifndef QDQD_STORE_STORE_H
#define QDQD_STORE_STORE_H

#include "api/digest.h"
#include "api/job.h"

#define JOB_ID_SIZE 40

enum store_kind { STORE_MODEL, STORE_DATASET, STORE_BLOB };

struct store;

/* A stored model, dataset or blob, identified by the digest of its bytes. */
struct store_file {
    char id[DIGEST_SIZE];
    uint64_t size;
    int64_t created_at;
    int64_t expires_at; /* earliest time at which it is deleted; 0: never */
    char *info;         /* JSON; for a model of several files: those files */
};

/* One file of a model of several files; the model itself is first. */
struct store_model_file {
    char *path;
    char digest[DIGEST_SIZE];
    uint64_t size;
};

struct store_model_files {
    size_t n; /* 0: the model is one file, whose digest is its id */
    struct store_model_file *items;
};

/* The progress of a job, which the daemon that runs it tells the others. */
struct store_progress {
    char stage[24]; /* "": none was told */
    int64_t done, total;
    int64_t eta_s; /* -1: not known */
};

struct store_job {
    char id[JOB_ID_SIZE];
    int64_t seq; /* in order of arrival, unique */
    enum api_job_state state;
    /* attempts: number of workers that died while they ran it */
    int64_t priority, attempts;
    bool fresh; /* results and observations of earlier jobs are not used */
    int64_t created_at, started_at, ended_at;
    /* earliest time at which it is deleted; 0: never, or not known yet */
    int64_t expires_at;
    /* Ids; calibration may be NULL. A model that is still to be fetched is "". */
    char *model, *calibration;
    /* Ids or NULL: a dataset that the result is judged by, and the model that is the metric of
       its task. */
    char *evaluation, *metric;
    /* JSON as it was sent, or NULL. Where a text is longer than API_MAX_LISTED it is
       NULL, too, and store_job_texts() reads it. */
    char *spec, *labels;
    bool omits_spec, omits_labels;
    /* These follow from the members above and were decided at submit; see
       store/derive.h. */
    char *effective_spec; /* JSON; NULL once the job has ended */
    /* key of the observations that it makes; "": it makes none */
    char observations[DIGEST_SIZE];
    bool wants_gpu;
    /* Ids and JSON. NULL until the job has succeeded, or failed because its model
       missed the spec's accept (ACCURACY). Jobs of schema 1 have no frozen spec. */
    char *result_model, *report, *frozen, *summary;
    uint64_t result_size;
    struct api_problem error; /* set when the job has failed */
    int64_t changes;    /* number of states that it has had; 1: it was never claimed */
    char *result_files; /* JSON where the result is several files, else NULL */
    /* Ids of jobs or NULL: the job that this one joined and ends with, and the job
       whose result or error it has. */
    char *waits_for, *cached_from;
    /* JSON: where its inputs came from, or NULL; what it publishes, or NULL (read by
       store_job_add() only); its deliveries, an array. */
    char *source, *publish, *deliveries;
    bool fetching; /* its inputs are not all fetched yet; no lane claims it */
    /* the class of processors on which it has to run, because its figures depend on that;
       NULL: any. Static; not read from the record. */
    const char *processor;
    int64_t fence; /* number of the claim, where the record is shared; else 0 */
    int64_t fetch_attempts; /* attempts to fetch them that failed */
    int64_t n_waiting;      /* deliveries that were dropped; see store_job_remove() */
    /* what its daemon said last, where the record is shared */
    struct store_progress progress;
    char parent
        [JOB_ID_SIZE]; /* the job of which it is one target (store/several/targets.h); "": none */
    char *target; /* the name of that; NULL: none */
    char *
        targets; /* JSON of the targets of a job that has several, for api_job; else NULL */
};

/* Waits until all changes that were made before this call are on the disk. */
bool store_sync(struct store *store, struct api_problem *p);

/* The digests by which an earlier job with the same request is found. NULL members
   are not compared. Borrowed. */
struct store_asking {
    const char *key;      /* the Idempotency-Key as it was sent */
    const char *asked;    /* digest of the request that was sent with the key */
    const char *identity; /* digest of everything that determines the result */
};

enum store_added {
    STORE_QUEUED,   /* it waits in the queue */
    STORE_ANSWERED, /* it has succeeded with the result of another job */
    STORE_JOINED    /* it waits for the end of a job that will have the same result */
};

/* The outcome of store_job_end(). */
struct store_ended {
    bool was; /* the job had the expected state; else nothing was changed */
    /* number of jobs that had joined it: they ended with it, or are queued now */
    int64_t joined;
    bool tells; /* there may be deliveries of its end */
};

/* The end of a job. Strings are borrowed; those that do not apply are NULL. */
struct store_end {
    enum api_job_state state;
    const char *result_model, *report, *frozen, *summary;
    uint64_t result_size;
    const struct store_model_files *result_files; /* NULL: the result is one file */
    /* files that may not be on the disk yet (store/unsynced.h); NULL: there are none */
    const struct store_text *unsynced;
    size_t n_unsynced;
    const struct api_problem *error;
    int64_t fence; /* the claim that ends the job; 0: not a claim's */
};

/* Where a record is. Texts are borrowed while it is opened. */
struct store_place {
    const char *path; /* the file of SQLite */
    /* "postgresql://…": the record is in PostgreSQL; NULL: in SQLite */
    const char *url;
    /* the same database without a pooler; NULL: `url`, and no hints (store/hints.h) */
    const char *direct_url;
    const char *tenant; /* the tenant's name; NULL or "": the one without a name */
    int64_t lease_ms;   /* how long a claim of a job lasts without a heartbeat */
    bool
        brief; /* a request waits: not for long for a daemon that migrates, or for an answer */
};
/* Opens a record and makes it when it is absent. */
bool store_open_at(const struct store_place *place, struct store **ret,
                   struct api_problem *p);
/* Bounds for how long each statement of this thread waits for a record that is shared. Such a thread
   leaves it to others to connect again, which may take some seconds. */
void store_wait_at_most(int64_t ms);
/* Returns whether other daemons may use the record at the same time. */
bool store_is_shared(const struct store *store);
/* Logs a problem of the record that stops travelling here. One that passes is logged once as long as
   the database is away. */
void store_log_failure(const struct api_problem *problem);
/* Opens the database file at `path` and creates it when it is absent. */
bool store_open(const char *path, struct store **ret, struct api_problem *p);
void store_close(struct store **store);

/* Retention: milliseconds for which ended jobs and unused files are kept; 0: for
   ever. */
struct store_retention {
    _Atomic int64_t jobs, files;
};
void store_set_retention(struct store *store, const struct store_retention *retention);

/* Adds a file. *ret_new is false when it was stored already; then it counts as used
   now. created_at is the current time; expires_at is not read. */
bool store_file_add(struct store *store, enum store_kind kind,
                    const struct store_file *file, bool *ret_new,
                    struct api_problem *p);
/* NOT_FOUND. A model that a job made is found too. */
bool store_file_get(struct store *store, enum store_kind kind, const char *id,
                    struct store_file *ret, struct api_problem *p);
/* The cause of a removal: a request or the need of room, or the sweep by age, for which the
   daemon must lead (store/leader.h). */
enum store_remover { STORE_REQUEST, STORE_SWEEP };
/* NOT_FOUND; IN_USE when an unfinished job needs the file; CANCELLED. */
bool store_file_remove(struct store *store, enum store_kind kind, const char *id,
                       enum store_remover who, struct api_problem *p);
void store_file_fini(struct store_file *file);

/* Adds a model of several files like store_file_add(). Its blobs count as used now. */
bool store_model_add(struct store *store, const struct store_file *file,
                     const struct store_model_files *files, bool *ret_new,
                     struct api_problem *p);
/* Lists the files of a model that was stored or made by a job. The list is empty
   when the model is one file or unknown. */
bool store_model_files(struct store *store, const char *id,
                       struct store_model_files *ret, struct api_problem *p);
void store_model_files_fini(struct store_model_files *files);

/* The observations that calibrations of a model with its data have made. */
struct store_observations {
    char key[DIGEST_SIZE]; /* digest of their identity */
    const char *model;
    const char *calibration; /* NULL: the samples were random */
    char blob[DIGEST_SIZE];
    uint64_t size;
};

/* Finds the blob of a key, which then counts as used now. *ret_any is whether there
   is one. */
bool store_observations_use(struct store *store, const char *key, int64_t now,
                            char ret[DIGEST_SIZE], bool *ret_any,
                            struct api_problem *p);
/* Adds or replaces a row. *ret_stored is false when model or data are not stored any
   more. */
bool store_observations_put(struct store *store, const struct store_observations *row,
                            int64_t now, bool *ret_stored, struct api_problem *p);
/* Removes one row of a model or dataset and returns its blob. *ret_any is whether
   there was one. */
bool store_observations_forget(struct store *store, enum store_kind kind,
                               const char *id, char ret[DIGEST_SIZE], bool *ret_any,
                               struct api_problem *p);
/* Removes the least recently used row when there are more bytes or rows than these,
   and returns its blob. */
bool store_observations_evict(struct store *store, int64_t bytes, int64_t rows,
                              char ret[DIGEST_SIZE], bool *ret_any,
                              struct api_problem *p);

/* --- retention ----------------------------------------------------------- */

/*
 * Finds the job that ended first, or the file that was unused for longest, if that was
 * at least `age` milliseconds ago. Skips files that unfinished jobs need. A file counts
 * as used when it is stored again, and when a job that uses it is added or ends.
 * *ret_any is whether one was found.
 */
bool store_oldest_job(struct store *store, int64_t now, int64_t age,
                      char ret[JOB_ID_SIZE], bool *ret_any, struct api_problem *p);
bool store_oldest_file(struct store *store, int64_t now, int64_t age,
                       enum store_kind *ret_kind, char ret[DIGEST_SIZE], bool *ret_any,
                       struct api_problem *p);

/* The number that names a database, and whether it has rows. A database that an older
   version made has no number until it is asked for here. */
struct store_identity {
    uint32_t number;
    bool is_new; /* the number was just chosen */
    bool has_rows;
};
bool store_identify(struct store *store, struct store_identity *ret,
                    struct api_problem *p);
/* Moves the contents of the log into the database as far as possible, so that the
   log's space is used again. */
bool store_checkpoint(struct store *store, struct api_problem *p);
/* Makes sure that no later job is answered with a result that has this blob. */
bool store_job_forget(struct store *store, const char *blob, struct api_problem *p);

/* Finds out whether a row says that this blob is stored. */
bool store_has_blob(struct store *store, const char *id, bool *ret,
                    struct api_problem *p);
/* Returns whether any row needs this blob. Also true when that cannot be found out. */
bool store_needs_blob(struct store *store, const char *id);

/*
 * Returns whether a job's state may change so. Allowed are the changes of jobs/job.h,
 * and the change of a queued job to the end of the job that it joined or is answered
 * with.
 */
bool store_job_may_change(enum api_job_state from, enum api_job_state to);

/*
 * Adds a queued job; seq, state, changes and the members of its end are not read. If it
 * is not fresh and another job has the same identity, it is answered with that job's
 * result or joins that job; see *ret. NOT_FOUND when its model or calibration data is
 * not stored.
 */
bool store_job_add(struct store *store, const struct store_job *job,
                   const struct store_asking *asking, enum store_added *ret,
                   struct api_problem *p);
/* Finds the job of an Idempotency-Key and the digest of its request. *ret_any is
   whether there is one. */
bool store_job_of_key(struct store *store, const char *key, char ret_id[JOB_ID_SIZE],
                      char ret_asked[DIGEST_SIZE], bool *ret_any,
                      struct api_problem *p);
bool store_job_get(struct store *store, const char *id, struct store_job *ret,
                   struct api_problem *p);
/* Reads the state of a job, at less cost than the job. NOT_FOUND. */
bool store_job_state(struct store *store, const char *id, enum api_job_state *ret,
                     struct api_problem *p);
/* Reads the long texts of a job that were omitted. */
bool store_job_texts(struct store *store, struct store_job *job, struct api_problem *p);
/* Returns the bytes of a job's spec and labels. */
bool store_job_texts_size(struct store *store, const char *id, int64_t *ret,
                          struct api_problem *p);
/* Claims the next queued job (highest priority, then oldest), which becomes running.
   Without `gpu` it skips jobs that want one. *ret_any is false when there is none. */
bool store_job_claim(struct store *store, int64_t now, bool gpu, struct store_job *ret,
                     bool *ret_any, struct api_problem *p);
/* Puts a running job back into the queue and adds `charge` to its attempts. *ret_was
   is whether it was running, by the claim `fence`; 0: by any. */
bool store_job_requeue(struct store *store, const char *id, int64_t fence, int charge,
                       bool *ret_was, struct api_problem *p);
/* Lets the lease of a claim begin anew, and tells the job's progress. *ret_held is false when
   the job was cancelled, or its lease has ended and another daemon may have it. */
bool store_job_renew(struct store *store, const char *id, int64_t fence,
                     const struct store_progress *progress, bool *ret_held,
                     struct api_problem *p);
/*
 * Changes a job from `from` to end->state. Jobs that joined it end the same way. But
 * when it was cancelled, or failed for a reason that another try may not meet, the
 * first of them is queued to run and the others join that one. Deliveries of the jobs
 * that end are written with them (store/outbox.h). A job with several targets that is
 * cancelled has those that have not ended cancelled, too.
 */
bool store_job_end(struct store *store, const char *id, enum api_job_state from,
                   const struct store_end *end, int64_t now, struct store_ended *ret,
                   struct api_problem *p);
/* Removes a job that has ended, with its targets and its deliveries, and returns its row in *ret,
   whose n_waiting says how many deliveries were not made yet. NOT_FOUND, IN_USE (also when an
   unfinished job needs its model, or the job is one target of another), CANCELLED. */
bool store_job_remove(struct store *store, const char *id, enum store_remover who,
                      struct store_job *ret, struct api_problem *p);
/* Puts all running jobs back into the queue, when a daemon starts after a crash. Fetches
   and deliveries that were under way wait again. Where the record is shared, only those
   whose lease has ended. */
bool store_recover(struct store *store, int64_t *ret_n, struct api_problem *p);
/* Counts all queued jobs, also those that joined another. */
bool store_count_queued(struct store *store, int64_t *ret, struct api_problem *p);
/* Counts the queued jobs that wait for a lane. */
bool store_queue_length(struct store *store, int64_t *ret, struct api_problem *p);
#define STORE_ROWS_BYTES 5 /* the place of the rows' bytes in store_counts.bytes */
/* The figures of a store that are monitored. */
struct store_counts {
    int64_t jobs[API_N_JOB_STATES];
    int64_t waiting; /* length of the queue, like store_queue_length() */
    /* creation time of the oldest job in the queue, by this machine's clock; 0: the queue
       is empty */
    int64_t oldest;
    /* Bytes of models, datasets, blobs, results, observations and the jobs' rows. */
    int64_t bytes[STORE_ROWS_BYTES + 1];
};
bool store_count(struct store *store, struct store_counts *ret, struct api_problem *p);
/* Returns the bytes of the jobs' rows, or 0 when they cannot be read. */
uint64_t store_record_bytes(struct store *store);
/* Returns the place of a queued job in the queue, from 1; 0 when it is not queued. */
bool store_job_position(struct store *store, const char *id, int64_t *ret,
                        struct api_problem *p);

struct store_filter {
    enum api_job_state state; /* API_N_JOB_STATES: any */
    /* The key of a label, a colon, and its value, either of which may have colons; NULL: any */
    const char *label;
    int64_t before; /* lists only jobs with a lower seq; INT64_MAX: from the newest */
    int limit;
    /* orders by creation time, which is comparable between stores, and lists only */
    bool by_time;
    /* jobs that were created before this time, or at this time and with a lower seq */
    int64_t time;
};
/* Lists jobs, newest first. The caller ends each job with store_job_fini() and frees
   the array. */
bool store_job_list(struct store *store, const struct store_filter *filter,
                    struct store_job **ret, size_t *ret_n, struct api_problem *p);

void store_job_fini(struct store_job *job);

#endif
