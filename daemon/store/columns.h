/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of a job, in the order in which store.c reads them. Included after a
   dialect. */

/* A text that is not long, else NULL; and whether it is long. API_MAX_LISTED is the limit. */
#define BOUNDED(text) "CASE WHEN " BYTES_OF(text) " <= 4096 THEN " text " END"
#define IS_LONG(text) "CASE WHEN " BYTES_OF(text) " > 4096 THEN 1 ELSE 0 END"

/* clang-format off */
/* The inputs of a job wait to be fetched. SQLite uses the index of jobs that fetch only where its
   own condition stands in the statement; without it, each look reads all jobs. */
#define FETCH_WAITS "fetching > 0 AND fetching = 1"

#define JOB_COLUMNS_OF(effective)                                                     \
    "kept_from, id, seq, state, priority, attempts, created_at, started_at, "         \
    "ended_at, model, calibration, " BOUNDED("spec") ", " BOUNDED("labels") ", "      \
    "result_model, result_size, report, frozen, summary, error_code, error_kind, "    \
    "error_where, error_detail, fresh, changes, waits_for, cached_from, " effective   \
    ", observations, wants_gpu, " MODEL_FILES_OF("jobs.result_model") ", "            \
    IS_LONG("spec") ", " IS_LONG("labels") ", source, fetching, fetch_attempts, " FENCE ", "     \
    PROGRESS ", "                                                                     \
    DELIVERIES
/* clang-format on */
/* The effective spec is needed where a job is claimed, and nowhere else. */
#define JOB_COLUMNS JOB_COLUMNS_OF(BOUNDED("effective_spec"))
#define CLAIMED_COLUMNS JOB_COLUMNS_OF("effective_spec")
