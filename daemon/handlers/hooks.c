/* SPDX-License-Identifier: Apache-2.0 */
/* The handler of messages from registries, and the jobs that hooks make. */
#include "config.h"
#include "handlers/hooks.h"
#include "base/clock.h"
#include "base/log.h"
#include "handlers/handlers.h"
#include "store/hook_versions.h"
#include "tenants/tenants.h"
#include "tenants/tokens.h"
#include "watch/metrics.h"
#include "api/signature.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SECRET (64u << 10)
#define MOST_SPEC (4u << 20)
/* The keys of hooks' jobs begin with this; no Idempotency-Key of a client can. */
#define KEY "\001hook"
#define POLLED "poll" /* the key of a version that a poll saw first */
#define HOOK_JOB_KEY (HOOK_VERSION_KEY + API_MAX_REF)

enum how { ACCEPTED, IGNORED, REFUSED, FAILED };

METRIC_WORDS(how_labels, "how", [ACCEPTED] = "accepted", [IGNORED] = "ignored",
             [REFUSED] = "refused", [FAILED] = "failed");
METRIC(
    messages, COUNTER, "qdqd_hook_messages_total", &how_labels, ONE,
    "Messages for hooks: accepted with a job, ignored, refused for their signature or "
    "the name of the hook, or failed.");

/* --- the job --------------------------------------------------------------- */

/* Reads a file of the operator's as text, which the caller frees. NULL when it cannot be
   read, or is too large. */
static char *
read_text(const char *path, size_t most, size_t *ret_len)
{
    FILE *file = fopen(path, "re");
    char *text = file ? calloc(1, most + 2) : NULL;
    if (text) {
        *ret_len = fread(text, 1, most + 1, file);
        if (ferror(file) || *ret_len > most) {
            free(text);
            text = NULL;
        }
    }
    if (file)
        fclose(file);
    return text;
}

/* The request for a job with its spec. */
struct asked {
    struct api_job_request job;
    struct asked_spec spec;
};

/* Returns the ref of a version in the notation of a remote's kind, with words in braces for
   its parts. */
static const char *
ref_of(const struct remote *remote)
{
    return !strcmp(remote->kind, "mlflow") ? "models:/{name}/{version}"
           : !strcmp(remote->kind, "oci")  ? "{name}:{version}"
                                           : "{name}/{version}/";
}

static bool
read_spec(const struct hook *hook, struct asked *asked, struct api_problem *p)
{
    size_t len = 0;
    if (*hook->spec && !(asked->job.spec = read_text(hook->spec, MOST_SPEC, &len)))
        return api_fail(p, API_UNAVAILABLE, "the spec of hook %s cannot be read",
                        hook->section.name);
    return asked_spec_decode(asked->job.spec, len, &asked->spec, p);
}

/* Makes the request for the job of a version. */
static bool
ask(struct tenants *tenants, const struct hook *hook, const struct hook_news *news,
    struct asked *ret, struct api_problem *p)
{
    struct remotes *remotes = tenants_remotes(tenants);
    const struct remote *remote = remotes_find(remotes, hook->remote);
    bool ok = remote || api_fail(p, API_REMOTE_UNKNOWN,
                                 "there is no remote %s any more", hook->remote);
    if (ok) {
        const struct api_rule rule = {.hook = hook->section.name,
                                      .remote = hook->remote,
                                      .model = ref_of(remote),
                                      .publish = hook->publish,
                                      .calibration = hook->calibration};
        char *text = api_rule_encode(&rule, news->name, news->version);
        ok = (text || api_problem_no_memory(p)) &&
             api_job_request_decode(text, strlen(text), &ret->job, p);
        free(text);
    }
    remotes_release(&remotes);
    return ok && read_spec(hook, ret, p);
}

static bool
submit(const struct service *service, struct asked *asked, const char *key,
       char id[JOB_ID_SIZE], struct api_problem *p)
{
    const struct api_job_request *job = &asked->job;
    char digest[DIGEST_SIZE], none[] = "";
    char *source = api_source_encode(&job->model_place, &job->calibration_place);
    const struct store_asking asking = {.key = key, .asked = digest};
    const struct store_job row = {.model = none,
                                  .calibration = job->calibration,
                                  .spec = job->spec,
                                  .effective_spec = asked->spec.effective,
                                  .labels = job->labels,
                                  .source = source,
                                  .publish = job->publish,
                                  .fetching = true};
    /* The operator's spec may change between two attempts of one message, the version not. */
    bool ok = (source &&
               digest_of(job->model_place.ref, strlen(job->model_place.ref), digest)) ||
              api_problem_no_memory(p);
    ok = ok && has_room_for_texts(service, &row, p) &&
         jobs_submit(service->jobs, &row, &asking, id, p);
    free(source);
    return ok;
}

/* Returns whether the version is the news' to make a job of. The key that it has is that of a
   poll, or that of the message that was first. A poll also takes a version whose message was
   refused, for example because the queue was full. */
static bool
is_ours(const struct hook_news *news, const char *key, bool is_done)
{
    return news->message ? strcmp(key, POLLED) != 0 : !is_done;
}

/* Writes the key of the job. A poll that takes a message's version over has that message's key,
   so that both make one job even at the same time. */
static void
write_key(char key[HOOK_JOB_KEY], const struct hook *hook, const struct hook_news *news,
          const char *first, const char *ref)
{
    const char *message = news->message                ? news->message
                          : strcmp(first, POLLED) == 0 ? NULL
                                                       : first;
    snprintf(key, HOOK_JOB_KEY, KEY " %s %s %s", hook->section.name,
             message ? "message" : POLLED, message ? message : ref);
}

bool
hook_submit(struct tenants *tenants, const struct hook *hook,
            const struct hook_news *news, char id[JOB_ID_SIZE],
            const struct service **ret_service, struct api_problem *p)
{
    struct asked asked = {0};
    char key[HOOK_JOB_KEY], first[HOOK_VERSION_KEY];
    const struct store_hook_version seen = {hook->section.name, news->name,
                                            news->version};
    bool is_done = false;
    id[0] = '\0';
    bool ok = tenants_get(tenants, hook->tenant, true, ret_service, p) &&
              ask(tenants, hook, news, &asked, p) &&
              places_check(*ret_service, TOKEN_ADMIN, &asked.job, p);
    struct store *store = ok ? library_store((*ret_service)->library) : NULL;
    ok = ok &&
         store_hook_version_add(store, &seen, news->message ? news->message : POLLED,
                                first, &is_done, p);
    if (ok && is_ours(news, first, is_done)) {
        write_key(key, hook, news, first, asked.job.model_place.ref);
        ok = submit(*ret_service, &asked, key, id, p) &&
             store_hook_version_done(store, &seen, p);
    }
    api_job_request_fini(&asked.job);
    asked_spec_fini(&asked.spec);
    return ok;
}

bool
hook_leave_out(const struct service *service, const struct hook *hook,
               const struct hook_news *news, bool *ret_new, struct api_problem *p)
{
    char first[HOOK_VERSION_KEY];
    const struct store_hook_version seen = {hook->section.name, news->name,
                                            news->version};
    struct store *store = library_store(service->library);
    bool is_done;
    bool ok = store_hook_version_add(store, &seen, POLLED, first, &is_done, p) &&
              (is_done || store_hook_version_done(store, &seen, p));
    *ret_new = ok && !is_done;
    return ok;
}

/* --- the message ----------------------------------------------------------- */

/* Checks the signature. For a hook that there is not, the same is done with a secret that
   nobody knows. */
static bool
is_signed(const struct request *request, const struct hook *hook)
{
    static const char nobody[] =
        "whsec_bm9ib2R5IGtub3dzIHRoaXMgb25lLCBidXQgaXQgaXMgb25l";
    bool is_mlflow = hook && strcmp(hook->signature, "mlflow") == 0;
    enum api_signature_form form =
        is_mlflow ? API_SIGNATURE_MLFLOW : API_SIGNATURE_STANDARD;
    const struct api_signature_headers *headers = &api_signature_headers[form];
    const struct api_signed_message message = {
        .id = request_header(request, headers->id),
        .timestamp = request_header(request, headers->timestamp),
        .signature = request_header(request, headers->signature),
        .body = request->body.json.data ? request->body.json.data : "",
        .body_len = request->body.json.len};
    size_t len = 0;
    char *secret =
        hook && *hook->secret ? read_text(hook->secret, MOST_SECRET, &len) : NULL;
    bool ok = api_signature_is_valid(form, secret ? secret : nobody, &message,
                                     clock_wall_ms() / 1000);
    if (!secret)
        return false;
    digest_cleanse(secret, len);
    free(secret);
    return ok;
}

/* Shows the job to the registry that told of the version. */
static bool
reply_job(struct request *request, const struct service *service, const char *id,
          struct api_problem *p)
{
    struct job_view view;
    if (!jobs_get(service->jobs, id, &view, p))
        return false;
    struct api_job job = show_job(&view);
    job.omits = job.omits_spec || job.omits_labels;
    reply_json(request, 202, api_job_encode(&job));
    reply_header(request, "Location", "/v1/jobs/%s", id);
    job_view_fini(&view);
    return true;
}

/* Does what the hook's rule says about a message that is signed. */
static enum how
follow(struct request *request, const struct hook *hook, struct api_problem *p)
{
    const struct service *service = request->service;
    const struct body_text *body = &request->body.json;
    struct api_news news;
    char id[JOB_ID_SIZE] = "", quoted[LOG_QUOTED];
    bool any = false;
    bool is_mlflow = strcmp(hook->signature, "mlflow") == 0;
    if (!api_news_decode(body->data ? body->data : "", body->len, &news, &any, p))
        return FAILED;
    bool is_wanted = any && !news.is_ours && api_rule_matches(hook->models, news.name);
    const struct hook_news told = {
        news.name, news.version,
        request_header(request,
                       api_signature_headers[is_mlflow ? API_SIGNATURE_MLFLOW
                                                       : API_SIGNATURE_STANDARD]
                           .id)};
    bool ok =
        !is_wanted || (hook_submit(service->tenants, hook, &told, id, &service, p) &&
                       (!*id || reply_job(request, service, id, p)));
    if (ok && *id)
        log_info("hook_told", "hook=%s model=%s job=%s", hook->section.name,
                 log_quote(quoted, news.name), id);
    else if (ok)
        reply_json(request, 200, api_status_encode("ignored"));
    api_news_fini(&news);
    return !ok ? FAILED : *id ? ACCEPTED : IGNORED;
}

void
handle_hook_post(struct request *request)
{
    struct remotes *remotes = tenants_remotes(request->service->tenants);
    const struct hook *hook = hooks_find(remotes, request->match.id);
    enum how how = REFUSED;
    if (!is_signed(request, hook))
        api_fail(&request->problem, API_SIGNATURE_INVALID,
                 "there is no such hook, or the message is not signed for it");
    else
        how = follow(request, hook, &request->problem);
    metrics_add(request->service->metrics, &metric_messages, how, 1);
    remotes_release(&remotes);
}
