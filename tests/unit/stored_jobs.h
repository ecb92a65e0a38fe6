/* SPDX-License-Identifier: Apache-2.0 */
/* A store in a scratch folder, and helpers that add, claim and end jobs in it. */
#ifndef TESTS_UNIT_STORED_JOBS_H
#define TESTS_UNIT_STORED_JOBS_H

#include "daemon.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static struct store *store;
static struct api_problem problem;

static char model[] = "sha256:m", data[] = "sha256:d", spec[] = "{}";

/* Where the database's clock counts, makes the time that a call is given count instead, as
   with SQLite. QDQD_TEST_PSQL is the path of psql. */
static inline void
make_clock_settable(const char *url, const char *tenant)
{
    const char *psql = getenv("QDQD_TEST_PSQL");
    char sql[256];
    int status = -1;
    snprintf(sql, sizeof sql,
             "CREATE OR REPLACE FUNCTION \"qdqd-%s\".moment(asked BIGINT)"
             " RETURNS BIGINT LANGUAGE sql AS 'SELECT asked'",
             tenant);
    pid_t pid = fork();
    if (pid == 0) {
        execl(psql, "psql", "-qXd", url, "-c", sql, (char *)NULL);
        _exit(127);
    }
    ck_assert(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

/* With QDQD_TEST_STORE=postgresql://... the store is a schema of its own there. */
static inline void
reopen(void)
{
    static char tenant[64];
    const struct store_place place = {.path = scratch_path("db"),
                                      .url = getenv("QDQD_TEST_STORE"),
                                      .tenant = tenant,
                                      .lease_ms = 0};
    store_close(&store);
    snprintf(tenant, sizeof tenant, "unit-%d", (int)getpid());
    ck_assert_msg(store_open_at(&place, &store, &problem), "%s", problem.detail);
    if (place.url)
        make_clock_settable(place.url, tenant);
}

static inline void
set_up(void)
{
    scratch_make();
    problem = (struct api_problem){0};
    reopen();
}

static inline void
tear_down(void)
{
    store_close(&store);
    scratch_remove();
}

static inline void
add_inputs(void)
{
    struct store_file file = {.id = "sha256:m"}, other = {.id = "sha256:d"};
    bool is_new;
    ck_assert(store_file_add(store, STORE_MODEL, &file, &is_new, &problem));
    ck_assert(store_file_add(store, STORE_DATASET, &other, &is_new, &problem));
}

/* Adds a job, after storing its inputs. */
static inline enum store_added
add_asked(const char *id, int64_t priority, const char *labels,
          const struct store_asking *asking)
{
    enum store_added added;
    add_inputs();
    struct store_job job = {.priority = priority,
                            .created_at = 1000,
                            .model = model,
                            .calibration = data,
                            .spec = spec};
    snprintf(job.id, sizeof job.id, "%s", id);
    job.labels = labels ? strdup(labels) : NULL;
    job.fresh = asking->asked && !strcmp(asking->asked, "fresh");
    ck_assert_msg(store_job_add(store, &job, asking, &added, &problem), "%s",
                  problem.detail);
    free(job.labels);
    return added;
}

static inline void
add(const char *id, int64_t priority, const char *labels)
{
    ck_assert_int_eq(add_asked(id, priority, labels, &(struct store_asking){0}),
                     STORE_QUEUED);
}

static inline enum api_job_state
state_of(const char *id)
{
    struct store_job job;
    ck_assert_msg(store_job_get(store, id, &job, &problem), "%s", problem.detail);
    store_job_fini(&job);
    return job.state;
}

/* Claims the next job and checks that it has this id; NULL: no job is claimed. */
static inline void
claim(const char *id)
{
    struct store_job job;
    bool any;
    ck_assert(store_job_claim(store, 2000, true, &job, &any, &problem));
    ck_assert_int_eq(any, id != NULL);
    if (!any)
        return;
    ck_assert_str_eq(job.id, id);
    ck_assert_int_eq(job.state, API_JOB_RUNNING);
    ck_assert_int_eq(job.started_at, 2000);
    store_job_fini(&job);
}

static inline bool
end(const char *id, enum api_job_state from, enum api_job_state to)
{
    struct store_ended ended;
    const struct store_end how = {.state = to};
    ck_assert(store_job_end(store, id, from, &how, 3000, &ended, &problem));
    return ended.was;
}

#endif
