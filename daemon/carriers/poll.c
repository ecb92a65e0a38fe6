/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "carriers/pieces.h"
#include "base/clock.h"
#include "base/log.h"
#include "carriers/remote_fds.h"
#include "carriers/string_list.h"
#include "handlers/hooks.h"
#include "store/hook_versions.h"
#include "tenants/tenants.h"
#include "watch/metrics.h"
#include "api/grow.h"

#include <stdlib.h>
#include <string.h>

/* A version may become visible this much later than its time of creation says. */
#define OVERLAP_MS (10 * 60 * 1000)
#define MOST_ASKED_S 3600 /* a remote cannot ask for a longer wait */
#define MOST_POLLS 4      /* remotes that are asked at the same time */

METRIC_WORDS(how_labels, "how", "answered", "failed");
METRIC(polls, COUNTER, "qdqd_hook_polls_total", &how_labels, ONE,
       "Questions to remotes for new versions of models, by hooks.");

struct state {
    char name[SECTION_NAME];
    char asks[SECTION_NAME]; /* the remote that is being asked; "": none */
    int64_t due;             /* steady clock, in ms */
    int64_t since;           /* the remote's clock, in ms: older versions are known */
};

struct polls {
    struct lock lock;
    /* guarded by lock: */
    struct state *states;
    size_t n;
};

struct polls *
polls_new(void)
{
    struct polls *polls = calloc(1, sizeof *polls);
    if (polls)
        lock_init(&polls->lock, LOCK_POLLS);
    return polls;
}

void
polls_free(struct polls **polls)
{
    if (!*polls)
        return;
    lock_fini(&(*polls)->lock);
    free((*polls)->states);
    free(*polls);
    *polls = NULL;
}

/* --- when ------------------------------------------------------------------ */

/* Returns the state of a hook; a new one is due at once. NULL when out of memory. The caller
   holds the lock. */
static struct state *
state_of(struct polls *polls, const char *name)
{
    lock_assert_held(&polls->lock);
    for (size_t i = 0; i < polls->n; i++)
        if (strcmp(polls->states[i].name, name) == 0)
            return &polls->states[i];
    struct state *grown = api_grow(polls->states, polls->n, 1, sizeof *grown);
    if (!grown)
        return NULL;
    polls->states = grown;
    grown[polls->n] = (struct state){.due = clock_steady_ms()};
    snprintf(grown[polls->n].name, SECTION_NAME, "%s", name);
    return &grown[polls->n++];
}

/* Returns whether the remote may be asked now: not while it is asked for another hook, because
   one that is slow would hold more threads then. */
static bool
may_ask(const struct polls *polls, const char *remote)
{
    size_t asked = 0;
    for (size_t i = 0; i < polls->n; i++) {
        if (strcmp(polls->states[i].asks, remote) == 0)
            return false;
        asked += *polls->states[i].asks != '\0';
    }
    return asked < MOST_POLLS;
}

/* Claims the hook that is due first. NULL: none is; *ret_ms is then the time until one is, -1:
   never, or not before another poll has ended. */
static const struct hook *
claim(struct polls *polls, const struct remotes *remotes, int64_t *ret_since,
      int64_t *ret_ms)
{
    const struct hook *first = NULL;
    int64_t now = clock_steady_ms(), due = INT64_MAX;
    lock_acquire(&polls->lock);
    for (const struct hook *hook = hooks_first(remotes); hook;
         hook = hooks_next(hook)) {
        const struct state *state =
            hook->poll ? state_of(polls, hook->section.name) : NULL;
        if (!state || state->due >= due || !may_ask(polls, hook->remote))
            continue;
        due = state->due;
        *ret_since = state->since;
        first = hook;
    }
    *ret_ms = !first ? -1 : due > now ? due - now : 0;
    if (*ret_ms)
        first = NULL;
    if (first)
        snprintf(state_of(polls, first->section.name)->asks, SECTION_NAME, "%s",
                 first->remote);
    lock_release(&polls->lock);
    return first;
}

/* Sets when the hook asks next. `since` is the time of the newest version; -1: it was not
   found. */
static void
release(struct polls *polls, const struct hook *hook, int64_t since,
        int64_t retry_after)
{
    int64_t asked = retry_after < MOST_ASKED_S ? retry_after : MOST_ASKED_S;
    int64_t seconds = hook->poll > asked ? hook->poll : asked;
    lock_acquire(&polls->lock);
    struct state *state = state_of(polls, hook->section.name);
    if (state && since >= 0)
        state->since = since;
    if (state)
        state->due = clock_steady_ms() + seconds * 1000;
    if (state)
        state->asks[0] = '\0';
    lock_release(&polls->lock);
}

/* --- what is new ----------------------------------------------------------- */

/* A version that the remote has. Texts are borrowed from the answer. */
struct found {
    const char *name, *version;
    long long created, is_ours;
    int64_t number;
};

/* Sorts by name, and versions of a model from the lowest on. */
static int
by_number(const void *a, const void *b)
{
    const struct found *one = a, *other = b;
    int names = strcmp(one->name, other->name);
    return names ? names
                 : (one->number > other->number) - (one->number < other->number);
}

/* Reads the answer. The caller frees the list. */
static struct found *
read_answer(const struct message *answer, size_t *ret_n, struct api_problem *p)
{
    struct string_list strings = {answer->text, answer->text_len, 0};
    struct found *list = NULL, one;
    size_t n = 0;
    while ((one.name = string_list_next(&strings)) &&
           (one.version = string_list_next(&strings)) &&
           string_list_next_number(&strings, &one.created) &&
           string_list_next_number(&strings, &one.is_ours)) {
        struct found *grown = api_grow(list, n, 1, sizeof *list);
        if (!grown) {
            free(list);
            api_problem_no_memory(p);
            return NULL;
        }
        one.number = strtoll(one.version, NULL, 10);
        list = grown;
        list[n++] = one;
    }
    if (n)
        qsort(list, n, sizeof *list, by_number);
    *ret_n = n;
    return list ? list : calloc(1, sizeof *list);
}

/* Leaves a version out whose names make no ref, and says so once. */
static bool
leave_out(const struct service *service, const struct hook *hook,
          const struct hook_news *news, struct api_problem *p)
{
    char quoted[LOG_QUOTED], reason[LOG_QUOTED];
    const struct api_problem why = *p;
    bool is_new;
    *p = (struct api_problem){0};
    if (!hook_leave_out(service, hook, news, &is_new, p))
        return false;
    if (is_new)
        log_error("hook_version_left_out",
                  "hook=%s model=%s version=%s code=%s detail=%s", hook->section.name,
                  log_quote(quoted, news->name), news->version,
                  api_problem_slug(why.code), log_quote(reason, why.detail));
    return true;
}

/* Submits the job of a version, unless it is known. */
static bool
follow(struct tenants *tenants, const struct hook *hook, const struct found *found,
       struct api_problem *p)
{
    char id[JOB_ID_SIZE], quoted[LOG_QUOTED];
    const struct service *service;
    const struct hook_news news = {.name = found->name, .version = found->version};
    bool ok = hook_submit(tenants, hook, &news, id, &service, p);
    if (!ok && p->code == API_BAD_REQUEST)
        return leave_out(service, hook, &news, p);
    if (ok && *id)
        log_info("hook_polled", "hook=%s model=%s version=%s job=%s",
                 hook->section.name, log_quote(quoted, found->name), found->version,
                 id);
    return ok;
}

/* Follows the versions of one model, of which the list has `n`. Where the hook has seen none
   of the model, only the newest counts. */
static bool
follow_model(struct tenants *tenants, struct carrier_work *work,
             const struct hook *hook, const struct found *list, size_t n,
             struct api_problem *p)
{
    int64_t first;
    bool ok = store_hook_version_first(library_store(work->service->library),
                                       hook->section.name, list->name, &first, p);
    while (n && first < 0 && list[n - 1].is_ours)
        n--;
    for (size_t i = first < 0 && n ? n - 1 : 0; ok && i < n; i++)
        ok = list[i].is_ours || list[i].number < first ||
             follow(tenants, hook, &list[i], p);
    return ok;
}

/* Asks the remote for versions that were created since then. */
static bool
ask_remote(struct tenants *tenants, struct carrier_work *work, const struct hook *hook,
           int64_t since, struct message *ret, struct api_problem *p)
{
    struct message request = {.type = MESSAGE_NEWS, .body.news.since = since};
    struct remotes *remotes = tenants_remotes(tenants);
    const struct remote *remote = remotes_find(remotes, hook->remote);
    bool ok = remote || api_fail(p, API_REMOTE_UNKNOWN,
                                 "there is no remote %s any more", hook->remote);
    ok = ok && remote_fds_open(remote, &request.body.news.remote, &request, p);
    remotes_release(&remotes);
    if (ok) {
        request.text = hook->models;
        request.text_len = strlen(hook->models);
        ok = ask_start(work, &request.body.news.remote, p) &&
             ask_carrier(work, &request, MESSAGE_RESULT, ret, p);
        request.text = NULL;
    }
    ask_end(work);
    message_fini(&request);
    return ok;
}

/* Returns the time from which on versions are asked for once this one is known. A clock that
   goes wrong may say that it comes from the future, where no later one would be found. */
static int64_t
since_version(const struct found *found)
{
    int64_t now = clock_wall_ms();
    return (found->created < now ? found->created : now) - OVERLAP_MS;
}

/* Asks for one hook. *since becomes the time from which the next question asks. A model that
   cannot be followed now does not keep the others from it; the first problem is told. */
static bool
ask_and_follow(struct tenants *tenants, struct carrier_work *work,
               const struct hook *hook, int64_t *since, struct api_problem *p)
{
    struct message answer = {0};
    struct found *list = NULL;
    size_t n = 0, end;
    bool ok = tenants_get(tenants, hook->tenant, true, &work->service, p) &&
              ask_remote(tenants, work, hook, *since, &answer, p) &&
              (list = read_answer(&answer, &n, p));
    for (size_t i = 0; list && i < n; i = end) {
        struct api_problem problem = {0};
        for (end = i; end < n && !strcmp(list[end].name, list[i].name); end++)
            if (since_version(&list[end]) > *since)
                *since = since_version(&list[end]);
        if (!follow_model(tenants, work, hook, list + i, end - i, &problem) && ok) {
            *p = problem;
            ok = false;
        }
    }
    free(list);
    message_fini(&answer);
    return ok;
}

bool
poll_claim(struct polls *polls, struct tenants *tenants, struct poll *ret,
           int64_t *ret_ms)
{
    ret->remotes = tenants_remotes(tenants);
    ret->since = 0;
    ret->hook = claim(polls, ret->remotes, &ret->since, ret_ms);
    if (!ret->hook)
        remotes_release(&ret->remotes);
    return ret->hook;
}

void
poll_hook(struct polls *polls, struct tenants *tenants, struct carrier_work *work,
          struct poll *poll)
{
    const struct hook *hook = poll->hook;
    struct api_problem problem = {0};
    const struct remote *remote = remotes_find(poll->remotes, hook->remote);
    char host[REMOTE_HOST] = "-", quoted[LOG_QUOTED];
    bool ok = ask_and_follow(tenants, work, hook, &poll->since, &problem);
    bool stopped = !ok && problem.code == API_CANCELLED;
    metrics_add(tenants_metrics(tenants), &metric_polls, !ok, !stopped);
    if (remote)
        remote_host(remote, host);
    if (!ok && !stopped)
        log_error("hook_poll_failed", "hook=%s remote=%s host=%s code=%s detail=%s",
                  hook->section.name, hook->remote, host,
                  api_problem_slug(problem.code), log_quote(quoted, problem.detail));
    release(polls, hook, ok ? poll->since : -1, work->retry_after);
    remotes_release(&poll->remotes);
    poll->hook = NULL;
}
