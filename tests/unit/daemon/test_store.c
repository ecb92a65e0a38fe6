/* SPDX-License-Identifier: Apache-2.0 */
/* The record of files, jobs and observations. */
#include "config.h"

#include "stored_jobs.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* --- files ---------------------------------------------------------------- */

UNIT_TEST(files)
{
    struct store_file file = {.id = "sha256:m", .size = 7, .created_at = 5}, got;
    bool is_new;
    ck_assert(store_file_add(store, STORE_MODEL, &file, &is_new, &problem) && is_new);
    file.created_at = 9;
    ck_assert(store_file_add(store, STORE_MODEL, &file, &is_new, &problem) && !is_new);
    reopen();
    ck_assert(store_file_get(store, STORE_MODEL, model, &got, &problem));
    ck_assert_int_eq(got.created_at, 5);
    ck_assert_uint_eq(got.size, 7);
    ck_assert(store_needs_blob(store, model));
    ck_assert(!store_file_get(store, STORE_DATASET, model, &got, &problem));
    ck_assert_int_eq(problem.code, API_NOT_FOUND);
    ck_assert(store_file_remove(store, STORE_MODEL, model, STORE_REQUEST, &problem));
    ck_assert(!store_needs_blob(store, model));
    problem = (struct api_problem){0};
    ck_assert(!store_file_remove(store, STORE_MODEL, model, STORE_REQUEST, &problem));
    ck_assert_int_eq(problem.code, API_NOT_FOUND);
}

/* A blob is stored on its own. A blob's bytes also count as needed when a model or a
   result needs them. */
UNIT_TEST(blobs)
{
    struct store_file file = {.id = "sha256:b", .size = 7, .created_at = 5}, got;
    bool is_new;
    add("live", 0, NULL);
    ck_assert(store_file_add(store, STORE_BLOB, &file, &is_new, &problem) && is_new);
    snprintf(file.id, sizeof file.id, "%s", model);
    ck_assert(store_file_add(store, STORE_BLOB, &file, &is_new, &problem) && is_new);
    ck_assert(store_file_get(store, STORE_BLOB, model, &got, &problem));
    ck_assert_ptr_null(got.info);
    ck_assert(store_file_remove(store, STORE_BLOB, model, STORE_REQUEST, &problem));
    ck_assert(store_needs_blob(store, model));
    ck_assert(
        store_file_remove(store, STORE_BLOB, "sha256:b", STORE_REQUEST, &problem));
    ck_assert(!store_needs_blob(store, "sha256:b"));
}

static char model_path[] = "m.onnx", data_path[] = "w.bin";
static struct store_model_file two_files[] = {{model_path, "sha256:one", 3},
                                              {data_path, "sha256:two", 4}};
static const struct store_model_files two = {2, two_files};

static size_t
files_of(const char *id)
{
    struct store_model_files got;
    ck_assert(store_model_files(store, id, &got, &problem));
    size_t n = got.n;
    for (size_t i = 0; i < n; i++) {
        ck_assert_str_eq(got.items[i].path, two_files[i].path);
        ck_assert_str_eq(got.items[i].digest, two_files[i].digest);
        ck_assert_uint_eq(got.items[i].size, two_files[i].size);
    }
    store_model_files_fini(&got);
    return n;
}

/* The files of a model are needed as long as a stored model or a result names it. */
UNIT_TEST(models_of_several_files)
{
    struct store_file file = {.id = "sha256:both", .size = 7, .created_at = 5}, got;
    struct store_end how = {.state = API_JOB_SUCCEEDED,
                            .result_model = "sha256:both",
                            .result_files = &two};
    struct store_ended ended;
    struct store_job job;
    bool is_new;
    ck_assert(store_model_add(store, &file, &two, &is_new, &problem) && is_new);
    ck_assert(store_model_add(store, &file, &two, &is_new, &problem) && !is_new);
    add("j", 0, NULL);
    claim("j");
    ck_assert(store_job_end(store, "j", API_JOB_RUNNING, &how, 9, &ended, &problem));
    reopen();
    ck_assert_uint_eq(files_of("sha256:both"), 2);
    ck_assert_uint_eq(files_of(model), 0);
    ck_assert(store_file_get(store, STORE_MODEL, "sha256:both", &got, &problem));
    ck_assert_str_eq(got.info, "[{\"path\":\"m.onnx\",\"digest\":\"sha256:one\","
                               "\"size\":3},{\"path\":\"w.bin\",\"digest\":"
                               "\"sha256:two\",\"size\":4}]");
    ck_assert(store_job_get(store, "j", &job, &problem));
    ck_assert_str_eq(job.result_files, got.info);
    store_file_fini(&got);
    store_job_fini(&job);
    ck_assert(
        store_file_remove(store, STORE_MODEL, "sha256:both", STORE_REQUEST, &problem));
    ck_assert_uint_eq(files_of("sha256:both"), 2);
    ck_assert(store_needs_blob(store, "sha256:two"));
    ck_assert(store_job_remove(store, "j", STORE_REQUEST, &job, &problem));
    store_job_fini(&job);
    ck_assert_uint_eq(files_of("sha256:both"), 0);
    ck_assert(!store_needs_blob(store, "sha256:two"));
}

UNIT_TEST(in_use)
{
    add("a", 0, NULL);
    ck_assert(!store_file_remove(store, STORE_MODEL, model, STORE_REQUEST, &problem));
    ck_assert_int_eq(problem.code, API_IN_USE);
    problem = (struct api_problem){0};
    ck_assert(!store_file_remove(store, STORE_DATASET, data, STORE_REQUEST, &problem));
    ck_assert_int_eq(problem.code, API_IN_USE);
    ck_assert(end("a", API_JOB_QUEUED, API_JOB_CANCELLED));
    ck_assert(store_file_remove(store, STORE_MODEL, model, STORE_REQUEST, NULL));
    ck_assert(store_file_remove(store, STORE_DATASET, data, STORE_REQUEST, NULL));
}

/* A job whose input is deleted between its lookup and the insertion is refused. */
UNIT_TEST(gone)
{
    struct store_job job = {.id = "a", .model = model, .calibration = data};
    const enum store_kind kinds[] = {STORE_MODEL, STORE_DATASET};
    const char *const ids[] = {model, data};
    const struct store_asking asking = {.identity = "sha256:i"};
    enum store_added added;
    for (size_t i = 0; i < 2; i++) {
        problem = (struct api_problem){0};
        add_inputs();
        ck_assert(store_file_remove(store, kinds[i], ids[i], STORE_REQUEST, &problem));
        ck_assert(!store_job_add(store, &job, &asking, &added, &problem));
        ck_assert_int_eq(problem.code, API_NOT_FOUND);
    }
    job.calibration = NULL;
    problem = (struct api_problem){0};
    ck_assert_msg(store_job_add(store, &job, &asking, &added, &problem), "%s",
                  problem.detail);
}

/* --- the queue ------------------------------------------------------------ */

UNIT_TEST(order)
{
    int64_t n;
    add("first", 0, NULL);
    add("second", 0, NULL);
    add("urgent", 5, NULL);
    add("last", -1, NULL);
    ck_assert(store_queue_length(store, &n, &problem));
    ck_assert_int_eq(n, 4);
    ck_assert(store_job_position(store, "second", &n, &problem));
    ck_assert_int_eq(n, 3);
    claim("urgent");
    claim("first");
    ck_assert(store_job_position(store, "second", &n, &problem));
    ck_assert_int_eq(n, 1);
    ck_assert(store_job_position(store, "first", &n, &problem));
    ck_assert_int_eq(n, 0);
    claim("second");
    claim("last");
    claim(NULL);
}

/* Lets no file grow by a byte beyond the size of the database's log, as on a full disk, or
   as far as it may. */
static void
let_files_grow(bool may)
{
    struct rlimit limit;
    struct stat st = {0};
    ck_assert(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    if (!may) {
        ck_assert(stat(scratch_path("db-wal"), &st) == 0);
        limit.rlim_cur = (rlim_t)st.st_size;
    }
    ck_assert(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

/* The disk has no room for the claim: no job is claimed, and none is handed out. */
UNIT_TEST(claimed_on_a_full_disk)
{
    struct store_job job;
    bool any = true;
    if (getenv("QDQD_TEST_STORE"))
        return; /* the files are those of another program */
    add("first", 0, NULL);
    sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    let_files_grow(false);
    ck_assert(!store_job_claim(store, 2000, true, &job, &any, &problem));
    ck_assert(!any);
    let_files_grow(true);
    problem = (struct api_problem){0};
    ck_assert_int_eq(state_of("first"), API_JOB_QUEUED);
    claim("first");
}

UNIT_TEST(requeue)
{
    bool was;
    struct store_job job;
    add("a", 0, NULL);
    ck_assert(store_job_requeue(store, "a", 0, 1, &was, &problem) && !was);
    claim("a");
    ck_assert(store_job_requeue(store, "a", 0, 1, &was, &problem) && was);
    claim("a");
    ck_assert(store_job_requeue(store, "a", 0, 0, &was, &problem) && was);
    ck_assert(store_job_get(store, "a", &job, &problem));
    ck_assert_int_eq(job.attempts, 1);
    ck_assert_int_eq(job.started_at, 0);
    store_job_fini(&job);
}

/* After a crash the jobs that ran are queued again; nothing else changes. */
UNIT_TEST(recover)
{
    int64_t n;
    add("ended", 2, NULL);
    add("ran", 1, NULL);
    add("waited", 0, NULL);
    claim("ended");
    ck_assert(end("ended", API_JOB_RUNNING, API_JOB_FAILED));
    claim("ran");
    reopen();
    ck_assert_int_eq(state_of("ran"), API_JOB_RUNNING);
    ck_assert(store_recover(store, &n, &problem));
    ck_assert_int_eq(n, 1);
    ck_assert_int_eq(state_of("ended"), API_JOB_FAILED);
    claim("ran");
    claim("waited");
    claim(NULL);
}

/* A job ends once, and only from the expected state. */
static const struct {
    bool claimed;
    enum api_job_state from;
    bool was;
} ends[] = {
    {false, API_JOB_QUEUED, true},
    {false, API_JOB_RUNNING, false},
    {true, API_JOB_QUEUED, false},
    {true, API_JOB_RUNNING, true},
};

UNIT_ROWS(ends_once, ends)
{
    add("a", 0, NULL);
    if (ends[_i].claimed)
        claim("a");
    ck_assert_int_eq(end("a", ends[_i].from, API_JOB_CANCELLED), ends[_i].was);
    if (!ends[_i].was)
        return;
    ck_assert(!end("a", ends[_i].from, API_JOB_SUCCEEDED));
    ck_assert_int_eq(state_of("a"), API_JOB_CANCELLED);
}

UNIT_TEST(result_and_error)
{
    struct store_job job;
    struct store_file file;
    struct store_ended ended;
    struct api_problem error = {0};
    const struct store_end good = {.state = API_JOB_SUCCEEDED,
                                   .result_model = "sha256:r",
                                   .report = "sha256:p",
                                   .frozen = "sha256:f",
                                   .summary = "{\"layers\":1}",
                                   .result_size = 42};
    const struct store_end bad = {.state = API_JOB_FAILED, .error = &error};
    api_problem_set(&error, API_NONFINITE, QDQ_AT_SAMPLE, "3", "sample 3 has a NaN");
    add("good", 0, NULL);
    add("bad", 0, NULL);
    claim("good");
    claim("bad");
    ck_assert(
        store_job_end(store, "good", API_JOB_RUNNING, &good, 1, &ended, &problem));
    ck_assert(store_job_end(store, "bad", API_JOB_RUNNING, &bad, 1, &ended, &problem));
    reopen();
    ck_assert(store_job_get(store, "good", &job, &problem));
    ck_assert_str_eq(job.result_model, "sha256:r");
    ck_assert_str_eq(job.report, "sha256:p");
    ck_assert_str_eq(job.frozen, "sha256:f");
    ck_assert_str_eq(job.summary, "{\"layers\":1}");
    ck_assert_uint_eq(job.result_size, 42);
    ck_assert(!job.error.set);
    store_job_fini(&job);
    ck_assert(store_job_get(store, "bad", &job, &problem));
    ck_assert(job.error.set);
    ck_assert_int_eq(job.error.code, API_NONFINITE);
    ck_assert_int_eq(job.error.kind, QDQ_AT_SAMPLE);
    ck_assert_str_eq(job.error.where, "3");
    ck_assert_str_eq(job.error.detail, "sample 3 has a NaN");
    store_job_fini(&job);
    /* A result can be looked up as a model as long as its job exists. */
    ck_assert(store_file_get(store, STORE_MODEL, "sha256:r", &file, &problem));
    ck_assert_uint_eq(file.size, 42);
    ck_assert(store_needs_blob(store, "sha256:p"));
    ck_assert(store_needs_blob(store, "sha256:f"));
    ck_assert(store_job_remove(store, "good", STORE_REQUEST, &job, &problem));
    ck_assert_str_eq(job.result_model, "sha256:r");
    store_job_fini(&job);
    ck_assert(!store_needs_blob(store, "sha256:r"));
    ck_assert(!store_needs_blob(store, "sha256:p"));
    ck_assert(!store_needs_blob(store, "sha256:f"));
}

/* A rejected job keeps its model and report, and its error names the model. */
UNIT_TEST(rejected)
{
    struct store_job job;
    struct store_file file;
    struct store_ended ended;
    struct api_problem error = {0};
    const struct store_end end = {.state = API_JOB_FAILED,
                                  .result_model = "sha256:r",
                                  .report = "sha256:p",
                                  .summary = "{}",
                                  .result_size = 42,
                                  .error = &error};
    api_problem_set(&error, API_ACCURACY, QDQ_AT_POINTER, "/accept/min_cosine", "off");
    add("a", 0, NULL);
    claim("a");
    ck_assert(store_job_end(store, "a", API_JOB_RUNNING, &end, 1, &ended, &problem));
    reopen();
    ck_assert(store_job_get(store, "a", &job, &problem));
    ck_assert_int_eq(job.state, API_JOB_FAILED);
    ck_assert_int_eq(job.error.code, API_ACCURACY);
    ck_assert_str_eq(job.error.model, "sha256:r");
    ck_assert_str_eq(job.error.where, "/accept/min_cosine");
    ck_assert_str_eq(job.report, "sha256:p");
    store_job_fini(&job);
    ck_assert(store_file_get(store, STORE_MODEL, "sha256:r", &file, &problem));
    ck_assert(store_needs_blob(store, "sha256:r") &&
              store_needs_blob(store, "sha256:p"));
    ck_assert(store_job_remove(store, "a", STORE_REQUEST, &job, &problem));
    store_job_fini(&job);
    ck_assert(!store_needs_blob(store, "sha256:r"));
}

/* --- the list ------------------------------------------------------------- */

static const struct {
    struct store_filter filter;
    const char *wanted; /* ids, newest first */
} lists[] = {
    {{API_N_JOB_STATES, NULL, INT64_MAX, 10, false, 0}, "edcba"},
    {{API_N_JOB_STATES, NULL, INT64_MAX, 2, false, 0}, "ed"},
    {{API_N_JOB_STATES, NULL, 3, 10, false, 0}, "ba"},
    {{API_JOB_RUNNING, NULL, INT64_MAX, 10, false, 0}, "a"},
    {{API_JOB_QUEUED, NULL, INT64_MAX, 10, false, 0}, "edcb"},
    {{API_JOB_FAILED, NULL, INT64_MAX, 10, false, 0}, ""},
    {{API_N_JOB_STATES, "team:red", INT64_MAX, 10, false, 0}, "ca"},
    {{API_N_JOB_STATES, "team:re", INT64_MAX, 10, false, 0}, ""},
    {{API_N_JOB_STATES, "a.b\"$:1", INT64_MAX, 10, false, 0}, "d"},
    {{API_JOB_QUEUED, "team:red", INT64_MAX, 10, false, 0}, "c"},
    {{API_N_JOB_STATES, "k:l:m", INT64_MAX, 10, false, 0}, "ed"},
    {{API_N_JOB_STATES, "k:l", INT64_MAX, 10, false, 0}, ""},
    /* All jobs were made at time 1000. */
    {{API_N_JOB_STATES, NULL, 0, 2, true, INT64_MAX}, "ed"},
    {{API_N_JOB_STATES, NULL, 0, 10, true, 1001}, "edcba"},
    {{API_N_JOB_STATES, NULL, INT64_MAX, 10, true, 1000}, "edcba"},
    {{API_N_JOB_STATES, NULL, 4, 10, true, 1000}, "cba"},
    {{API_N_JOB_STATES, NULL, 0, 10, true, 1000}, ""},
    {{API_JOB_QUEUED, "team:red", INT64_MAX, 10, true, 1000}, "c"},
};

UNIT_ROWS(list, lists)
{
    struct store_job *jobs;
    size_t n;
    char got[16] = "";
    add("a", 0, "{\"team\":\"red\"}");
    add("b", 0, "{\"team\":\"blue\"}");
    add("c", 0, "{\"x\":\"y\",\"team\":\"red\"}");
    add("d", 0, "{\"a.b\\\"$\":\"1\",\"k\":\"l:m\"}");
    add("e", 0, "{\"k:l\":\"m\"}");
    claim("a");
    ck_assert(store_job_list(store, &lists[_i].filter, &jobs, &n, &problem));
    for (size_t i = 0; i < n; i++) {
        got[i] = jobs[i].id[0];
        store_job_fini(&jobs[i]);
    }
    free(jobs);
    ck_assert_str_eq(got, lists[_i].wanted);
}

/* --- observations --------------------------------------------------------- */

static bool
put(const char *key, const char *blob, uint64_t size, int64_t now)
{
    struct store_observations row = {.model = model, .calibration = data, .size = size};
    bool stored;
    snprintf(row.key, sizeof row.key, "%s", key);
    snprintf(row.blob, sizeof row.blob, "%s", blob);
    ck_assert_msg(store_observations_put(store, &row, now, &stored, &problem), "%s",
                  problem.detail);
    return stored;
}

/* Returns the blob that is stored under the key; "": none. */
static const char *
kept(const char *key, int64_t now)
{
    static char blob[DIGEST_SIZE];
    bool any;
    ck_assert(store_observations_use(store, key, now, blob, &any, &problem));
    return any ? blob : "";
}

static const char *
evict(int64_t bytes, int64_t rows)
{
    static char blob[DIGEST_SIZE];
    bool any;
    ck_assert(store_observations_evict(store, bytes, rows, blob, &any, &problem));
    return any ? blob : "";
}

UNIT_TEST(observations)
{
    add_inputs();
    ck_assert_str_eq(kept("a", 1), "");
    ck_assert(put("a", "sha256:1", 10, 1));
    ck_assert(put("b", "sha256:2", 10, 2));
    ck_assert_str_eq(kept("a", 3), "sha256:1");
    ck_assert(put("b", "sha256:3", 10, 4));
    reopen();
    ck_assert_str_eq(kept("b", 5), "sha256:3");
    ck_assert(store_needs_blob(store, "sha256:1"));
    ck_assert(!store_needs_blob(store, "sha256:2"));
}

/* The least recently used observations go first, and no more than necessary. */
UNIT_TEST(observations_evicted)
{
    add_inputs();
    ck_assert(put("a", "sha256:1", 10, 1));
    ck_assert(put("b", "sha256:2", 10, 2));
    ck_assert(put("c", "sha256:3", 10, 3));
    ck_assert_str_eq(kept("a", 4), "sha256:1");
    ck_assert_str_eq(evict(30, 3), "");
    ck_assert_str_eq(evict(30, 2), "sha256:2");
    ck_assert_str_eq(evict(20, 2), "");
    ck_assert_str_eq(evict(19, 2), "sha256:3");
    ck_assert_str_eq(evict(19, 2), "");
    ck_assert_str_eq(evict(0, 2), "sha256:1");
    ck_assert_str_eq(evict(0, 0), "");
    ck_assert(!store_needs_blob(store, "sha256:1"));
}

/* Observations go when their model or dataset is deleted, before or after they were
   stored. */
UNIT_LOOP(observations_forgotten, 2)
{
    const enum store_kind kinds[] = {STORE_MODEL, STORE_DATASET};
    const char *const ids[] = {model, data};
    char blob[DIGEST_SIZE];
    bool any;
    add_inputs();
    ck_assert(put("a", "sha256:1", 10, 1));
    ck_assert(put("b", "sha256:1", 10, 1));
    ck_assert(
        store_observations_forget(store, kinds[_i], "sha256:x", blob, &any, &problem) &&
        !any);
    ck_assert(
        store_observations_forget(store, kinds[!_i], ids[_i], blob, &any, &problem) &&
        !any);
    for (int left = 2; left > 0; left--) {
        ck_assert(store_needs_blob(store, "sha256:1"));
        ck_assert(store_observations_forget(store, kinds[_i], ids[_i], blob, &any,
                                            &problem) &&
                  any);
        ck_assert_str_eq(blob, "sha256:1");
    }
    ck_assert(!store_needs_blob(store, "sha256:1"));
    ck_assert(store_file_remove(store, kinds[_i], ids[_i], STORE_REQUEST, &problem));
    ck_assert(!put("a", "sha256:1", 10, 2));
    ck_assert_str_eq(kept("a", 3), "");
}

/* --- the file ------------------------------------------------------------- */

UNIT_TEST(not_a_database)
{
    struct store *other = NULL;
    scratch_write("text", "this is no database, and long enough to be seen as none\n");
    ck_assert(!store_open(scratch_path("text"), &other, &problem));
    ck_assert_ptr_null(other);
    ck_assert(problem.set);
}

UNIT_SUITE("daemon/store", .setup = set_up, .teardown = tear_down)
