/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "carriers/pieces.h"
#include "base/budget.h"
#include "base/clock.h"
#include "base/log.h"
#include "carriers/remote_fds.h"
#include "carriers/string_list.h"
#include "handlers/handlers.h"
#include "jobs/lineage.h"
#include "tenants/tenants.h"
#include "watch/metrics.h"
#include "workers/signer.h"
#include "api/report.h"
#include "remote/remote.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_ATTEMPTS 10 /* over about ten minutes */
#define MOST_FIGURES 200 /* of a report that are published */

METRIC_WORDS(delivery_labels, "how", [STORE_PENDING] = "retried",
             [STORE_DELIVERED] = "delivered", [STORE_UNDELIVERED] = "failed");
METRIC(
    deliveries, COUNTER, "qdqd_deliveries_total", &delivery_labels, ONE,
    "Attempts to deliver results and events to remotes: delivered, failed for good, or "
    "to be tried again.");

/* --- a publication --------------------------------------------------------- */

/* A publication while its message is made. The message owns its descriptors. */
struct parcel {
    struct library *library;
    const struct store_job *job;
    struct message *message;
    struct string_list list;
    struct spool *page;                 /* the report as a page */
    struct spool *documents[LINEAGE_N]; /* what proves where it came from */
    uint64_t reserved; /* bytes of the budget for what is made of the report */
    size_t n_figures;
};

static bool
add_file(struct parcel *parcel, enum qdqr_role role, const char *digest,
         const char *name, int fd, struct api_problem *p)
{
    parcel->message->fds[parcel->message->n_fds++] = fd;
    return (string_list_add(&parcel->list, "file") &&
            string_list_add_number(&parcel->list, role) &&
            string_list_add(&parcel->list, digest) &&
            string_list_add(&parcel->list, name)) ||
           api_problem_no_memory(p);
}

static bool
add_blob(struct parcel *parcel, enum qdqr_role role, const char *id, const char *name,
         struct api_problem *p)
{
    int fd;
    return blob_read(library_blobs(parcel->library), id, &fd, p) &&
           add_file(parcel, role, id, name, fd, p);
}

static bool
add_model(struct parcel *parcel, struct api_problem *p)
{
    struct store_model_files files = {0};
    const char *id = parcel->job->result_model;
    bool ok = store_model_files(library_store(parcel->library), id, &files, p);
    if (ok && !files.n)
        ok = add_blob(parcel, QDQR_MODEL, id, LIBRARY_RESULT_NAME, p);
    for (size_t i = 0; ok && i < files.n && i < MESSAGE_MAX_PUBLISHED; i++)
        ok = add_blob(parcel, i ? QDQR_DATA : QDQR_MODEL, files.items[i].digest,
                      files.items[i].path, p);
    store_model_files_fini(&files);
    return ok;
}

/* Reads the report, and reserves the memory that its decoding takes until the parcel is full. The
   caller frees the text. TOO_LARGE: it is not decoded here. */
static char *
read_report(struct parcel *parcel, size_t *ret_len, struct api_problem *p)
{
    struct stat st = {0};
    int fd;
    if (!blob_read(library_blobs(parcel->library), parcel->job->report, &fd, p))
        return NULL;
    bool known = fstat(fd, &st) == 0;
    uint64_t cost = HANDLERS_REPORT_COST * (uint64_t)st.st_size;
    if (known && !budget_take(cost, p)) {
        close(fd);
        return NULL;
    }
    parcel->reserved = known ? cost : 0;
    char *text = known ? malloc((size_t)st.st_size + 1) : NULL;
    if (text && pread(fd, text, (size_t)st.st_size, 0) != st.st_size) {
        free(text);
        text = NULL;
    }
    close(fd);
    if (!text) {
        api_fail(p, API_IO, "reading the report");
        return NULL;
    }
    *ret_len = (size_t)st.st_size;
    text[*ret_len] = '\0';
    return text;
}

/* Adds a page of the report, which a registry shows. */
static bool
add_page(struct parcel *parcel, const char *report, size_t len, struct api_problem *p)
{
    int fd;
    char *html = api_report_html(report, len);
    bool ok =
        (html || api_problem_no_memory(p)) &&
        spool_open(library_blobs(parcel->library), &parcel->page, p) &&
        spool_write(parcel->page, html, strlen(html), p) &&
        spool_finish(parcel->page, p) && spool_read(parcel->page, &fd, p) &&
        add_file(parcel, QDQR_REPORT, spool_id(parcel->page), "report.html", fd, p);
    free(html);
    return ok;
}

/* Adds the report as JSON, and as a page unless it is too large for that: `report` is NULL. */
static bool
add_report(struct parcel *parcel, const char *report, size_t len, struct api_problem *p)
{
    return (!report || add_page(parcel, report, len, p)) &&
           add_blob(parcel, QDQR_REPORT, parcel->job->report, "report.json", p);
}

static bool
add_tag(void *arg, const char *name, const char *value, struct api_problem *p)
{
    struct parcel *parcel = arg;
    return (string_list_add(&parcel->list, "tag") &&
            string_list_add(&parcel->list, name) &&
            string_list_add(&parcel->list, value)) ||
           api_problem_no_memory(p);
}

/* Adds a tag with the key that a bundle was signed by: the SHA-256 of its public half. */
static bool
add_key(struct parcel *parcel, const char *bundle, struct api_problem *p)
{
    struct api_statement statement;
    if (!api_statement_decode(bundle, strlen(bundle), &statement, p))
        return false;
    bool ok = add_tag(parcel, "qdqd.signed_by", statement.signature.hint, p);
    api_statement_fini(&statement);
    return ok;
}

/* Makes one of the documents that prove where the result came from, and adds it. */
static bool
add_document(struct parcel *parcel, const struct lineage *lineage,
             enum lineage_document which, const struct service *service,
             struct api_problem *p)
{
    static const struct {
        enum qdqr_role role;
        const char *name;
    } rows[LINEAGE_N] = {[LINEAGE_SIGNATURE] = {QDQR_SIGNATURE, QDQR_SIGNATURE_NAME},
                         [LINEAGE_PROVENANCE] = {QDQR_PROVENANCE, QDQR_PROVENANCE_NAME},
                         [LINEAGE_BOM] = {QDQR_BOM, QDQR_BOM_NAME}};
    struct spool **file = &parcel->documents[which];
    const char *type;
    int fd;
    char *text =
        lineage_document(lineage, which, service->settings, service->metrics, &type, p);
    bool ok =
        text && spool_open(library_blobs(parcel->library), file, p) &&
        spool_write(*file, text, strlen(text), p) && spool_finish(*file, p) &&
        spool_read(*file, &fd, p) &&
        add_file(parcel, rows[which].role, spool_id(*file), rows[which].name, fd, p) &&
        (which != LINEAGE_SIGNATURE || add_key(parcel, text, p));
    free(text);
    return ok;
}

/* Adds the documents that are asked for; a signature where the service signs. */
static bool
add_lineage(struct parcel *parcel, unsigned what, const struct service *service,
            struct api_problem *p)
{
    static const unsigned bits[LINEAGE_N] = {
        [LINEAGE_SIGNATURE] = API_PUBLISH_SIGNATURE,
        [LINEAGE_PROVENANCE] = API_PUBLISH_PROVENANCE,
        [LINEAGE_BOM] = API_PUBLISH_BOM};
    struct lineage lineage = {.spec = NULL};
    uint64_t cost = 0;
    if (!signer_is_configured(service->settings))
        what &= ~(unsigned)API_PUBLISH_SIGNATURE;
    bool any =
        what & (API_PUBLISH_SIGNATURE | API_PUBLISH_PROVENANCE | API_PUBLISH_BOM);
    if (!any || !parcel->job->frozen)
        return true;
    if (!lineage_cost(parcel->library, parcel->job, &cost, p) || !budget_take(cost, p))
        return false;
    bool ok = lineage_read(parcel->library, parcel->job, &lineage, p);
    for (enum lineage_document which = 0; ok && which < LINEAGE_N; which++)
        ok = !(what & bits[which]) || add_document(parcel, &lineage, which, service, p);
    lineage_fini(&lineage);
    budget_give(cost);
    return ok;
}

static bool
add_figure(void *arg, const char *name, double value, struct api_problem *p)
{
    struct parcel *parcel = arg;
    char number[40];
    if (parcel->n_figures++ >= MOST_FIGURES)
        return true;
    snprintf(number, sizeof number, "%.17g", value);
    return (string_list_add(&parcel->list, "figure") &&
            string_list_add(&parcel->list, name) &&
            string_list_add(&parcel->list, number)) ||
           api_problem_no_memory(p);
}

/* Adds the tags that the job asked for, and those by which our results are known. */
static bool
add_tags(struct parcel *parcel, const struct api_publication *publication,
         struct api_problem *p)
{
    const struct store_job *job = parcel->job;
    char *resolved = NULL;
    bool ok = api_tags_each(publication->tags, add_tag, parcel, p);
    ok = ok && api_source_resolved(job->source, API_INPUT_MODEL, NULL, &resolved, p) &&
         add_tag(parcel, "qdqd.job", job->id, p) &&
         add_tag(parcel, "qdqd.source_model", resolved ? resolved : job->model, p) &&
         add_tag(parcel, "qdqd.source_digest", job->model, p) &&
         add_tag(parcel, "qdqd.version", PACKAGE_VERSION, p) &&
         (!job->frozen || add_tag(parcel, "qdqd.spec", job->frozen, p));
    free(resolved);
    return ok;
}

static bool
fill_parcel(struct parcel *parcel, const struct api_publication *publication,
            const struct service *service, struct api_problem *p)
{
    const struct store_job *job = parcel->job;
    size_t len = 0;
    struct api_problem too_large = {0};
    char *report = job->report ? read_report(parcel, &len, &too_large) : NULL;
    bool ok = !job->report || report || too_large.code == API_TOO_LARGE;
    if (!ok)
        *p = too_large;
    if (ok && publication->what & API_PUBLISH_MODEL)
        ok = add_model(parcel, p);
    if (ok && job->report && publication->what & API_PUBLISH_REPORT)
        ok = add_report(parcel, report, len, p);
    if (ok && job->frozen && publication->what & API_PUBLISH_SPEC)
        ok = add_blob(parcel, QDQR_SPEC, job->frozen, "spec.json", p);
    ok = ok && add_lineage(parcel, publication->what, service, p) &&
         (!report || api_figures_each(report, len, add_figure, parcel, p)) &&
         add_tags(parcel, publication, p);
    free(report);
    budget_give(parcel->reserved);
    parcel->reserved = 0;
    return ok;
}

/* Decodes the publication of a delivery, which is one element of a job's list. */
static bool
decode_publication(const char *json, struct api_publication **ret,
                   struct api_problem *p)
{
    char *list;
    size_t n;
    if (asprintf(&list, "[%s]", json) < 0)
        return api_problem_no_memory(p);
    bool ok = api_publications_decode(list, ret, &n, p);
    free(list);
    return ok;
}

static bool
publish(struct carrier_work *work, const struct remote *remote,
        const struct store_delivery *delivery, const struct store_job *job,
        char **ret_location, struct api_problem *p)
{
    struct message message = {.type = MESSAGE_PUBLISH}, answer = {0};
    struct message_publish *body = &message.body.publish;
    struct parcel parcel = {
        .library = work->service->library, .job = job, .message = &message};
    struct api_publication *publication = NULL;
    char *source = NULL;
    bool ok = decode_publication(delivery->publication, &publication, p) &&
              remote_fds_open(remote, &body->remote, &message, p) &&
              api_source_resolved(job->source, API_INPUT_MODEL, delivery->remote,
                                  &source, p) &&
              fill_parcel(&parcel, publication, work->service, p);
    if (ok) {
        snprintf(body->ref, sizeof body->ref, "%s", publication->place.ref);
        snprintf(body->alias, sizeof body->alias, "%s",
                 publication->alias ? publication->alias : "");
        snprintf(body->delivery, sizeof body->delivery, "%s", delivery->id);
        snprintf(body->source, sizeof body->source, "%s", source ? source : "");
        message.text = parcel.list.text;
        message.text_len = parcel.list.len;
        ok = jobs_delivery_is_held(work->service->jobs, &work->delivery, p) &&
             ask_start(work, &body->remote, p) &&
             ask_carrier(work, &message, MESSAGE_RESULT, &answer, p);
        message.text = NULL;
    }
    if (ok) {
        *ret_location = strdup(answer.text ? answer.text : "");
        ok = *ret_location || api_problem_no_memory(p);
    }
    message_fini(&answer);
    message_fini(&message);
    string_list_fini(&parcel.list);
    spool_discard(&parcel.page);
    for (int i = 0; i < LINEAGE_N; i++)
        spool_discard(&parcel.documents[i]);
    if (publication)
        api_publications_free(&publication, 1);
    free(source);
    return ok;
}

/* --- an event -------------------------------------------------------------- */

static bool
deliver_event(struct carrier_work *work, const struct remote *remote,
              const struct store_delivery *delivery, struct store_job *row,
              struct api_problem *p)
{
    struct message message = {.type = MESSAGE_DELIVER}, answer = {0};
    struct message_deliver *body = &message.body.deliver;
    struct job_view view;
    if (!store_job_texts(library_store(work->service->library), row, p) ||
        !jobs_view(work->service->jobs, row, &view, p))
        return false;
    struct api_job job = show_job(&view);
    char *shown = api_job_encode(&job);
    char *event =
        shown ? api_event_encode(delivery->event, delivery->created_at, shown) : NULL;
    free(shown);
    job_view_fini(&view);
    bool ok = (event || api_problem_no_memory(p)) &&
              remote_fds_open(remote, &body->remote, &message, p);
    if (ok) {
        snprintf(body->id, sizeof body->id, "%s", delivery->id);
        body->timestamp = clock_wall_ms() / 1000;
        message.text = event;
        message.text_len = strlen(event);
        ok = jobs_delivery_is_held(work->service->jobs, &work->delivery, p) &&
             ask_start(work, &body->remote, p) &&
             ask_carrier(work, &message, MESSAGE_RESULT, &answer, p);
        message.text = NULL;
    }
    message_fini(&answer);
    message_fini(&message);
    free(event);
    return ok;
}

/* --- one delivery ---------------------------------------------------------- */

static bool
attempt(struct carrier_work *work, const struct store_delivery *delivery,
        char **ret_location, struct api_problem *p)
{
    struct store_job job = {0};
    struct remotes *remotes = tenants_remotes(work->service->tenants);
    const struct remote *remote = remotes_find(remotes, delivery->remote);
    bool ok = remote || api_fail(p, API_REMOTE_UNKNOWN,
                                 "there is no remote %s any more", delivery->remote);
    ok = ok &&
         store_job_get(library_store(work->service->library), delivery->job, &job, p) &&
         (delivery->event ? deliver_event(work, remote, delivery, &job, p)
                          : publish(work, remote, delivery, &job, ret_location, p));
    ask_end(work);
    store_job_fini(&job);
    remotes_release(&remotes);
    return ok;
}

static void
log_outcome(const struct carrier_work *work, const struct store_delivery *delivery,
            enum store_delivery_state state, const struct api_problem *problem)
{
    struct remotes *remotes = tenants_remotes(work->service->tenants);
    const struct remote *remote = remotes_find(remotes, delivery->remote);
    char host[REMOTE_HOST] = "-", quoted[LOG_QUOTED];
    if (remote)
        remote_host(remote, host);
    remotes_release(&remotes);
    const char *tenant = *work->service->tenant ? work->service->tenant : "-";
    if (state == STORE_DELIVERED)
        log_info("delivered", "delivery=%s job=%s tenant=%s remote=%s attempt=%lld",
                 delivery->id, delivery->job, tenant, delivery->remote,
                 (long long)delivery->attempts);
    else
        log_error(state == STORE_PENDING ? "delivery_delayed" : "delivery_failed",
                  "delivery=%s job=%s tenant=%s remote=%s host=%s attempt=%lld "
                  "code=%s detail=%s",
                  delivery->id, delivery->job, tenant, delivery->remote, host,
                  (long long)delivery->attempts, api_problem_slug(problem->code),
                  log_quote(quoted, problem->detail));
}

/* Ends the attempt. Where the record refuses its texts for good, it is written without them, so
   that it is not made again. */
static bool
end_delivery(struct store *store, const struct store_delivery *delivery,
             struct store_attempt *made, bool *ret_held, struct api_problem *p)
{
    if (store_delivery_end(store, delivery, made, ret_held, p) ||
        p->code != API_INTERNAL)
        return !p->set;
    store_log_failure(p);
    *p = (struct api_problem){0};
    made->location = made->error = NULL;
    return store_delivery_end(store, delivery, made, ret_held, p);
}

void
deliver_one(struct carrier_work *work, const struct store_delivery *delivery)
{
    struct store *store = library_store(work->service->library);
    struct api_problem problem = {0}, store_problem = {0};
    char *location = NULL, *error = NULL;
    struct store_attempt made = {.state = STORE_DELIVERED};
    bool held = true;
    if (!attempt(work, delivery, &location, &problem)) {
        bool again = ask_may_retry(problem.code) && delivery->attempts < MOST_ATTEMPTS;
        made.state = again ? STORE_PENDING : STORE_UNDELIVERED;
        made.wait_ms = again ? ask_wait_ms(work, delivery->attempts) : 0;
        error = api_problem_encode(&problem);
    }
    made.location = location;
    made.error = error;
    made.now = clock_wall_ms();
    bool stopped = made.state != STORE_DELIVERED && problem.code == API_CANCELLED;
    bool ok = stopped ? store_delivery_unclaim(store, delivery, &store_problem)
                      : end_delivery(store, delivery, &made, &held, &store_problem);
    if (!ok)
        store_log_failure(&store_problem);
    if (ok && !held) {
        jobs_delivery_refused(work->service->jobs, &work->delivery);
    } else if (!stopped) {
        metrics_add(work->service->metrics, &metric_deliveries, made.state, 1);
        log_outcome(work, delivery, made.state, &problem);
        /* A failed delivery may be told of, and another attempt has a time. */
        jobs_wake_carriers(work->service->jobs);
    }
    free(location);
    free(error);
}
