/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "store/inner.h"
#include "store/columns.h"
#include "store/derive.h"
#include "store/unsynced.h"

_Static_assert(API_MAX_LISTED == 4096, "the limit in columns.h");

/* --- jobs ----------------------------------------------------------------- */

/* Reads a problem. A slug that this version does not know becomes INTERNAL. Returns the column
   behind it. */
static int
column_problem(struct stmt *stmt, int i, struct api_problem *ret)
{
    const char *slug = borrow_text(stmt, i);
    if (!slug)
        return i + 4;
    enum api_code code = api_problem_code(slug);
    ret->code = code == API_N_CODES ? API_INTERNAL : code;
    ret->set = true;
    int kind = (int)column_int(stmt, i + 1);
    ret->kind =
        kind >= 0 && kind < QDQ_N_WHERES ? (enum qdq_where)kind : QDQ_AT_NOTHING;
    const char *where = borrow_text(stmt, i + 2);
    qdq_text_copy(ret->where, sizeof ret->where, where ? where : "");
    const char *detail = borrow_text(stmt, i + 3);
    qdq_text_copy(ret->detail, sizeof ret->detail, detail ? detail : "");
    return i + 4;
}

static int
column_progress(struct stmt *stmt, int i, struct store_progress *ret)
{
    column_chars(stmt, i++, ret->stage, sizeof ret->stage);
    ret->done = column_int(stmt, i++);
    ret->total = column_int(stmt, i++);
    ret->eta_s = column_int(stmt, i++);
    return i;
}

/* Each reads the columns of one member and moves on. */
#define READ_KEPT(member) \
    job.member = expires(column_int(stmt, i++), store->retention.jobs)
#define READ_CHARS(member) column_chars(stmt, i++, job.member, sizeof job.member)
#define READ_TEXT(member) job.member = column_text(stmt, i++, &ok)
#define READ_INT(member) job.member = column_int(stmt, i++)
#define READ_SIZE(member) job.member = (uint64_t)column_int(stmt, i++)
#define READ_FLAG(member) job.member = (int)column_int(stmt, i++) != 0
#define READ_STATE(member) job.member = api_job_state_parse(borrow_text(stmt, i++))
#define READ_PROBLEM(member) i = column_problem(stmt, i, &job.member)
#define READ_PROGRESS(member) i = column_progress(stmt, i, &job.member)
#define READ_COLUMN(kind, member, sql) READ_##kind(member);

/* Reads a job from a row with JOB_COLUMNS. */
static bool
column_job(struct store *store, struct stmt *stmt, struct store_job *ret,
           struct api_problem *p)
{
    struct store_job job = {0};
    bool ok = true;
    int i = 0;
    JOB_COLUMN_TABLE(READ_COLUMN, READ_COLUMN, , , , )
    if (job.error.set && job.result_model)
        snprintf(job.error.model, sizeof job.error.model, "%s", job.result_model);
    if (!ok) {
        store_job_fini(&job);
        return api_problem_no_memory(p);
    }
    *ret = job;
    return true;
}

bool
store_read_job(struct store *store, enum statement s, struct store_job *ret,
               bool *ret_any, struct api_problem *p)
{
    lock_assert_held(&store->lock);
    struct stmt *stmt = &store->statements[s];
    int rc = step(stmt);
    bool ok = rc == DB_ROW    ? column_job(store, stmt, ret, p)
              : rc == DB_DONE ? true
                              : fail(store, p);
    *ret_any = ok && rc == DB_ROW;
    /* An UPDATE with RETURNING takes effect when it is stepped to its end. */
    if (*ret_any && step(stmt) != DB_DONE) {
        store_job_fini(ret);
        *ret_any = false;
        ok = fail(store, p);
    }
    done(stmt);
    return ok;
}

static bool
set_no_job(struct api_problem *p)
{
    return api_problem_set(p, API_NOT_FOUND, QDQ_AT_NOTHING, NULL,
                           "there is no such job");
}

bool
store_find_job(struct store *store, const char *id, struct store_job *ret,
               struct api_problem *p)
{
    bool any;
    bind_text(&store->statements[JOB_GET], 1, id);
    if (!store_read_job(store, JOB_GET, ret, &any, p))
        return false;
    return any || set_no_job(p);
}

bool
store_insert_job(struct store *store, const struct store_job *job,
                 const struct store_asking *asking, struct api_problem *p)
{
    bind_all(&store->statements[JOB_ADD], 1, TEXT(job->id), INT(job->priority),
             INT(job->attempts), INT(job->created_at), TEXT(job->model),
             TEXT(job->calibration), TEXT(job->spec), TEXT(job->labels),
             INT(job->fresh), TEXT(asking->key), TEXT(asking->asked),
             TEXT(asking->identity), TEXT(job->effective_spec),
             TEXT(*job->observations ? job->observations : NULL), INT(job->wants_gpu),
             TEXT(job->source), TEXT(job->publish), INT(job->fetching),
             TEXT(job->evaluation), TEXT(job->metric), TEXT(job->waits_for),
             TEXT(*job->parent ? job->parent : NULL), TEXT(job->target));
    return run(store, JOB_ADD, p) &&
           (changes(store) == 1 ||
            api_problem_set(p, API_NOT_FOUND, QDQ_AT_NOTHING, NULL,
                            "the model or data of the job is not stored any more"));
}

bool
store_set_processor(struct store *store, const struct store_job *job,
                    struct api_problem *p)
{
    if (!job->processor || !store_is_shared(store))
        return true;
    bind_all(&store->statements[JOB_RUNS_ON], 1, TEXT(job->id), TEXT(job->processor),
             TEXT(store_own_processor()));
    return run(store, JOB_RUNS_ON, p);
}

/* Returns whether nothing follows the job's row, so that it needs no transaction. */
static bool
is_one_statement(const struct store *store, const struct store_job *job,
                 const struct store_asking *asking)
{
    return (!asking->identity || job->fresh) &&
           (!job->processor || !store_is_shared(store));
}

bool
store_job_add(struct store *store, const struct store_job *job,
              const struct store_asking *asking, enum store_added *ret,
              struct api_problem *p)
{
    *ret = STORE_QUEUED;
    lock_acquire(&store->lock);
    bool ok = is_one_statement(store, job, asking)
                  ? store_insert_job(store, job, asking, p)
                  : run(store, BEGIN, p);
    if (ok && !is_one_statement(store, job, asking))
        ok = finish(store,
                    store_insert_job(store, job, asking, p) &&
                        store_set_processor(store, job, p) &&
                        store_settle_job(store, job, asking->identity, ret, p),
                    p);
    lock_release(&store->lock);
    return ok;
}

bool
store_job_of_key(struct store *store, const char *key, char ret_id[JOB_ID_SIZE],
                 char ret_asked[DIGEST_SIZE], bool *ret_any, struct api_problem *p)
{
    lock_acquire(&store->lock);
    struct stmt *stmt = &store->statements[JOB_OF_KEY];
    bind_text(stmt, 1, key);
    int rc = step(stmt);
    *ret_any = rc == DB_ROW;
    if (*ret_any) {
        column_chars(stmt, 0, ret_id, JOB_ID_SIZE);
        column_chars(stmt, 1, ret_asked, DIGEST_SIZE);
    }
    bool ok = rc == DB_ROW || rc == DB_DONE || fail(store, p);
    done(stmt);
    lock_release(&store->lock);
    return ok;
}

bool
store_job_get(struct store *store, const char *id, struct store_job *ret,
              struct api_problem *p)
{
    lock_acquire(&store->lock);
    bool ok = store_find_job(store, id, ret, p);
    lock_release(&store->lock);
    return ok;
}

bool
store_job_state(struct store *store, const char *id, enum api_job_state *ret,
                struct api_problem *p)
{
    lock_acquire(&store->lock);
    struct stmt *stmt = &store->statements[JOB_STATE];
    bind_text(stmt, 1, id);
    int rc = step(stmt);
    if (rc == DB_ROW)
        *ret = api_job_state_parse(borrow_text(stmt, 0));
    bool ok = rc == DB_ROW || (rc == DB_DONE ? set_no_job(p) : fail(store, p));
    done(stmt);
    lock_release(&store->lock);
    return ok;
}

bool
store_job_texts(struct store *store, struct store_job *job, struct api_problem *p)
{
    lock_acquire(&store->lock);
    struct stmt *stmt = &store->statements[JOB_TEXTS];
    bind_text(stmt, 1, job->id);
    int rc = step(stmt);
    bool ok = rc == DB_ROW || rc == DB_DONE || fail(store, p), whole = true;
    if (rc == DB_ROW && job->omits_spec)
        job->spec = column_text(stmt, 0, &whole);
    if (rc == DB_ROW && job->omits_labels)
        job->labels = column_text(stmt, 1, &whole);
    done(stmt);
    lock_release(&store->lock);
    return ok && (whole || api_problem_no_memory(p));
}

bool
store_job_texts_size(struct store *store, const char *id, int64_t *ret,
                     struct api_problem *p)
{
    lock_acquire(&store->lock);
    bind_text(&store->statements[JOB_TEXTS_SIZE], 1, id);
    *ret = 0;
    bool ok = ask(store, JOB_TEXTS_SIZE, NULL, ret, p);
    lock_release(&store->lock);
    return ok;
}

bool
store_job_claim(struct store *store, int64_t now, bool gpu, struct store_job *ret,
                bool *ret_any, struct api_problem *p)
{
    lock_acquire(&store->lock);
    bind_all(&store->statements[JOB_CLAIM], 1, INT(now), INT(gpu));
    store_bind_change(&store->statements[JOB_CLAIM], 3, API_JOB_QUEUED,
                      API_JOB_RUNNING);
    bind_int(&store->statements[JOB_CLAIM], 5, store->lease_ms);
    if (store_is_shared(store))
        bind_text(&store->statements[JOB_CLAIM], 6, store_own_processor());
    bool ok = store_read_job(store, JOB_CLAIM, ret, ret_any, p);
    lock_release(&store->lock);
    return ok;
}

bool
store_job_requeue(struct store *store, const char *id, int64_t fence, int charge,
                  bool *ret_was, struct api_problem *p)
{
    lock_acquire(&store->lock);
    bind_all(&store->statements[JOB_REQUEUE], 1, TEXT(id), INT(charge));
    store_bind_change(&store->statements[JOB_REQUEUE], 3, API_JOB_RUNNING,
                      API_JOB_QUEUED);
    bind_int(&store->statements[JOB_REQUEUE], 5, fence);
    bool ok = run(store, JOB_REQUEUE, p);
    if (ok)
        *ret_was = changes(store) == 1;
    lock_release(&store->lock);
    return ok && store_sync(store, p);
}

static void
bind_end(struct store *store, const char *id, enum api_job_state from,
         const struct store_end *end, int64_t now)
{
    struct stmt *stmt = &store->statements[JOB_END];
    bind_text(stmt, 1, id);
    store_bind_change(stmt, 2, from, end->state);
    bind_all(stmt, 4, INT(now), TEXT(end->result_model), INT((int64_t)end->result_size),
             TEXT(end->report), TEXT(end->summary));
    bind_all(stmt, 13, TEXT(end->frozen), INT(end->fence));
    if (end->error) {
        bind_all(stmt, 9, TEXT(api_problem_slug(end->error->code)),
                 INT((int)end->error->kind), TEXT(end->error->where),
                 TEXT(end->error->detail));
    }
}

/* Returns whether the end concerns this job alone, and not the jobs that joined it. */
static bool
is_own_end(const struct store_end *end)
{
    return end->state == API_JOB_CANCELLED ||
           (end->error && api_problem_retryable(end->error->code));
}

static void
bind_joined(struct store *store, enum statement joined, const char *id,
            enum api_job_state state)
{
    bind_text(&store->statements[joined], 1, id);
    if (joined == JOINED_END)
        store_bind_change(&store->statements[joined], 2, API_JOB_QUEUED, state);
}

/* Runs the bound end of a job, as a part of a transaction. *ret_joined is whether others may
   have joined it. Another daemon may have one join until this statement has its row, after
   it looked. */
static bool
write_end(struct store *store, struct store_ended *ret, bool *ret_joined,
          struct api_problem *p)
{
    struct stmt *stmt = &store->statements[JOB_END];
    int rc = step(stmt);
    ret->was = rc == DB_ROW;
    *ret_joined = store_is_shared(store);
    if (ret->was) {
        ret->tells = (int)column_int(stmt, 0) != 0;
        *ret_joined |= (int)column_int(stmt, 1) != 0;
        /* An UPDATE with RETURNING takes effect when it is stepped to its end. */
        rc = step(stmt);
    }
    bool ok = rc == DB_DONE || fail(store, p);
    done(stmt);
    return ok;
}

static bool
add_unsynced(struct store *store, const struct store_end *end, struct api_problem *p)
{
    bool ok = true;
    for (size_t i = 0; ok && i < end->n_unsynced; i++)
        ok = store_unsynced_add(store, &end->unsynced[i], p);
    return ok;
}

/* Ends the jobs that joined one, or has them run. Returns their number in *ret. */
static bool
end_joined(struct store *store, const char *id, const struct store_end *end,
           int64_t *ret, struct api_problem *p)
{
    enum statement joined = is_own_end(end) ? JOINED_RELEASE : JOINED_END;
    bind_joined(store, joined, id, end->state);
    bool ok = run(store, joined, p);
    *ret = ok ? changes(store) : 0;
    return ok;
}

/* Ends one job, and those that joined it, as a part of a transaction. */
static bool
end_job(struct store *store, const char *id, enum api_job_state from,
        const struct store_end *end, int64_t now, struct store_ended *ret,
        struct api_problem *p)
{
    bool joined;
    bind_end(store, id, from, end, now);
    return write_end(store, ret, &joined, p) &&
           (!ret->was ||
            ((!joined || end_joined(store, id, end, &ret->joined, p)) &&
             add_unsynced(store, end, p) &&
             store_add_model_files(store, end->result_model, end->result_files, p)));
}

/* Cancels the targets that have not ended, as a part of a transaction. The jobs that joined them
   are counted in ret->joined. */
static bool
cancel_targets(struct store *store, const struct store_targets *targets,
               const struct store_end *end, int64_t now, struct store_ended *ret,
               struct api_problem *p)
{
    bool ok = true;
    for (size_t i = 0; ok && i < targets->n; i++) {
        const struct store_target_state *one = &targets->items[i];
        struct store_ended ended = {0};
        if (api_job_state_ended(one->state))
            continue;
        ok = end_job(store, one->id, one->state, end, now, &ended, p);
        ret->joined += ended.joined + 1;
    }
    return ok;
}

bool
store_job_end(struct store *store, const char *id, enum api_job_state from,
              const struct store_end *end, int64_t now, struct store_ended *ret,
              struct api_problem *p)
{
    struct store_ended ended = {0};
    struct store_targets targets = {.n = 0};
    lock_acquire(&store->lock);
    bool ok = run(store, BEGIN, p);
    if (ok) {
        ok = end->state != API_JOB_CANCELLED ||
             store_lock_targets(store, id, &targets, p);
        ok = ok && end_job(store, id, from, end, now, &ended, p) &&
             (!ended.was || cancel_targets(store, &targets, end, now, &ended, p));
        ok = finish(store, ok, p);
        free(targets.items);
    }
    lock_release(&store->lock);
    if (ok)
        *ret = ended;
    return ok;
}

bool
store_recover(struct store *store, int64_t *ret_n, struct api_problem *p)
{
    lock_acquire(&store->lock);
    store_bind_change(&store->statements[JOB_RECOVER], 1, API_JOB_RUNNING,
                      API_JOB_QUEUED);
    bool ok = run(store, JOB_RECOVER, p);
    if (ok)
        *ret_n = changes(store);
    ok = ok && run(store, FETCH_RECOVER, p) && run(store, DELIVERY_RECOVER, p);
    lock_release(&store->lock);
    return ok;
}

bool
store_renew(struct store *store, enum statement s, const char *id, int64_t fence,
            const struct store_progress *progress, bool *ret_held,
            struct api_problem *p)
{
    *ret_held = true;
    if (!store_is_shared(store))
        return true;
    lock_acquire(&store->lock);
    struct stmt *stmt = &store->statements[s];
    bind_all(stmt, 1, TEXT(id), INT(fence), INT(store->lease_ms));
    if (progress) {
        bind_all(stmt, 4, TEXT(*progress->stage ? progress->stage : NULL),
                 INT(progress->done), INT(progress->total), INT(progress->eta_s));
    }
    bool ok = run(store, s, p);
    if (ok)
        *ret_held = changes(store) == 1;
    lock_release(&store->lock);
    return ok;
}

bool
store_job_renew(struct store *store, const char *id, int64_t fence,
                const struct store_progress *progress, bool *ret_held,
                struct api_problem *p)
{
    return store_renew(store, JOB_RENEW, id, fence, progress, ret_held, p);
}

bool
store_job_list(struct store *store, const struct store_filter *filter,
               struct store_job **ret, size_t *ret_n, struct api_problem *p)
{
    size_t n = 0;
    bool any_state = filter->state == API_N_JOB_STATES;
    struct store_job *jobs = calloc((size_t)filter->limit, sizeof *jobs);
    if (!jobs)
        return api_problem_no_memory(p);
    lock_acquire(&store->lock);
    struct stmt *stmt =
        &store->statements[filter->by_time ? JOB_LIST_BY_TIME : JOB_LIST];
    bind_all(stmt, 1, INT(filter->before),
             TEXT(any_state ? NULL : api_job_state_name(filter->state)),
             TEXT(filter->label), INT(filter->limit));
    if (filter->by_time)
        bind_int(stmt, 5, filter->time);
    bool ok = true;
    int rc = DB_ROW;
    while (ok && (rc = step(stmt)) == DB_ROW)
        if ((ok = column_job(store, stmt, &jobs[n], p)))
            n++;
    ok = ok && (rc == DB_DONE || fail(store, p));
    done(stmt);
    lock_release(&store->lock);
    if (ok) {
        *ret = jobs;
        *ret_n = n;
        return true;
    }
    while (n)
        store_job_fini(&jobs[--n]);
    free(jobs);
    return false;
}

void
store_job_fini(struct store_job *job)
{
    char **const texts[] = {
        &job->model,     &job->calibration, &job->spec,         &job->labels,
        &job->report,    &job->summary,     &job->result_model, &job->frozen,
        &job->waits_for, &job->cached_from, &job->result_files, &job->effective_spec,
        &job->source,    &job->publish,     &job->deliveries,   &job->evaluation,
        &job->metric,    &job->target,      &job->targets};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        free(*texts[i]);
        *texts[i] = NULL;
    }
}
