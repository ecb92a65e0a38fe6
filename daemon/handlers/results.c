/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of what a job leaves: its model, its report in all forms, its frozen spec. */
#include "config.h"
#include "handlers/handlers.h"
#include "base/budget.h"
#include "api/report.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Refuses with 404 a job with several targets, which has a result of each instead. */
static bool
check_one_target(const struct job_view *view, struct api_problem *p)
{
    return !view->row.targets ||
           api_fail(
               p, API_NOT_FOUND,
               "the job has several targets, and a result of each: model, report, "
               "spec, signature, provenance and bom are at /v1/jobs/%s/targets/"
               "{target}/, for each target that the job lists; /v1/jobs/%s/compare "
               "compares them",
               view->row.id, view->row.id);
}

bool
check_succeeded(const struct job_view *view, struct api_problem *p)
{
    if (!check_one_target(view, p))
        return false;

    switch (view->row.state) {
    case API_JOB_SUCCEEDED:
        return true;
    case API_JOB_FAILED:
        *p = view->row.error;
        if (p->code != API_ACCURACY)
            p->code = API_FAILED;
        return false;
    case API_JOB_CANCELLED:
        return api_fail(p, API_CANCELLED, "the job was cancelled");
    default:
        return api_fail(p, API_NOT_FINISHED, "the job is %s",
                        api_job_state_name(view->row.state));
    }
}

/* Does the same, but accepts a failed job with a report: one whose model was
   rejected by its gate. */
static bool
check_ran(const struct job_view *view, struct api_problem *p)
{
    return (view->row.state == API_JOB_FAILED && view->row.report) ||
           check_succeeded(view, p);
}

void
handle_job_model(struct request *request)
{
    struct job_view view = {0};
    if (wait_for_job(request, request->match.id, &view) &&
        check_succeeded(&view, &request->problem))
        reply_model(request, view.row.result_model);
    job_view_fini(&view);
}

/* Opens a document of a job. `member` is the offset in struct store_job of the
   document's id. */
static bool
open_job_document(struct request *request, const char *job, size_t member,
                  struct job_document *ret)
{
    struct api_problem *p = &request->problem;
    struct job_view view = {0};
    struct stat st;
    bool ok = wait_for_job(request, job, &view) && check_ran(&view, p);
    const char *id = NULL;
    memcpy(&id, (const char *)&view.row + member, sizeof id);
    if (ok && !id)
        ok = api_fail(p, API_NOT_FOUND,
                      "the job ran under a version that did not keep this");
    ok = ok && blob_read(library_blobs(request->service->library), id, &ret->fd, p);
    if (ok && fstat(ret->fd, &st)) {
        close(ret->fd);
        ok = api_fail(p, API_IO, "reading what the job left");
    }
    if (ok) {
        ret->size = (uint64_t)st.st_size;
        snprintf(ret->id, sizeof ret->id, "%s", id);
    }
    job_view_fini(&view);
    return ok;
}

/* The bytes of a report that is small: it is cut in memory, and no other request waits for it. */
#define MOST_IN_MEMORY (1u << 20)

/* Lets the threads of other requests go first, because this one has a lot to do: a large report to
   send, to decode or to copy. It holds as long as the connection, whose thread this is. */
static void
give_way(uint64_t bytes)
{
    if (bytes > MOST_IN_MEMORY)
        (void)setpriority(PRIO_PROCESS, (id_t)gettid(), 10);
}

static void
reply_job_document(struct request *request, const struct job_document *document)
{
    give_way(document->size);
    reply_file(request, "application/json", document->fd, document->size);
    reply_digest(request, document->id);
    reply_header(request, "ETag", "\"%s\"", document->id);
}

/* The forms of a report, in the order of preference. JSON is sent as it is stored. */
static const struct form {
    const char *accepted, *type;
    char *(*make)(const char *json, size_t len); /* NULL: the bytes themselves */
} forms[] = {
    {"application/json", "application/json", NULL},
    {"text/markdown", "text/markdown; charset=utf-8", api_report_markdown},
    {"text/html", "text/html; charset=utf-8", api_report_html},
};

enum { N_FORMS = sizeof forms / sizeof *forms, POLICY_SIZE = 256 };

void
reply_policy(struct request *request, const char *policy)
{
    reply_header(request, "Content-Security-Policy", "%s", policy);
    reply_header(request, "X-Content-Type-Options", "nosniff");
    reply_header(request, "Referrer-Policy", "no-referrer");
}

bool
open_job_report(struct request *request, const char *job, struct job_document *ret)
{
    return open_job_document(request, job, offsetof(struct store_job, report), ret);
}

bool
reserve_decoded(struct request *request, uint64_t bytes)
{
    struct api_problem *p = &request->problem;
    give_way(bytes);
    return HANDLERS_REPORT_COST * bytes <= BUDGET_MOST
               ? body_reserve(&request->body, HANDLERS_REPORT_COST * bytes, p)
               : api_fail(
                     p, API_TOO_LARGE,
                     "reports of %llu bytes are sent as application/json alone; other "
                     "forms are made of up to %llu. qdq report makes a page",
                     (unsigned long long)bytes,
                     (unsigned long long)BUDGET_MOST / HANDLERS_REPORT_COST);
}

char *
read_job_report(struct request *request, const struct job_document *document, bool ok)
{
    struct api_problem *p = &request->problem;
    char *json = ok ? malloc(document->size + 1) : NULL;
    ssize_t n = json ? pread(document->fd, json, document->size, 0) : 0;
    close(document->fd);
    if (json && n == (ssize_t)document->size)
        return json;
    if (ok && !json)
        api_problem_no_memory(p);
    else if (ok)
        api_fail(p, API_IO, "reading the report");
    free(json);
    return NULL;
}

void
reply_made(struct request *request, const char *type, char *text, bool is_page)
{
    struct api_problem problem = {0};
    char policy[POLICY_SIZE];
    size_t len = text ? strlen(text) : 0;
    reply_text(request, 200, type, text);
    (void)body_reserve(&request->body, len, &problem);
    if (is_page && api_html_policy(policy, sizeof policy))
        reply_policy(request, policy);
}

/* Adds the digest of a text, which is its entity tag, too. */
static void
reply_text_digest(struct request *request)
{
    const char *text = request->reply.text;
    char id[DIGEST_SIZE];
    if (request->reply.status != 200 || !text || !digest_of(text, strlen(text), id))
        return;
    reply_digest(request, id);
    reply_header(request, "ETag", "\"%s\"", id);
}

/* Returns whether the document begins like a report with histograms. */
static bool
has_histograms(const struct job_document *document)
{
    char begin[32];
    ssize_t n = pread(document->fd, begin, sizeof begin, 0);
    return n > 0 && api_report_has_histograms(begin, (size_t)n);
}

/* Copies the report from its member `schema` on behind `begin` into a spool. */
static bool
copy_body(const struct job_document *document, const char *begin, struct spool *spool,
          struct api_problem *p)
{
    char *json = mmap(NULL, document->size, PROT_READ, MAP_PRIVATE, document->fd, 0);
    if (json == MAP_FAILED)
        return api_fail(p, API_IO, "reading the report");
    const char *body = api_report_body(json, document->size);
    size_t len = document->size - (size_t)(body - json);
    bool ok = spool_write(spool, begin, strlen(begin), p) &&
              spool_write(spool, body, len, p) && spool_finish(spool, p);
    munmap(json, document->size);
    return ok;
}

/* Replies with a large report in whose place of histograms is nothing, or null where they are
   asked for, and closes it. It goes through a file, so that it takes no memory. Returns false, and
   leaves it open, where that fails: the disk may be full. */
static bool
reply_cut(struct request *request, const struct job_document *document, bool asked)
{
    struct blobs *blobs = library_blobs(request->service->library);
    struct api_problem problem = {0};
    struct spool *spool = NULL;
    int fd;
    give_way(document->size);
    bool ok = spool_open(blobs, &spool, &problem) &&
              copy_body(document, asked ? API_REPORT_NULL_HISTOGRAMS : "{", spool,
                        &problem) &&
              spool_read(spool, &fd, &problem);
    if (ok) {
        reply_file(request, "application/json", fd, spool_size(spool));
        reply_digest(request, spool_id(spool));
        reply_header(request, "ETag", "\"%s\"", spool_id(spool));
    }
    spool_discard(&spool);
    if (ok)
        close(document->fd);
    return ok;
}

/* Replies with the JSON of the report, and closes it. The stored text is sent as it is where it has
   histograms as asked. */
static void
reply_json_report(struct request *request, const struct job_document *document)
{
    int64_t asked;
    char *json;
    if (!request_number(request, "histograms", 0, 1, 0, &asked, &request->problem)) {
        close(document->fd);
    } else if (has_histograms(document) == asked) {
        reply_job_document(request, document);
    } else if (document->size > MOST_IN_MEMORY && reply_cut(request, document, asked)) {
        return;
    } else if ((json = read_job_report(request, document,
                                       body_reserve(&request->body, 2 * document->size,
                                                    &request->problem)))) {
        reply_json(request, 200,
                   asked ? api_report_null_histograms(json, document->size)
                         : api_report_without_histograms(json, document->size));
        reply_text_digest(request);
        free(json);
    }
}

/* Replies with another form of the report, and closes it. */
static void
reply_form(struct request *request, const struct job_document *document,
           const struct form *form)
{
    char *json =
        read_job_report(request, document, reserve_decoded(request, document->size));
    if (!json)
        return;
    reply_made(request, form->type, form->make(json, document->size),
               form->make == api_report_html);
    reply_text_digest(request);
    free(json);
}

size_t
choose_type(struct request *request, const char *const types[], size_t n,
            const char *known)
{
    char *accept;
    if (!request_list(request, "Accept", &accept, &request->problem))
        return n;
    size_t chosen = api_header_choose(accept, types, n);
    free(accept);
    if (chosen == n)
        api_fail(&request->problem, API_NOT_ACCEPTABLE, "%s", known);
    return chosen;
}

void
handle_job_report(struct request *request)
{
    struct job_document document;
    const char *types[N_FORMS];
    for (size_t i = 0; i < N_FORMS; i++)
        types[i] = forms[i].accepted;
    size_t chosen =
        choose_type(request, types, N_FORMS,
                    "a report is application/json, text/markdown or text/html");
    reply_header(request, "Vary", "Accept");
    if (chosen == N_FORMS || !open_job_report(request, request->match.id, &document))
        return;
    if (forms[chosen].make)
        reply_form(request, &document, &forms[chosen]);
    else
        reply_json_report(request, &document);
}

void
handle_job_spec(struct request *request)
{
    struct job_document document;
    if (open_job_document(request, request->match.id,
                          offsetof(struct store_job, frozen), &document))
        reply_job_document(request, &document);
}
