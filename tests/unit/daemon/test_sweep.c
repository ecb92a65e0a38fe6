/* SPDX-License-Identifier: Apache-2.0 */
/* Files and jobs that expire by age, and those that stay. The test sets the times,
   so nothing waits. */
#include "config.h"
#include "library/library.h"
#include "base/clock.h"
#include "daemon.h"
#include "library/folder/state_folder.h"
#include "settings/settings.h"

#include <sqlite3.h>

#define DAY INT64_C(86400000)

static struct library *library;
static struct store *store;
static struct settings settings;
static struct api_problem problem;
static char model[DIGEST_SIZE], data[DIGEST_SIZE];
static int64_t start; /* the record's clock starts at the wall clock's time */

static void
reopen(void)
{
    library_close(&library);
    ck_assert_msg(library_open(scratch_path("state"), &library, &problem), "%s",
                  problem.detail);
    store = library_store(library);
    sweep_configure(library, &settings);
}

static void
set_up(void)
{
    scratch_make();
    problem = (struct api_problem){0};
    settings =
        (struct settings){.retention_jobs = 7 * 86400, .retention_files = 30 * 86400};
    start = clock_wall_ms() + DAY;
    reopen();
}

static void
tear_down(void)
{
    library_close(&library);
    scratch_remove();
}

/* --- files and jobs with a time ------------------------------------------- */

static struct spool *
spool_of(const char *text)
{
    struct spool *spool;
    ck_assert(spool_open(library_blobs(library), &spool, &problem));
    ck_assert(spool_write(spool, text, strlen(text), &problem));
    ck_assert(spool_finish(spool, &problem));
    return spool;
}

/* Adds a blob and its row; writes the id to `ret`. */
static void
add_file(enum store_kind kind, const char *text, int64_t now, char ret[DIGEST_SIZE])
{
    struct spool *spool = spool_of(text);
    struct store_file file = {.size = strlen(text), .created_at = now};
    bool is_new;
    memcpy(file.id, spool_id(spool), sizeof file.id);
    memcpy(ret, file.id, DIGEST_SIZE);
    ck_assert(spool_commit(&spool, &problem));
    ck_assert(store_file_add(store, kind, &file, &is_new, &problem));
}

static void
add_inputs(int64_t now)
{
    add_file(STORE_MODEL, "a model", now, model);
    add_file(STORE_DATASET, "some data", now, data);
}

static void
add_job(const char *id, char *of, int64_t now)
{
    struct store_job job = {.created_at = now, .model = of, .calibration = data};
    enum store_added added;
    snprintf(job.id, sizeof job.id, "%s", id);
    ck_assert_msg(
        store_job_add(store, &job, &(struct store_asking){0}, &added, &problem), "%s",
        problem.detail);
}

static void
end_job(const char *id, enum api_job_state state, char *result, int64_t now)
{
    const struct store_end end = {.state = state, .result_model = result};
    struct store_ended ended;
    ck_assert(store_job_end(store, id, API_JOB_QUEUED, &end, now, &ended, &problem) &&
              ended.was);
}

/* Adds a job that ends at once, with a model of its own. */
static void
add_ended(const char *id, const char *text, int64_t now, char ret[DIGEST_SIZE])
{
    struct spool *spool = spool_of(text);
    memcpy(ret, spool_id(spool), DIGEST_SIZE);
    add_job(id, model, now);
    ck_assert(spool_commit(&spool, &problem));
    end_job(id, API_JOB_SUCCEEDED, ret, now);
}

static void
sweep_at(int64_t now)
{
    bool more = true;
    while (more)
        ck_assert_msg(sweep_round(library, &settings, now, &more, &problem), "%s",
                      problem.detail);
}

static bool
has_job(const char *id)
{
    struct api_problem ignored = {0};
    struct store_job job;
    bool has = store_job_get(store, id, &job, &ignored);
    if (has)
        store_job_fini(&job);
    return has;
}

static bool
has_file(enum store_kind kind, const char *id)
{
    struct api_problem ignored = {0};
    struct store_file file;
    int fd;
    bool has = store_file_get(store, kind, id, &file, &ignored);
    if (has)
        store_file_fini(&file);
    bool has_blob = blob_read(library_blobs(library), id, &fd, &ignored);
    if (has_blob)
        close(fd);
    ck_assert_int_eq(has, has_blob);
    return has;
}

static int64_t
expiry_of(enum store_kind kind, const char *id)
{
    struct store_file file;
    ck_assert(store_file_get(store, kind, id, &file, &problem));
    store_file_fini(&file);
    return file.expires_at;
}

static int64_t
expiry_of_job(const char *id)
{
    struct store_job job;
    ck_assert(store_job_get(store, id, &job, &problem));
    store_job_fini(&job);
    return job.expires_at;
}

/* --- ages ----------------------------------------------------------------- */

UNIT_TEST(jobs_go)
{
    char first[DIGEST_SIZE], second[DIGEST_SIZE];
    add_inputs(start);
    add_ended("first", "1", start, first);
    add_ended("second", "2", start + DAY, second);
    add_job("lives", model, start);
    ck_assert_int_eq(expiry_of_job("first"), start + 7 * DAY);
    ck_assert_int_eq(expiry_of_job("lives"), 0);
    ck_assert_int_eq(expiry_of(STORE_MODEL, first), start + 7 * DAY);
    sweep_at(start + 7 * DAY - 1);
    ck_assert(has_job("first") && has_file(STORE_MODEL, first));
    sweep_at(start + 7 * DAY);
    ck_assert(!has_job("first") && !has_file(STORE_MODEL, first));
    ck_assert(has_job("second") && has_file(STORE_MODEL, second));
    sweep_at(start + 1000 * DAY);
    ck_assert(!has_job("second") && has_job("lives"));
    ck_assert(has_file(STORE_MODEL, model) && has_file(STORE_DATASET, data));
}

UNIT_TEST(files_go)
{
    char other[DIGEST_SIZE];
    add_inputs(start);
    add_file(STORE_MODEL, "another", start + DAY, other);
    ck_assert_int_eq(expiry_of(STORE_MODEL, model), start + 30 * DAY);
    sweep_at(start + 30 * DAY - 1);
    ck_assert(has_file(STORE_MODEL, model) && has_file(STORE_DATASET, data));
    sweep_at(start + 30 * DAY);
    ck_assert(!has_file(STORE_MODEL, model) && !has_file(STORE_DATASET, data));
    ck_assert(has_file(STORE_MODEL, other));
}

/* A blob expires like a model, but its bytes stay while a model is made of them.
   Making a model of a blob counts as a use of it. */
UNIT_TEST(blobs_go)
{
    char one[DIGEST_SIZE], two[DIGEST_SIZE], alone[DIGEST_SIZE],
        path[2][2] = {"m", "w"};
    struct library_part parts[2] = {{.path = path[0], .size = 3},
                                    {.path = path[1], .size = 3}};
    struct store_file made;
    bool is_new;
    int fd;
    add_file(STORE_BLOB, "alone", start - DAY / 2, alone);
    add_file(STORE_BLOB, "one", start - DAY / 2, one);
    add_file(STORE_BLOB, "two", start, two);
    ck_assert_int_eq(expiry_of(STORE_BLOB, one), start - DAY / 2 + 30 * DAY);
    memcpy(parts[0].digest, one, DIGEST_SIZE);
    memcpy(parts[1].digest, two, DIGEST_SIZE);
    ck_assert(
        library_add_model(library, "sha256:both", parts, 2, &made, &is_new, &problem));
    ck_assert(is_new && made.size == 6);
    store_file_fini(&made);
    ck_assert_int_eq(expiry_of(STORE_BLOB, one), start + 30 * DAY);
    sweep_at(start - DAY / 2 + 30 * DAY);
    ck_assert(!has_file(STORE_BLOB, alone) && has_file(STORE_BLOB, one));
    ck_assert(library_remove(library, STORE_BLOB, two, STORE_REQUEST, &problem));
    ck_assert(blob_read(library_blobs(library), two, &fd, &problem));
    close(fd);
    sweep_at(start + 30 * DAY);
    ck_assert(!blob_exists(library_blobs(library), one));
    ck_assert(!blob_exists(library_blobs(library), two));
    ck_assert(
        !library_add_model(library, "sha256:both", parts, 2, &made, &is_new, &problem));
    ck_assert_int_eq(problem.code, API_NOT_FOUND);
}

/* Storing a file again renews its age, and so do the start and the end of a job that
   uses it. */
UNIT_TEST(use_renews)
{
    char result[DIGEST_SIZE];
    add_inputs(start);
    add_file(STORE_MODEL, "a model", start + 10 * DAY, model);
    ck_assert_int_eq(expiry_of(STORE_MODEL, model), start + 40 * DAY);
    ck_assert_int_eq(expiry_of(STORE_DATASET, data), start + 30 * DAY);
    add_job("a", model, start + 20 * DAY);
    ck_assert_int_eq(expiry_of(STORE_MODEL, model), start + 50 * DAY);
    ck_assert_int_eq(expiry_of(STORE_DATASET, data), start + 50 * DAY);
    sweep_at(start + 100 * DAY);
    ck_assert(has_file(STORE_MODEL, model) && has_file(STORE_DATASET, data));
    end_job("a", API_JOB_CANCELLED, NULL, start + 100 * DAY);
    ck_assert_int_eq(expiry_of(STORE_DATASET, data), start + 130 * DAY);
    add_ended("b", "r", start + 101 * DAY, result);
    ck_assert_int_eq(expiry_of(STORE_MODEL, model), start + 131 * DAY);
    sweep_at(start + 131 * DAY);
    ck_assert(!has_file(STORE_MODEL, model) && !has_file(STORE_DATASET, data));
}

/* A model that one job made is the input of another: both stay until the second has
   ended. */
UNIT_TEST(result_in_use)
{
    char result[DIGEST_SIZE];
    struct store_job job;
    add_inputs(start);
    add_ended("made", "a result", start, result);
    add_job("uses", result, start);
    sweep_at(start + 1000 * DAY);
    ck_assert(has_job("made") && has_file(STORE_MODEL, result));
    ck_assert(!store_job_remove(store, "made", STORE_REQUEST, &job, &problem));
    ck_assert_int_eq(problem.code, API_IN_USE);
    problem = (struct api_problem){0};
    end_job("uses", API_JOB_FAILED, NULL, start + 1000 * DAY);
    sweep_at(start + 1000 * DAY);
    ck_assert(!has_job("made") && !has_file(STORE_MODEL, result));
    ck_assert(has_job("uses"));
}

UNIT_TEST(for_ever)
{
    char result[DIGEST_SIZE];
    settings = (struct settings){0};
    reopen();
    add_inputs(start);
    add_ended("a", "r", start, result);
    ck_assert_int_eq(expiry_of_job("a"), 0);
    ck_assert_int_eq(expiry_of(STORE_MODEL, model), 0);
    sweep_at(start + 100000 * DAY);
    ck_assert(has_job("a") && has_file(STORE_MODEL, model));
}

/* Stored files never expire here, and jobs still do. */
UNIT_TEST(one_for_ever)
{
    char result[DIGEST_SIZE];
    settings.retention_files = 0;
    reopen();
    add_inputs(start);
    add_ended("a", "r", start, result);
    sweep_at(start + 100000 * DAY);
    ck_assert(!has_job("a") && has_file(STORE_MODEL, model));
}

/* Observations go with their model, and a job's row with many others. */
UNIT_TEST(many)
{
    char id[JOB_ID_SIZE], result[DIGEST_SIZE];
    add_inputs(start);
    for (int i = 0; i < 100; i++) {
        snprintf(id, sizeof id, "j%d", i);
        add_ended(id, "the same", start, result);
    }
    ck_assert(has_file(STORE_MODEL, result));
    sweep_at(start + 30 * DAY);
    ck_assert(!has_job("j0") && !has_job("j99") && !has_file(STORE_MODEL, result));
    ck_assert(!has_file(STORE_MODEL, model));
}

UNIT_TEST(observations_go)
{
    struct store_observations row = {.key = "k", .model = model, .calibration = data};
    char id[DIGEST_SIZE];
    bool any;
    struct spool *spool = spool_of("observed");
    add_inputs(start);
    ck_assert(library_observations_keep(library, &row, &spool, 1000, &problem));
    ck_assert(store_observations_use(store, "k", start, id, &any, &problem) && any);
    sweep_at(start + 30 * DAY);
    ck_assert(store_observations_use(store, "k", start, id, &any, &problem) && !any);
    ck_assert(!store_needs_blob(store, id));
}

/* A round that fails has nothing left to do at once: the next one waits for its time. */
UNIT_TEST(a_failed_round_waits)
{
    sqlite3 *db;
    bool more = true;
    add_inputs(start);
    ck_assert(!sqlite3_open(scratch_path("state/" FOLDER_DATABASE), &db));
    ck_assert(!sqlite3_exec(db, "ALTER TABLE files RENAME TO gone", NULL, NULL, NULL));
    sqlite3_close(db);
    ck_assert(!sweep_round(library, &settings, start + 30 * DAY, &more, &problem));
    ck_assert(!more);
}

/* --- the clock ------------------------------------------------------------ */

/*
 * The wall clock is set back by years and later set right again. Things stored
 * meanwhile have their true age and are not years old, also when the daemon was
 * restarted.
 */
UNIT_LOOP(set_back, 2)
{
    char first[DIGEST_SIZE], second[DIGEST_SIZE], third[DIGEST_SIZE];
    add_inputs(start);
    add_ended("first", "1", start, first);
    if (_i)
        reopen();
    sweep_at(1000);
    add_file(STORE_MODEL, "late", 2000, third);
    add_file(STORE_MODEL, "a model", 2000, model);
    add_ended("second", "2", 3000, second);
    sweep_at(4000);
    if (_i)
        reopen();
    ck_assert(has_job("first") && has_job("second"));
    sweep_at(start + 7 * DAY - 1);
    ck_assert(has_job("first") && has_job("second"));
    ck_assert(has_file(STORE_MODEL, model) && has_file(STORE_MODEL, third));
    sweep_at(start + 7 * DAY);
    ck_assert(!has_job("first") && !has_job("second"));
    ck_assert_int_eq(expiry_of(STORE_MODEL, third), start + 30 * DAY);
    sweep_at(start + 30 * DAY);
    ck_assert(!has_file(STORE_MODEL, model) && !has_file(STORE_MODEL, third));
}

UNIT_SUITE("daemon/sweep", .setup = set_up, .teardown = tear_down)
