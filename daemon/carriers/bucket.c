/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "carriers/bucket.h"
#include "base/clock.h"
#include "base/log.h"
#include "carriers/ask.h"
#include "carriers/remote_fds.h"
#include "carriers/string_list.h"
#include "library/bucket/cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCHEME "s3://"
#define PROBE_KEY "probe"
#define MIN_RATE 1024       /* bytes a second of an object */
#define TIMEOUT_S 10        /* seconds without a byte until a request has failed */
#define PROBE_MS 2000       /* between two questions whether the bucket is back */
#define PROBE_IDLE_MS 10000 /* until a bucket that nobody used is asked */
#define ATTEMPTS 3
#define PAUSE_MS 150 /* before the second attempt; twice as long before the third */

enum { N_THREADS = 4 };

/* A request. It lies on the stack of the thread that waits for it. */
struct task {
    struct message request;
    struct string_list
        answer; /* text of the answer; owned by the task when it is done */
    struct api_problem problem;
    bool ok, done;
    struct task *next;
};

struct bucket_pool {
    const struct settings *settings;
    struct bucket calls;
    struct remote remote; /* texts are owned by `url`, or those of the settings */
    char *url;
    struct lock lock;
    pthread_cond_t queued, ended;
    /* guarded by lock: */
    struct task *first, **last;
    bool closing;
    int64_t asked_at; /* steady clock of the last request; 0: none, so one is due */
    atomic_bool reachable;
    struct bucket_figures figures;
    size_t n;
    struct thread {
        struct bucket_pool *pool;
        struct carrier_work work;
        bool has_bucket; /* its process has opened the bucket */
        pthread_t id;
    } threads[N_THREADS];
};

/* --- the settings --------------------------------------------------------- */

static bool
is_bucket_url(const char *url)
{
    if (strncmp(url, SCHEME, strlen(SCHEME)) != 0)
        return false;
    const char *bucket = url + strlen(SCHEME);
    size_t len = strcspn(bucket, "/");
    return len >= 3 && len <= 63 &&
           strspn(bucket, "abcdefghijklmnopqrstuvwxyz0123456789.-") >= len &&
           !strstr(bucket, "..") && !strstr(bucket, "//") && strlen(url) < 512;
}

bool
bucket_check(const struct settings *s, char error[SETTINGS_ERROR])
{
    struct stat st;
    const char *key = NULL, *what = NULL;
    if (!*s->blobs_url)
        return true;
    if (!is_bucket_url(s->blobs_url))
        key = "url", what = "is not s3://BUCKET or s3://BUCKET/PREFIX";
    else if (*s->blobs_endpoint && strncmp(s->blobs_endpoint, "http://", 7) != 0 &&
             strncmp(s->blobs_endpoint, "https://", 8) != 0)
        key = "endpoint", what = "is not http://HOST:PORT or https://HOST:PORT";
    else if (strlen(s->blobs_endpoint) > 300)
        key = "endpoint", what = "is too long";
    else if (*s->blobs_credentials && stat(s->blobs_credentials, &st) != 0)
        key = "credentials", what = "names a file that cannot be read";
    else if (*s->blobs_credentials && (st.st_mode & 07))
        key = "credentials",
        what = "names a file that everybody can use; make its mode 0600";
    if (key)
        snprintf(error, SETTINGS_ERROR, "blobs.%s: %s", key, what);
    return !key;
}

/* Makes a remote of the settings. Without an endpoint it is Amazon's, whose host has the
   bucket's name. */
static bool
make_remote(struct bucket_pool *pool)
{
    static char kind[] = "s3", yes[] = "true", no[] = "false", none[] = "";
    const struct settings *s = pool->settings;
    const char *place = s->blobs_url + strlen(SCHEME);
    size_t len = strlen(s->blobs_endpoint);
    while (len && s->blobs_endpoint[len - 1] == '/')
        len--;
    int n = len ? asprintf(&pool->url, "%.*s/%s", (int)len, s->blobs_endpoint, place)
                : asprintf(&pool->url, "https://s3.%s.amazonaws.com/%s",
                           s->blobs_region, place);
    if (n < 0) {
        pool->url = NULL;
        return false;
    }
    pool->remote = (struct remote){.kind = kind,
                                   .url = pool->url,
                                   .region = s->blobs_region,
                                   .credentials = s->blobs_credentials,
                                   .ca = none,
                                   .secret = none,
                                   .secret_old = none,
                                   .path_style = len ? yes : no,
                                   .allow_private = yes,
                                   .timeout = TIMEOUT_S,
                                   .min_rate = MIN_RATE};
    snprintf(pool->remote.section.name, sizeof pool->remote.section.name, "blobs");
    return true;
}

/* --- the threads ---------------------------------------------------------- */

/* Has the thread's process open the bucket. */
static bool
open_process(struct thread *thread, struct api_problem *p)
{
    struct message request = {.type = MESSAGE_BUCKET}, answer = {0};
    if (thread->has_bucket && thread->work.process.socket >= 0)
        return true;
    thread->has_bucket = false;
    bool ok = remote_fds_open(&thread->pool->remote, &request.body.bucket.remote,
                              &request, p) &&
              ask_start(&thread->work, &request.body.bucket.remote, p) &&
              ask_carrier(&thread->work, &request, MESSAGE_RESULT, &answer, p);
    message_fini(&request);
    message_fini(&answer);
    if (!ok)
        ask_end(&thread->work);
    thread->has_bucket = ok;
    return ok;
}

/* Makes one attempt. A process that failed is replaced, so that changed credentials are
   read. */
static bool
attempt(struct thread *thread, struct task *task)
{
    struct message answer = {0};
    task->problem = (struct api_problem){0};
    bool ok = open_process(thread, &task->problem) &&
              ask_carrier(&thread->work, &task->request, MESSAGE_RESULT, &answer,
                          &task->problem);
    if (ok) {
        task->answer = (struct string_list){answer.text, answer.text_len, 0};
        answer.text = NULL;
    }
    message_fini(&answer);
    if (!ok && task->problem.code != API_REMOTE_NOT_FOUND) {
        ask_end(&thread->work);
        thread->has_bucket = false;
    }
    return ok;
}

/* Returns whether the bucket has answered, also if it was that it has not the object. */
static bool
is_answer(const struct task *task)
{
    return task->ok || (task->problem.code == API_REMOTE_NOT_FOUND &&
                        task->request.body.object.op == MESSAGE_OBJECT_GET);
}

static bool
is_closing(struct bucket_pool *pool)
{
    lock_acquire(&pool->lock);
    bool closing = pool->closing;
    lock_release(&pool->lock);
    return closing;
}

/* Notes whether the bucket answers, and logs a change. */
static void
note_answer(struct bucket_pool *pool, const struct task *task)
{
    char quoted[LOG_QUOTED];
    bool answered = is_answer(task);
    if (atomic_exchange(&pool->reachable, answered) == answered)
        return;
    if (answered)
        log_info("bucket_back", "url=%s", pool->settings->blobs_url);
    else
        log_error("bucket_gone", "url=%s detail=%s", pool->settings->blobs_url,
                  log_quote(quoted, task->problem.detail));
}

static void
do_task(struct thread *thread, struct task *task)
{
    struct bucket_pool *pool = thread->pool;
    struct message *request = &task->request;
    /* A request that got no answer may still be done. One with a deadline is not repeated, so
       that its success says that no other one is under way. */
    int attempts = request->body.object.op == MESSAGE_OBJECT_REMOVE_BY ? 1 : ATTEMPTS;
    for (int i = 0; i < attempts; i++) {
        const struct timespec pause = {0, (int64_t)i * PAUSE_MS * 1000000};
        if (i)
            nanosleep(&pause, NULL);
        /* The bytes of an attempt that broke go. */
        if (i && request->body.object.op == MESSAGE_OBJECT_GET &&
            ftruncate(request->fds[0], 0) != 0)
            break;
        int64_t began = clock_steady_ms();
        task->ok = attempt(thread, task);
        /* Where the bucket was gone already, or does not answer, one attempt is enough. */
        if (is_answer(task) || !atomic_load(&pool->reachable) || is_closing(pool) ||
            clock_steady_ms() - began > TIMEOUT_S * 1000 / 2)
            break;
    }
    note_answer(pool, task);
}

/* Asks whether the bucket answers, if nobody else has asked for a while. */
static void
probe(struct thread *thread)
{
    struct task task = {
        .request = {.type = MESSAGE_OBJECT, .body.object.op = MESSAGE_OBJECT_FIND}};
    snprintf(task.request.body.object.key, sizeof task.request.body.object.key,
             PROBE_KEY);
    do_task(thread, &task);
    string_list_fini(&task.answer);
}

/* Returns when the next probe is due. The caller holds the lock. */
static int64_t
probe_due(const struct bucket_pool *pool)
{
    lock_assert_held(&pool->lock);
    return pool->asked_at + (atomic_load(&pool->reachable) ? PROBE_IDLE_MS : PROBE_MS);
}

static struct task *
take_task(struct bucket_pool *pool)
{
    lock_assert_held(&pool->lock);
    struct task *task = pool->first;
    if (task) {
        pool->first = task->next;
        if (!pool->first)
            pool->last = &pool->first;
        pool->asked_at = clock_steady_ms();
    }
    return task;
}

static void *
run(void *arg)
{
    struct thread *thread = arg;
    struct bucket_pool *pool = thread->pool;
    lock_acquire(&pool->lock);
    while (!pool->closing) {
        struct task *task = take_task(pool);
        bool probes = !task && clock_steady_ms() >= probe_due(pool);
        if (probes)
            pool->asked_at = clock_steady_ms();
        if (!task && !probes) {
            lock_wait_until(&pool->lock, &pool->queued, probe_due(pool));
            continue;
        }
        lock_release(&pool->lock);
        if (task)
            do_task(thread, task);
        else
            probe(thread);
        lock_acquire(&pool->lock);
        if (task) {
            task->done = true;
            pthread_cond_broadcast(&pool->ended);
        }
    }
    lock_release(&pool->lock);
    ask_end(&thread->work);
    return NULL;
}

/* --- the calls ------------------------------------------------------------ */

/* Makes the problem of a request one of the service's own. */
static bool
fail(const struct task *task, struct api_problem *p)
{
    const struct api_problem *why = &task->problem;
    if (why->code == API_REMOTE_NOT_FOUND &&
        task->request.body.object.op == MESSAGE_OBJECT_GET)
        return api_fail(p, API_NOT_FOUND, "the bucket has no object %.150s",
                        task->request.body.object.key);
    if (why->code == API_IO || why->code == API_NO_MEMORY) {
        if (p && !p->set)
            *p = *why;
        return false;
    }
    return api_fail(p, API_UNAVAILABLE,
                    "the bucket of stored files cannot be used now: %.300s",
                    why->set ? why->detail : "the daemon is stopping");
}

/* Counts a request that has ended. */
static void
count(struct bucket_pool *pool, const struct task *task, int64_t us)
{
    static const enum bucket_op ops[] = {[MESSAGE_OBJECT_PUT] = BUCKET_PUT,
                                         [MESSAGE_OBJECT_GET] = BUCKET_GET,
                                         [MESSAGE_OBJECT_FIND] = BUCKET_FIND,
                                         [MESSAGE_OBJECT_REMOVE] = BUCKET_REMOVE,
                                         [MESSAGE_OBJECT_REMOVE_BY] = BUCKET_REMOVE,
                                         [MESSAGE_OBJECT_LIST] = BUCKET_LIST};
    enum bucket_op op = ops[task->request.body.object.op];
    pool->figures.requests[op]++;
    pool->figures.failed[op] += !is_answer(task);
    pool->figures.us[op] += us;
}

/* Waits until a thread has done the request. On success the caller frees the answer. */
static bool
ask(struct bucket_pool *pool, struct task *task, struct api_problem *p)
{
    lock_assert_none(LOCK_LIBRARY);
    lock_assert_none(LOCK_STORE);
    int64_t began = clock_steady_us();
    lock_acquire(&pool->lock);
    if (!pool->closing) {
        *pool->last = task;
        pool->last = &task->next;
        pthread_cond_signal(&pool->queued);
        while (!task->done)
            lock_wait(&pool->lock, &pool->ended);
    }
    lock_release(&pool->lock);
    count(pool, task, clock_steady_us() - began);
    return task->ok || fail(task, p);
}

static struct task
make_task(enum message_object_op op, const char *key)
{
    struct task task = {.request = {.type = MESSAGE_OBJECT, .body.object.op = op}};
    snprintf(task.request.body.object.key, sizeof task.request.body.object.key, "%s",
             key);
    return task;
}

/* Asks and reads whether the object was there. */
static bool
ask_presence(struct bucket_pool *pool, struct task *task, bool *ret_there,
             struct api_problem *p)
{
    long long there = 0;
    bool ok = ask(pool, task, p);
    if (ok)
        string_list_next_number(&task->answer, &there);
    *ret_there = there;
    string_list_fini(&task->answer);
    return ok;
}

static void
count_bytes(int fd, atomic_int_fast64_t *sum)
{
    struct stat st;
    if (fstat(fd, &st) == 0)
        *sum += st.st_size;
}

static bool
put(void *arg, const char *key, int fd, const char *digest, bool *ret_was_there,
    struct api_problem *p)
{
    struct task task = make_task(MESSAGE_OBJECT_PUT, key);
    snprintf(task.request.body.object.digest, DIGEST_SIZE, "%s", digest);
    task.request.fds[task.request.n_fds++] = fd;
    bool ok = ask_presence(arg, &task, ret_was_there, p);
    if (ok && !*ret_was_there)
        count_bytes(fd, &((struct bucket_pool *)arg)->figures.sent);
    return ok;
}

static bool
get(void *arg, const char *key, int fd, struct api_problem *p)
{
    struct task task = make_task(MESSAGE_OBJECT_GET, key);
    bool there;
    task.request.fds[task.request.n_fds++] = fd;
    bool ok = ask_presence(arg, &task, &there, p);
    if (ok)
        count_bytes(fd, &((struct bucket_pool *)arg)->figures.received);
    return ok;
}

static bool
find(void *arg, const char *key, bool *ret_there, struct api_problem *p)
{
    struct task task = make_task(MESSAGE_OBJECT_FIND, key);
    return ask_presence(arg, &task, ret_there, p);
}

static bool
remove_object(void *arg, const char *key, struct api_problem *p)
{
    struct task task = make_task(MESSAGE_OBJECT_REMOVE, key);
    bool there;
    return ask_presence(arg, &task, &there, p);
}

static bool
remove_by(void *arg, const char *key, const struct bucket_while *when,
          bool *ret_in_time, struct api_problem *p)
{
    struct task task = make_task(MESSAGE_OBJECT_REMOVE_BY, key);
    task.request.body.object.since = when->since;
    task.request.body.object.seconds = when->seconds;
    return ask_presence(arg, &task, ret_in_time, p);
}

static bool
list(void *arg, const char *prefix, char token[BUCKET_TOKEN], bucket_visit_fn visit,
     void *visit_arg, int64_t *ret_now, struct api_problem *p)
{
    struct task task = make_task(MESSAGE_OBJECT_LIST, prefix);
    task.request.text = token;
    task.request.text_len = strlen(token);
    bool ok = ask(arg, &task, p);
    const char *next = ok ? string_list_next(&task.answer) : NULL;
    long long now = 0, size = 0, modified = 0;
    if (ok && (!next || !string_list_next_number(&task.answer, &now)))
        ok = api_fail(p, API_INTERNAL, "a carrier's answer cannot be read");
    for (const char *key; ok && (key = string_list_next(&task.answer));) {
        struct bucket_object object = {.key = key};
        ok = (string_list_next_number(&task.answer, &size) &&
              string_list_next_number(&task.answer, &modified)) ||
             api_fail(p, API_INTERNAL, "a carrier's answer cannot be read");
        object.size = size;
        object.modified = modified;
        if (ok)
            visit(visit_arg, &object);
    }
    if (ok)
        snprintf(token, BUCKET_TOKEN, "%s", next);
    *ret_now = now;
    string_list_fini(&task.answer);
    return ok;
}

static bool
is_reachable(void *arg)
{
    struct bucket_pool *pool = arg;
    return atomic_load(&pool->reachable);
}

/* --- begin and end -------------------------------------------------------- */

static bool
start_threads(struct bucket_pool *pool, struct api_problem *p)
{
    int rc = 0;
    while (!rc && pool->n < N_THREADS) {
        struct thread *thread = &pool->threads[pool->n];
        thread->pool = pool;
        ask_init(&thread->work, pool->settings, NULL);
        rc = pthread_create(&thread->id, NULL, run, thread);
        if (rc)
            ask_fini(&thread->work);
        else
            pool->n++;
    }
    return !rc || api_fail(p, API_IO, "starting a thread: %s", strerror(rc));
}

bool
bucket_open(const struct settings *settings, struct bucket_pool **ret,
            struct api_problem *p)
{
    *ret = NULL;
    if (!*settings->blobs_url)
        return true;
    struct bucket_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return api_problem_no_memory(p);
    pool->settings = settings;
    pool->last = &pool->first;
    pool->reachable = true;
    lock_init(&pool->lock, LOCK_BUCKET);
    lock_cond_init(&pool->queued);
    lock_cond_init(&pool->ended);
    pool->calls =
        (struct bucket){put,  get,          find, remove_object, remove_by,
                        list, is_reachable, pool, NULL,          &pool->figures};
    pool->calls.cache = cache_new(&settings->blobs_cache);
    bool ok = ((pool->calls.cache && make_remote(pool)) || api_problem_no_memory(p)) &&
              start_threads(pool, p);
    if (!ok)
        bucket_close(&pool);
    *ret = pool;
    return ok;
}

const struct bucket *
bucket_calls(struct bucket_pool *pool)
{
    return pool ? &pool->calls : NULL;
}

void
bucket_stop(struct bucket_pool *pool)
{
    if (!pool)
        return;
    lock_acquire(&pool->lock);
    pool->closing = true;
    for (struct task *task; (task = take_task(pool));)
        task->done = true;
    pthread_cond_broadcast(&pool->ended);
    pthread_cond_broadcast(&pool->queued);
    lock_release(&pool->lock);
}

void
bucket_close(struct bucket_pool **pool)
{
    struct bucket_pool *old = *pool;
    if (!old)
        return;
    bucket_stop(old);
    for (size_t i = 0; i < old->n; i++) {
        pthread_join(old->threads[i].id, NULL);
        ask_fini(&old->threads[i].work);
    }
    cache_free(&old->calls.cache);
    pthread_cond_destroy(&old->queued);
    pthread_cond_destroy(&old->ended);
    lock_fini(&old->lock);
    free(old->url);
    free(old);
    *pool = NULL;
}
