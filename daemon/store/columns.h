/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The columns of a job: how each is read (column_job() in store.c), the member of struct store_job,
 * and its SQL. Statements and reader are made of this table. Those who use the SQL include it
 * after a dialect.
 */

/* A text that is not long, else NULL; and whether it is long. API_MAX_LISTED is the limit. */
#define BOUNDED(text) "CASE WHEN " BYTES_OF(text) " <= 4096 THEN " text " END"
#define IS_LONG(text) "CASE WHEN " BYTES_OF(text) " > 4096 THEN 1 ELSE 0 END"

/* clang-format off */
/* The inputs of a job wait to be fetched. SQLite uses the index of jobs that fetch only where its
   own condition stands in the statement; without it, each look reads all jobs. */
#define FETCH_WAITS "fetching > 0 AND fetching = 1"

#define JOB_COLUMN_TABLE(FIRST, COLUMN, effective, files, targets_of, told)      \
    FIRST(KEPT, expires_at, "kept_from")                                        \
    COLUMN(CHARS, id, "id")                                                     \
    COLUMN(INT, seq, "seq")                                                     \
    COLUMN(STATE, state, "state")                                               \
    COLUMN(INT, priority, "priority")                                           \
    COLUMN(INT, attempts, "attempts")                                           \
    COLUMN(INT, created_at, "created_at")                                       \
    COLUMN(INT, started_at, "started_at")                                       \
    COLUMN(INT, ended_at, "ended_at")                                           \
    COLUMN(TEXT, model, "model")                                                \
    COLUMN(TEXT, calibration, "calibration")                                    \
    COLUMN(TEXT, spec, BOUNDED("spec"))                                         \
    COLUMN(TEXT, labels, BOUNDED("labels"))                                     \
    COLUMN(TEXT, result_model, "result_model")                                  \
    COLUMN(SIZE, result_size, "result_size")                                    \
    COLUMN(TEXT, report, "report")                                              \
    COLUMN(TEXT, frozen, "frozen")                                              \
    COLUMN(TEXT, summary, "summary")                                            \
    COLUMN(PROBLEM, error, "error_code, error_kind, error_where, error_detail") \
    COLUMN(FLAG, fresh, "fresh")                                                \
    COLUMN(INT, changes, "changes")                                             \
    COLUMN(TEXT, waits_for, "waits_for")                                        \
    COLUMN(TEXT, cached_from, "cached_from")                                    \
    COLUMN(TEXT, effective_spec, effective)                                     \
    COLUMN(CHARS, observations, "observations")                                 \
    COLUMN(FLAG, wants_gpu, "wants_gpu")                                        \
    COLUMN(TEXT, result_files, files)                                           \
    COLUMN(FLAG, omits_spec, IS_LONG("spec"))                                   \
    COLUMN(FLAG, omits_labels, IS_LONG("labels"))                               \
    COLUMN(TEXT, source, "source")                                              \
    COLUMN(FLAG, fetching, "fetching")                                          \
    COLUMN(INT, fetch_attempts, "fetch_attempts")                               \
    COLUMN(INT, fence, FENCE)                                                   \
    COLUMN(TEXT, evaluation, "evaluation")                                      \
    COLUMN(TEXT, metric, "metric")                                              \
    COLUMN(PROGRESS, progress, PROGRESS)                                        \
    COLUMN(CHARS, parent, "parent")                                             \
    COLUMN(TEXT, target, "target")                                              \
    COLUMN(TEXT, targets, targets_of)                                           \
    COLUMN(TEXT, deliveries, told)
/* clang-format on */
#define FIRST_SQL(kind, member, sql) sql
#define COLUMN_SQL(kind, member, sql) ", " sql
#define JOB_COLUMNS                                                    \
    JOB_COLUMN_TABLE(FIRST_SQL, COLUMN_SQL, BOUNDED("effective_spec"), \
                     MODEL_FILES_OF("jobs.result_model"), TARGETS, DELIVERIES)
/* The effective spec is needed where a job is claimed, and nowhere else. The columns
   of other tables are left out there: a job that is to run has no result, no targets and nothing
   delivered, and SQLite uses no index below RETURNING, so that each claim would read these
   tables whole. */
#define CLAIMED_COLUMNS \
    JOB_COLUMN_TABLE(FIRST_SQL, COLUMN_SQL, "effective_spec", "NULL", "NULL", "NULL")
