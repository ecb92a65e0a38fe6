/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "remote/service.h"
#include "api/grow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "api/client.h"
#include "base/http.h"

enum {
    MIN_RATE = 1024,    /* bytes a second of a file */
    FIRST_PAUSE = 250,  /* milliseconds; each further one is twice as long */
    MOST_DOUBLINGS = 5, /* up to 8 seconds */
    ANSWER_TIME = 180,  /* seconds without a byte: longer than any short work takes */
    CONNECT_TIME = 10,  /* seconds */
    MOST_EVENT = 64 << 20, /* bytes of one event */
};
#define MOST_ANSWER (1 << 30)

struct qdqr_service {
    struct qdqr_service_options options;
    struct qdqr_remote remote;
    struct qdqr_call call;
    struct http *http;
    char *credentials; /* owned */
    bool reached;      /* an answer has come before */
    int tries;         /* of the present request */
    int64_t paused;    /* milliseconds, of the present request */
};

/* --- open and close ------------------------------------------------------- */

static bool
on_progress(void *arg, int64_t done, int64_t total)
{
    struct qdqr_service *service = arg;
    return !service->options.on_progress ||
           service->options.on_progress(service->options.arg, done, total);
}

/* Returns the path of a socket in a URL unix:/path, else NULL. */
static const char *
socket_path(const char *url)
{
    static const char scheme[] = "unix:";
    return strncmp(url, scheme, sizeof scheme - 1) == 0 ? url + sizeof scheme - 1
                                                        : NULL;
}

static bool
check_url(const char *url, struct api_problem *problem)
{
    const char *path = socket_path(url);
    bool is_http = strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
    CURLU *parts = curl_url();
    char *user = NULL, *query = NULL;
    bool ok = path ? *path == '/' : is_http && parts;
    ok = ok && (path || curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK);
    if (ok && !path) {
        ok = curl_url_get(parts, CURLUPART_USER, &user, 0) != CURLUE_OK &&
             curl_url_get(parts, CURLUPART_QUERY, &query, 0) != CURLUE_OK;
        curl_free(user);
        curl_free(query);
    }
    curl_url_cleanup(parts);
    return ok ||
           api_problem_set(problem, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                           "the URL of the service has the form http://HOST:PORT, "
                           "https://HOST or unix:/PATH, without user and query");
}

static bool
set_credentials(struct qdqr_service *service, struct api_problem *problem)
{
    const char *token = service->options.token;
    if (!token || !*token)
        return true;
    if (asprintf(&service->credentials, "bearer %s", token) < 0) {
        service->credentials = NULL;
        return api_problem_no_memory(problem);
    }
    service->remote.credentials = service->credentials;
    return http_authenticate(service->http, problem);
}

bool
qdqr_service_open(const struct qdqr_service_options *options, struct qdqr_service **ret,
                  struct api_problem *problem)
{
    const char *path = socket_path(options->url);
    if (!check_url(options->url, problem))
        return false;
    struct qdqr_service *service = calloc(1, sizeof *service);
    if (!service)
        return api_problem_no_memory(problem);
    service->options = *options;
    service->call = (struct qdqr_call){.on_progress = on_progress, .arg = service};
    service->remote =
        (struct qdqr_remote){.name = options->url,
                             .url = path ? "http://localhost" : options->url,
                             .ca = options->ca,
                             .ca_len = options->ca_len,
                             .allow_private = true,
                             .timeout = ANSWER_TIME,
                             .min_rate = MIN_RATE};
    bool ok = http_open(&service->remote, &service->call, &service->http, problem) &&
              set_credentials(service, problem);
    if (ok) {
        CURL *curl = service->http->curl;
        curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_TIME);
        curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, path);
        curl_easy_setopt(curl, CURLOPT_USERAGENT, "qdq/" PACKAGE_VERSION);
        *ret = service;
    } else {
        qdqr_service_close(&service);
    }
    return ok;
}

void
qdqr_service_close(struct qdqr_service **service)
{
    if (!*service)
        return;
    http_close(&(*service)->http);
    if ((*service)->credentials)
        explicit_bzero((*service)->credentials, strlen((*service)->credentials));
    free((*service)->credentials);
    free(*service);
    *service = NULL;
}

/* --- one request ---------------------------------------------------------- */

static void
begin(struct qdqr_service *service)
{
    service->tries = 0;
    service->paused = 0;
    service->http->done = service->http->total = 0;
}

/* Returns whether the service, or a proxy before it, may answer otherwise later. */
static bool
may_pass(const struct http_answer *answer, const struct api_problem *fault)
{
    return answer->status == 429 || (answer->status >= 502 && answer->status <= 504) ||
           (answer->status == 500 && fault->code != API_INTERNAL &&
            api_problem_retryable(fault->code));
}

/* Pauses before the next try. Returns false when the patience is over. */
static bool
pause_longer(struct qdqr_service *service, const struct api_problem *why)
{
    int doublings = service->tries < MOST_DOUBLINGS ? service->tries : MOST_DOUBLINGS;
    int64_t pause = (int64_t)FIRST_PAUSE << doublings;
    if (service->call.retry_after * 1000 > pause)
        pause = service->call.retry_after * 1000;
    if (service->paused + pause > service->options.patience * 1000)
        return false;
    if (service->options.on_pause)
        service->options.on_pause(service->options.arg, why, (double)pause / 1000);
    struct timespec time = {pause / 1000, pause % 1000 * 1000000};
    while (nanosleep(&time, &time) != 0 && errno == EINTR)
        continue;
    service->paused += pause;
    service->tries++;
    return true;
}

/* Takes away the word "remote", with which http.c calls every peer. */
static void
drop_word(struct api_problem *fault)
{
    static const char word[] = "remote ";
    enum { N = sizeof word - 1 };
    if (strncmp(fault->detail, word, N) == 0)
        memmove(fault->detail, fault->detail + N, strlen(fault->detail) - N + 1);
}

/* Sends the request until an answer says something final. */
static bool
request(struct qdqr_service *service, struct http_request *request,
        struct http_answer *ret, struct api_problem *problem)
{
    request->accepts_all = true;
    for (;;) {
        struct api_problem fault = {0};
        bool answered = http_send(service->http, request, ret, &fault), again;
        if (answered) {
            service->reached = true;
            if (ret->status < 400)
                return true;
            api_problem_decode(ret->body, ret->len, ret->status, &fault);
            again = may_pass(ret, &fault);
            http_answer_fini(ret);
        } else {
            drop_word(&fault);
            again = fault.code == API_REMOTE_UNAVAILABLE && service->reached;
            if (ret->is_other_range && ftruncate(request->to_fd, 0) != 0)
                again = false;
        }
        if (!again || !pause_longer(service, &fault)) {
            *problem = problem->set ? *problem : fault;
            return false;
        }
    }
}

static bool
make_request(const struct qdqr_ask *ask, struct http_request *ret,
             struct api_problem *problem)
{
    ret->method = ask->method;
    ret->max_body = MOST_ANSWER;
    if (snprintf(ret->url, sizeof ret->url, "%s", ask->path) >= (int)sizeof ret->url)
        return api_problem_set(problem, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                               "the path of a request is too long");
    if (ask->json) {
        ret->body = ask->json;
        ret->body_len = strlen(ask->json);
    }
    ret->body_fd = ask->fd;
    ret->body_size = ask->size;
    return true;
}

/* Writes the header Repr-Digest of "sha256:" and hex digits. */
static void
print_repr_digest(const char *digest, char *to, size_t size)
{
    unsigned char bytes[DIGEST_BYTES];
    char base64[48];
    const char *hex = strchr(digest, ':') + 1;
    for (int i = 0; i < DIGEST_BYTES; i++) {
        char pair[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        bytes[i] = (unsigned char)strtoul(pair, NULL, 16);
    }
    digest_base64(bytes, sizeof bytes, base64);
    snprintf(to, size, "Repr-Digest: sha-256=:%s:", base64);
}

bool
qdqr_service_ask(struct qdqr_service *service, const struct qdqr_ask *ask, char **ret,
                 size_t *ret_len, struct api_problem *problem)
{
    struct http_request *sent = calloc(1, sizeof *sent);
    struct http_answer answer;
    char digest[96], accept[96], key[96];
    size_t n = 0;
    if (!sent)
        return api_problem_no_memory(problem);
    if (ask->json)
        sent->headers[n++] = "Content-Type: application/json";
    if (ask->size > 0)
        sent->headers[n++] = "Content-Type: application/octet-stream";
    if (ask->size > 0 && ask->digest && digest_is_id(ask->digest)) {
        print_repr_digest(ask->digest, digest, sizeof digest);
        sent->headers[n++] = digest;
    }
    if (ask->accept) {
        snprintf(accept, sizeof accept, "Accept: %s", ask->accept);
        sent->headers[n++] = accept;
    }
    if (ask->key) {
        snprintf(key, sizeof key, "Idempotency-Key: %s", ask->key);
        sent->headers[n++] = key;
    }
    begin(service);
    service->http->total = ask->size;
    bool ok =
        make_request(ask, sent, problem) && request(service, sent, &answer, problem);
    free(sent);
    if (!ok)
        return false;
    if (!answer.body)
        answer.body = strdup("");
    *ret = answer.body;
    *ret_len = answer.len;
    return answer.body || api_problem_no_memory(problem);
}

bool
qdqr_service_has(struct qdqr_service *service, const char *path, bool *ret,
                 struct api_problem *problem)
{
    struct qdqr_ask ask = {.method = "HEAD", .path = path};
    struct http_request *sent = calloc(1, sizeof *sent);
    struct http_answer answer;
    struct api_problem fault = {0};
    if (!sent)
        return api_problem_no_memory(problem);
    begin(service);
    bool ok =
        make_request(&ask, sent, problem) && request(service, sent, &answer, &fault);
    free(sent);
    *ret = ok;
    if (ok)
        http_answer_fini(&answer);
    if (ok || fault.code == API_NOT_FOUND || fault.code == API_FORBIDDEN)
        return true;
    *problem = problem->set ? *problem : fault;
    return false;
}

bool
qdqr_service_fetch(struct qdqr_service *service, const char *path, const char *accept,
                   int fd, struct api_problem *problem)
{
    struct qdqr_ask ask = {.path = path};
    struct http_request *sent = calloc(1, sizeof *sent);
    struct http_answer answer;
    char header[96];
    if (!sent)
        return api_problem_no_memory(problem);
    if (accept) {
        snprintf(header, sizeof header, "Accept: %s", accept);
        sent->headers[0] = header;
    }
    begin(service);
    bool ok = make_request(&ask, sent, problem);
    sent->to_fd = fd;
    sent->max_body = INT64_MAX;
    ok = ok && request(service, sent, &answer, problem);
    free(sent);
    if (ok)
        http_answer_fini(&answer);
    return ok;
}

/* --- events --------------------------------------------------------------- */

/* A stream of server-sent events. */
struct stream {
    struct qdqr_service *service;
    qdqr_event_fn on_event;
    void *arg;
    struct api_problem *problem;
    char *text; /* bytes that have come, to the end of the last whole event */
    size_t len;
    char last[64]; /* the header Last-Event-ID; "": none */
    bool has_ended;
};

/* Returns the value of a field in a block of lines, and its length; NULL: it has none. */
static char *
find_field(char *block, size_t len, const char *name, size_t *ret_len)
{
    size_t n = strlen(name);
    for (char *line = block, *end = block + len; line < end;) {
        char *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop ? stop : end;
        if ((size_t)(stop - line) > n && memcmp(line, name, n) == 0 && line[n] == ':') {
            char *value = line + n + 1;
            value += value < stop && *value == ' ';
            *ret_len = (size_t)(stop - value);
            return value;
        }
        line = stop + 1;
    }
    return NULL;
}

static bool
handle_event(struct stream *stream, char *block, size_t len)
{
    size_t id_len = 0, event_len = 0, data_len = 0;
    char *id = find_field(block, len, "id", &id_len);
    char *event = find_field(block, len, "event", &event_len);
    char *data = find_field(block, len, "data", &data_len);
    char name[16];
    if (!event || !data || event_len >= sizeof name) /* a sign of life */
        return true;
    snprintf(name, sizeof name, "%.*s", (int)event_len, event);
    if (id && id_len < 20)
        snprintf(stream->last, sizeof stream->last, "Last-Event-ID: %.*s", (int)id_len,
                 id);
    stream->has_ended = strcmp(name, "end") == 0;
    begin(stream->service);
    return stream->on_event(stream->arg, name, data, data_len, stream->problem);
}

static bool
on_body(void *arg, const char *bytes, size_t len)
{
    struct stream *stream = arg;
    char *text = stream->len + len < MOST_EVENT
                     ? api_grow(stream->text, stream->len, len + 1, 1)
                     : NULL;
    if (!text)
        return api_problem_no_memory(stream->problem);
    memcpy(text + stream->len, bytes, len);
    stream->text = text;
    stream->len += len;
    text[stream->len] = '\0';
    char *block = text, *end;
    while ((end = strstr(block, "\n\n"))) {
        if (!handle_event(stream, block, (size_t)(end - block)))
            return false;
        block = end + 2;
    }
    stream->len -= (size_t)(block - text);
    memmove(text, block, stream->len + 1);
    return true;
}

/* Reads the stream once. */
static bool
read_stream(struct stream *stream, struct http_request *sent)
{
    struct http_answer answer;
    struct api_problem fault = {0};
    stream->len = 0;
    sent->headers[1] = *stream->last ? stream->last : NULL;
    bool ok = http_send(stream->service->http, sent, &answer, &fault);
    if (stream->problem->set)
        return false;
    if (ok && answer.status == 204)
        stream->has_ended = true;
    if (ok && answer.status >= 400) {
        api_problem_decode(answer.body, answer.len, answer.status, &fault);
        ok = may_pass(&answer, &fault);
    } else if (!ok) {
        drop_word(&fault);
        ok = fault.code == API_REMOTE_UNAVAILABLE && stream->service->reached;
    } else {
        api_problem_set(&fault, API_REMOTE_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
                        "%s: the events stopped", stream->service->options.url);
    }
    http_answer_fini(&answer);
    if (stream->has_ended)
        return true;
    if (ok && pause_longer(stream->service, &fault))
        return true;
    *stream->problem = fault;
    return false;
}

bool
qdqr_service_watch(struct qdqr_service *service, const char *job,
                   qdqr_event_fn on_event, void *arg, struct api_problem *problem)
{
    struct stream stream = {service, on_event, arg, problem, NULL, 0, "", false};
    struct http_request *sent = calloc(1, sizeof *sent);
    CURL *curl = service->http->curl;
    if (!sent)
        return api_problem_no_memory(problem);
    snprintf(sent->url, sizeof sent->url, "/v1/jobs/%s/events", job);
    sent->headers[0] = "Accept: text/event-stream";
    sent->accepts_all = true;
    sent->on_body = on_body;
    sent->on_body_arg = &stream;
    begin(service);
    /* A quiet stream has a sign of life every 15 seconds. */
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 0L);
    bool ok = true;
    while (ok && !stream.has_ended)
        ok = read_stream(&stream, sent);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    free(stream.text);
    free(sent);
    return ok;
}
