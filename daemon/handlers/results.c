/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of what a job leaves: its model, its report in all forms, its frozen spec, and
   the comparison of two jobs. */
#include "config.h"
#include "handlers/handlers.h"
#include "api/compare.h"
#include "api/report.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads a job, after waiting as long as the request asks for. */
static bool
wait_for_job(struct request *request, const char *id, struct job_view *ret,
             struct api_problem *p)
{
    int seconds;
    return request_wait(request, 0, &seconds, p) &&
           jobs_wait(request->service->jobs, id, seconds, ret, p);
}

/* Refuses with 409 and the reason when the job has not succeeded. */
static bool
check_succeeded(const struct job_view *view, struct api_problem *p)
{
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
    struct api_problem problem = {0};
    struct job_view view = {0};
    if (wait_for_job(request, request->match.id, &view, &problem) &&
        check_succeeded(&view, &problem))
        reply_model(request, view.row.result_model);
    else
        reply_problem(request, &problem);
    job_view_fini(&view);
}

/* An open JSON document of a job: its report or its frozen spec. */
struct job_document {
    char id[DIGEST_SIZE];
    int fd; /* the caller closes it */
    uint64_t size;
};

/* Opens a document of a job. `member` is the offset in struct store_job of the
   document's id. */
static bool
open_job_document(struct request *request, const char *job, size_t member,
                  struct job_document *ret, struct api_problem *p)
{
    struct job_view view = {0};
    struct stat st;
    bool ok = wait_for_job(request, job, &view, p) && check_ran(&view, p);
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

static void
reply_job_document(struct request *request, const struct job_document *document)
{
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

/* Adds the policy of the pages, which a browser reads before the page. */
static void
reply_policy(struct request *request)
{
    char policy[POLICY_SIZE];
    if (!api_html_policy(policy, sizeof policy))
        return;
    reply_header(request, "Content-Security-Policy", "%s", policy);
    reply_header(request, "X-Content-Type-Options", "nosniff");
    reply_header(request, "Referrer-Policy", "no-referrer");
}

/* Reads a report, and closes it. `cost` bytes of memory for each of its bytes are reserved until
   the request ends. The caller frees the text. */
static bool
read_text(struct request *request, const struct job_document *document, uint64_t cost,
          char **ret, struct api_problem *p)
{
    bool ok = body_reserve(&request->body, cost * document->size, p);
    char *json = ok ? malloc(document->size + 1) : NULL;
    ssize_t n = json ? pread(document->fd, json, document->size, 0) : 0;
    close(document->fd);
    if (json && n == (ssize_t)document->size) {
        *ret = json;
        return true;
    }
    free(json);
    if (ok && !json)
        return api_problem_no_memory(p);
    return ok ? api_fail(p, API_IO, "reading the report") : false;
}

/* Reads a report that is decoded next, and closes it. The caller frees the text. */
static bool
read_document(struct request *request, const struct job_document *document, char **ret,
              struct api_problem *p)
{
    return read_text(request, document, HANDLERS_REPORT_COST, ret, p);
}

/* Replies with a text that was made of reports. */
static void
reply_made(struct request *request, const char *type, char *text, bool is_page)
{
    struct api_problem problem = {0};
    size_t len = text ? strlen(text) : 0;
    reply_text(request, 200, type, text);
    (void)body_reserve(&request->body, len, &problem);
    if (is_page)
        reply_policy(request);
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

/* Replies with the JSON of the report, and closes it. The stored text is sent as it is where it has
   histograms as asked. */
static void
reply_json_report(struct request *request, const struct job_document *document)
{
    struct api_problem problem = {0};
    int64_t asked;
    char *json;
    if (!request_number(request, "histograms", 0, 1, 0, &asked, &problem)) {
        close(document->fd);
        reply_problem(request, &problem);
    } else if (has_histograms(document) == asked) {
        reply_job_document(request, document);
    } else if (read_text(request, document, 2, &json, &problem)) {
        reply_json(request, 200,
                   asked ? api_report_null_histograms(json, document->size)
                         : api_report_without_histograms(json, document->size));
        reply_text_digest(request);
        free(json);
    } else {
        reply_problem(request, &problem);
    }
}

/* Replies with another form of the report, and closes it. */
static void
reply_form(struct request *request, const struct job_document *document,
           const struct form *form)
{
    struct api_problem problem = {0};
    char *json;
    if (!read_document(request, document, &json, &problem)) {
        reply_problem(request, &problem);
        return;
    }
    reply_made(request, form->type, form->make(json, document->size),
               form->make == api_report_html);
    reply_text_digest(request);
    free(json);
}

/* Selects the form of the report by the header Accept. */
static bool
choose_form(const struct request *request, const struct form **ret,
            struct api_problem *p)
{
    const char *types[N_FORMS];
    char *accept;
    if (!request_list(request, "Accept", &accept, p))
        return false;
    for (size_t i = 0; i < N_FORMS; i++)
        types[i] = forms[i].accepted;
    size_t chosen = api_header_choose(accept, types, N_FORMS);
    free(accept);
    *ret = chosen < N_FORMS ? &forms[chosen] : NULL;
    return *ret || api_fail(p, API_NOT_ACCEPTABLE,
                            "a report is application/json, text/markdown or text/html");
}

void
handle_job_report(struct request *request)
{
    struct api_problem problem = {0};
    struct job_document document;
    const struct form *form;
    if (!choose_form(request, &form, &problem) ||
        !open_job_document(request, request->match.id,
                           offsetof(struct store_job, report), &document, &problem))
        reply_problem(request, &problem);
    else if (form->make)
        reply_form(request, &document, form);
    else
        reply_json_report(request, &document);
    reply_header(request, "Vary", "Accept");
}

void
handle_job_spec(struct request *request)
{
    struct api_problem problem = {0};
    struct job_document document;
    if (open_job_document(request, request->match.id,
                          offsetof(struct store_job, frozen), &document, &problem))
        reply_job_document(request, &document);
    else
        reply_problem(request, &problem);
}

/* --- two jobs ------------------------------------------------------------------ */

/* Reads the reports of the job in the path and of the job in the query. The caller frees
   their texts, also where this returns false. */
static bool
read_compared(struct request *request, struct api_compared ret[2], char id[JOB_ID_SIZE],
              struct api_problem *p)
{
    const char *with = request_query(request, "with");
    struct job_document document;
    if (!with || strlen(with) >= JOB_ID_SIZE)
        return api_fail(p, API_BAD_REQUEST,
                        "the query's with is to be the id of another job");
    snprintf(id, JOB_ID_SIZE, "%s", with);
    ret[0].id = request->match.id;
    ret[1].id = id;
    for (int i = 0; i < 2; i++) {
        if (!open_job_document(request, ret[i].id, offsetof(struct store_job, report),
                               &document, p) ||
            !read_document(request, &document, &ret[i].json, p))
            return false;
        ret[i].len = document.size;
    }
    return true;
}

void
handle_job_compare(struct request *request)
{
    static const char *const types[] = {"application/json", "text/html"};
    struct api_problem problem = {0};
    struct api_compared jobs[2] = {0};
    char id[JOB_ID_SIZE], *accept = NULL;
    bool ok = request_list(request, "Accept", &accept, &problem);
    size_t chosen = ok ? api_header_choose(accept, types, 2) : 0;
    free(accept);
    if (ok && chosen == 2)
        ok = api_fail(&problem, API_NOT_ACCEPTABLE,
                      "a comparison is application/json or text/html");
    ok = ok && read_compared(request, jobs, id, &problem);
    if (!ok)
        reply_problem(request, &problem);
    else if (chosen == 0)
        reply_made(request, "application/json", api_compare_encode(&jobs[0], &jobs[1]),
                   false);
    else
        reply_made(request, "text/html; charset=utf-8",
                   api_compare_html(&jobs[0], &jobs[1]), true);
    reply_header(request, "Vary", "Accept");
    free(jobs[0].json);
    free(jobs[1].json);
}
