/* SPDX-License-Identifier: Apache-2.0 */
/* Facts that follow from a job's spec. They are derived at submit, and by the
   migration for jobs of older schemas. */
#include "config.h"
#include "store/derive.h"
#include "api/spec.h"
#include "daemon.h"

#include <sqlite3.h>

/* The last schema without these facts. */
enum { SCHEMA_BEFORE = 6 };

static const char *const steps[] = {
#define STEP(sql) sql,
#include "store/steps.h"
#undef STEP
};

static struct api_problem problem;
static char model[] = "sha256:m", data[] = "sha256:d";

static void
set_up(void)
{
    scratch_make();
    problem = (struct api_problem){0};
}

static const struct {
    const char *spec;
    bool has_data, wants_gpu, observes;
    /* a part of the effective spec; NULL: the spec cannot be decoded */
    const char *effective;
} rows[] = {
    {NULL, true, true, true, "\"device\":\"auto\""},
    {NULL, false, false, false, "\"device\":\"auto\""},
    {"", true, true, true, "\"device\":\"auto\""},
    {" \n", true, true, true, "\"device\":\"auto\""},
    {"  ", false, false, false, "\"device\":\"auto\""},
    {"{}", true, true, true, "\"mode\":\"full\""},
    {"{\"device\":\"cpu\"}", true, false, true, "\"device\":\"cpu\""},
    {"{\"device\":\"cuda\"}", true, true, true, "\"device\":\"cuda\""},
    {"{\"device\":\"cuda\"}", false, true, false, "\"device\":\"cuda\""},
    {"{\"calibration\":{\"random_samples\":3}}", false, true, true,
     "\"random_samples\":3"},
    {"{\"device\":\"cpu\",\"calibration\":{\"random_samples\":3}}", false, false, true,
     "\"random_samples\":3"},
    /* The specs from here on cannot be decoded. */
    {"{", true, false, false, NULL},
    {"no json", true, false, false, NULL},
    {"[\"cuda\"]", true, false, false, NULL},
    {"{\"device\":7}", true, false, false, NULL},
    {"{\"device\":\"cuda\",\"of_a_later_version\":1}", true, false, false, NULL},
};

enum { N_DECODED = 11 };

static void
check_job(const struct store_job *job, int i)
{
    ck_assert_int_eq(job->wants_gpu, rows[i].wants_gpu);
    ck_assert_int_eq(*job->observations != '\0', rows[i].observes);
    ck_assert_ptr_nonnull(job->effective_spec);
    if (rows[i].effective)
        ck_assert_msg(strstr(job->effective_spec, rows[i].effective) != NULL, "%s",
                      job->effective_spec);
    else
        ck_assert_str_eq(job->effective_spec, rows[i].spec);
}

static void
execute(sqlite3 *db, const char *sql)
{
    char *error = NULL;
    ck_assert_msg(!sqlite3_exec(db, sql, NULL, NULL, &error), "%s: %s", sql, error);
}

/* Inserts a job with a row's spec, as a daemon of the older schema left it. */
static void
insert(sqlite3 *db, const char *id, const char *state, int i)
{
    sqlite3_stmt *stmt;
    ck_assert(!sqlite3_prepare_v2(
        db,
        "INSERT INTO jobs(id, state, priority, attempts, created_at, model,"
        " calibration, spec) VALUES(?, ?, 0, 0, 1000, ?, ?, ?)",
        -1, &stmt, NULL));
    const char *const values[] = {id, state, model, rows[i].has_data ? data : NULL,
                                  rows[i].spec};
    for (int column = 0; column < 5; column++)
        sqlite3_bind_text(stmt, column + 1, values[column], -1, SQLITE_STATIC);
    ck_assert_int_eq(sqlite3_step(stmt), SQLITE_DONE);
    sqlite3_finalize(stmt);
}

static struct store *
open_store(void)
{
    struct store *store = NULL;
    ck_assert_msg(store_open(scratch_path("db"), &store, &problem), "%s",
                  problem.detail);
    return store;
}

/* Opens a store whose database had the older schema, with a row's job in three
   states. */
static struct store *
open_migrated(int i)
{
    sqlite3 *db;
    ck_assert(!sqlite3_open(scratch_path("db"), &db));
    for (int step = 0; step < SCHEMA_BEFORE; step++)
        execute(db, steps[step]);
    execute(db, "PRAGMA user_version = 6");
    insert(db, "queued", "queued", i);
    insert(db, "running", "running", i);
    insert(db, "ended", "failed", i);
    sqlite3_close(db);
    return open_store();
}

UNIT_ROWS(migrated, rows)
{
    struct store_job job;
    struct store *store = open_migrated(_i);
    static const char *const live[] = {"queued", "running"};
    for (int i = 0; i < 2; i++) {
        ck_assert(store_job_get(store, live[i], &job, &problem));
        check_job(&job, _i);
        store_job_fini(&job);
    }
    ck_assert(store_job_get(store, "ended", &job, &problem));
    ck_assert_ptr_null(job.effective_spec);
    store_job_fini(&job);
    store_close(&store);
}

/* Without a GPU every job that wants none is claimed, whatever other specs contain. */
UNIT_ROWS(claimed_without_a_gpu, rows)
{
    struct store_job job;
    bool any;
    struct store *store = open_migrated(_i);
    ck_assert_msg(store_job_claim(store, 2000, false, &job, &any, &problem), "%s",
                  problem.detail);
    ck_assert_int_eq(any, !rows[_i].wants_gpu);
    if (any) {
        check_job(&job, _i);
        store_job_fini(&job);
    }
    store_close(&store);
}

/* A submitted job has the same facts. Its effective spec is kept until the job ends. */
UNIT_LOOP(submitted, N_DECODED)
{
    struct store *store = open_store();
    struct store_file file = {.id = "sha256:m"}, other = {.id = "sha256:d"};
    struct store_job got, job = {.id = "j", .created_at = 1000, .model = model};
    struct store_ended ended;
    const struct store_end end = {.state = API_JOB_CANCELLED};
    struct api_spec *spec;
    enum store_added added;
    bool is_new;
    /* An empty spec is in rows of earlier versions alone. */
    const char *text = rows[_i].spec;
    job.spec = text && text[strspn(text, " \n")] ? strdup(text) : NULL;
    job.calibration = rows[_i].has_data ? data : NULL;
    ck_assert(
        api_spec_decode(job.spec, job.spec ? strlen(job.spec) : 0, &spec, &problem));
    job.effective_spec = api_spec_encode(api_spec_get(spec));
    ck_assert(store_derive(api_spec_get(spec), &job, &problem));
    check_job(&job, _i);
    ck_assert(store_file_add(store, STORE_MODEL, &file, &is_new, &problem));
    ck_assert(store_file_add(store, STORE_DATASET, &other, &is_new, &problem));
    ck_assert(store_job_add(store, &job, &(struct store_asking){0}, &added, &problem));
    ck_assert(store_job_get(store, "j", &got, &problem));
    check_job(&got, _i);
    ck_assert_str_eq(got.observations, job.observations);
    ck_assert_str_eq(got.effective_spec, job.effective_spec);
    store_job_fini(&got);
    ck_assert(store_job_end(store, "j", API_JOB_QUEUED, &end, 3000, &ended, &problem));
    ck_assert(store_job_get(store, "j", &got, &problem));
    ck_assert_ptr_null(got.effective_spec);
    store_job_fini(&got);
    free(job.spec);
    free(job.effective_spec);
    api_spec_free(&spec);
    store_close(&store);
}

UNIT_SUITE("daemon/derive", .setup = set_up, .teardown = scratch_remove)
