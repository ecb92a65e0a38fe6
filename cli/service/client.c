/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "service/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "print.h"
#include "spec.h"
#include "remote/remote.h"
#include "terminal.h"

enum { MAX_TOKEN = 4096, MAX_CA = 4 * 1024 * 1024, PATIENCE = 300 };

/* --- open and close ------------------------------------------------------- */

/* Reads a file of at most `most` bytes. The caller frees the text. */
static bool
read_small(const char *path, size_t most, char **ret, size_t *ret_len,
           struct api_problem *problem)
{
    struct stat st;
    int fd;
    if (!file_open(path, &fd, problem))
        return false;
    bool fits = fstat(fd, &st) == 0 && st.st_size > 0 && (size_t)st.st_size <= most;
    char *text = fits ? malloc((size_t)st.st_size + 1) : NULL;
    ssize_t n = text ? read(fd, text, (size_t)st.st_size) : -1;
    close(fd);
    if (n > 0 && n == st.st_size) {
        text[n] = '\0';
        *ret = text;
        *ret_len = (size_t)n;
        return true;
    }
    free(text);
    return api_fail(problem, API_IO,
                    "%s: empty, of more than %zu bytes, or cannot be read", path, most);
}

/* The token is the first word of its file. */
static bool
read_token(const char *path, char **ret, struct api_problem *problem)
{
    char *text;
    size_t len;
    if (!read_small(path, MAX_TOKEN, &text, &len, problem))
        return false;
    size_t skip = strspn(text, " \t\r\n"), n = strcspn(text + skip, " \t\r\n");
    memmove(text, text + skip, n);
    text[n] = '\0';
    *ret = text;
    return n > 0 || api_fail(problem, API_IO, "%s: has no access token", path);
}

static bool
on_progress(void *arg, int64_t done, int64_t total)
{
    struct client *client = arg;
    if (client->moving && done > 0)
        progress_show_bytes(&client->progress, client->moving, (uint64_t)done,
                            (uint64_t)total);
    return true;
}

/* Says once for each loss why the command waits. */
static void
on_pause(void *arg, const struct api_problem *why, double seconds)
{
    struct client *client = arg;
    (void)seconds;
    if (client->is_lost)
        return;
    client->is_lost = true;
    progress_clear(&client->progress);
    fputs("qdq: trying again after: ", stderr);
    print_detail(why);
}

bool
client_open(const struct options *options, struct client *ret,
            struct api_problem *problem)
{
    *ret = (struct client){0};
    progress_start(&ret->progress);
    if (!qdqr_init())
        return api_fail(problem, API_IO, "libcurl cannot be used");
    if (options->token_file && !read_token(options->token_file, &ret->token, problem))
        return false;
    if (options->ca_file &&
        !read_small(options->ca_file, MAX_CA, &ret->ca, &ret->ca_len, problem))
        return false;
    const struct qdqr_service_options service = {
        .url = options->url,
        .token = ret->token,
        .ca = ret->ca,
        .ca_len = ret->ca_len,
        .patience = options->patience_text ? options->patience : PATIENCE,
        .on_progress = on_progress,
        .on_pause = on_pause,
        .arg = ret,
    };
    return qdqr_service_open(&service, &ret->service, problem);
}

void
client_close(struct client *client)
{
    progress_end(&client->progress);
    qdqr_service_close(&client->service);
    if (client->token)
        explicit_bzero(client->token, strlen(client->token));
    free(client->token);
    free(client->ca);
    *client = (struct client){0};
}

/* --- requests ------------------------------------------------------------- */

/* Makes a request. The caller frees the text of the answer. */
static bool
ask_text(struct client *client, const struct qdqr_ask *ask, char **ret, size_t *ret_len,
         struct api_problem *problem)
{
    client->is_lost = false;
    bool ok = qdqr_service_ask(client->service, ask, ret, ret_len, problem);
    progress_clear(&client->progress);
    return ok;
}

bool
client_ask(struct client *client, const struct qdqr_ask *ask, struct api_document **ret,
           struct api_problem *problem)
{
    char *text;
    size_t len;
    if (!ask_text(client, ask, &text, &len, problem))
        return false;
    bool ok = api_document_parse(text, len, ret, problem);
    free(text);
    return ok;
}

bool
client_print(struct client *client, const struct qdqr_ask *ask,
             struct api_problem *problem)
{
    char *text;
    size_t len;
    if (!ask_text(client, ask, &text, &len, problem))
        return false;
    put_json(stdout, text, len);
    putchar('\n');
    free(text);
    return true;
}

/* --- jobs ----------------------------------------------------------------- */

void
client_place(struct api_problem *problem)
{
    static const char spec[] = "/spec";
    enum { N = sizeof spec - 1 };
    if (problem->kind == QDQ_AT_POINTER && strncmp(problem->where, spec, N) == 0 &&
        problem->where[N] == '/')
        memmove(problem->where, problem->where + N, strlen(problem->where) - N + 1);
}

bool
client_path(const char *job, const char *end, char *to, size_t size,
            struct api_problem *problem)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    size_t len = strlen(job);
    if (len == 0 || len > 64 || strspn(job, letters) != len)
        return api_fail(problem, API_BAD_REQUEST, "\"%.80s\" is no id of a job", job);
    snprintf(to, size, "/v1/jobs/%s%s", job, end);
    return true;
}

bool
client_encode(const struct options *options, struct api_job_request *request,
              char **ret, struct api_problem *problem)
{
    char *spec = request->spec;
    bool ok = spec || spec_text(options, &spec, problem);
    request->spec = spec;
    *ret = ok ? api_job_request_encode(request) : NULL;
    request->spec = NULL;
    free(spec);
    return !ok ? false : *ret || api_problem_no_memory(problem);
}

bool
client_submit(struct client *client, const char *request, struct api_document **ret,
              struct api_problem *problem)
{
    unsigned char bytes[16];
    char key[2 * sizeof bytes + 1];
    /* The key makes a request whose answer is lost repeatable. */
    if (getentropy(bytes, sizeof bytes) != 0)
        return api_fail(problem, API_IO, "random numbers: %s", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(key + 2 * i, 3, "%02x", bytes[i]);
    const struct qdqr_ask ask = {
        .method = "POST", .path = "/v1/jobs", .json = request, .key = key};
    return client_ask(client, &ask, ret, problem);
}

/* The state of reading a stream of events. */
struct following {
    struct client *client;
    struct api_document *end; /* the job at its end */
};

static bool
on_event(void *arg, const char *event, const char *data, size_t len,
         struct api_problem *problem)
{
    struct following *following = arg;
    struct progress *progress = &following->client->progress;
    struct api_document *document;
    struct api_job_facts job = {.eta_s = -1};
    following->client->is_lost = false;
    if (!api_document_parse(data, len, &document, problem))
        return false;
    if (strcmp(event, "end") == 0) {
        api_document_free(&following->end);
        following->end = document;
        return true;
    }
    if (strcmp(event, "progress") == 0) {
        api_document_progress(document, &job);
        if (job.stage)
            progress_show(progress, job.stage, job.done, job.total, job.eta_s);
    } else if (api_document_job(document, &job)) {
        progress_show(progress, api_job_state_name(job.state), 0, 0, -1);
    }
    api_document_free(&document);
    return true;
}

bool
client_wait(struct client *client, const char *job, struct api_document **ret,
            struct api_problem *problem)
{
    struct following following = {client, NULL};
    char path[160];
    client->is_lost = false;
    bool ok = client_path(job, "", path, sizeof path, problem) &&
              qdqr_service_watch(client->service, job, on_event, &following, problem);
    progress_clear(&client->progress);
    *ret = following.end;
    if (!ok || *ret)
        return ok;
    return client_ask(client, &(struct qdqr_ask){.path = path}, ret, problem);
}
