/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "http/request.h"
#include "base/log.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define MAX_WAIT 300 /* seconds */
#define MAX_KEY 255

/* --- reading -------------------------------------------------------------- */

static bool
parse_number(const char *text, size_t len, int64_t *ret)
{
    int64_t n = 0;
    if (len == 0 || len > 18)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!isdigit((unsigned char)text[i]))
            return false;
        n = n * 10 + (text[i] - '0');
    }
    *ret = n;
    return true;
}

bool
request_number(const struct request *request, const char *name, int64_t min,
               int64_t max, int64_t absent, int64_t *ret, struct api_problem *p)
{
    int64_t n = absent;
    const char *text = request_query(request, name);
    if (text && (!parse_number(text, strlen(text), &n) || n < min || n > max))
        return api_problem_set(p, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                               "the query's %s is not a whole number from %lld to %lld",
                               name, (long long)min, (long long)max);
    *ret = n;
    return true;
}

/* Finds wait=N in a Prefer header; what cannot be read is ignored (RFC 7240). */
static bool
preferred_wait(const char *prefer, int64_t *ret)
{
    while (prefer && *prefer) {
        size_t len = strcspn(prefer, ",;");
        const char *word = prefer + strspn(prefer, " \t");
        if (!strncasecmp(word, "wait=", 5))
            return parse_number(word + 5, strspn(word + 5, "0123456789"), ret);
        prefer += len;
        prefer += *prefer != '\0';
    }
    return false;
}

bool
request_wait(const struct request *request, int absent, int *ret, struct api_problem *p)
{
    int64_t seconds = absent, preferred;
    if (!request_number(request, "wait", 0, MAX_WAIT, absent, &seconds, p))
        return false;
    if (!request_query(request, "wait") &&
        preferred_wait(request_header(request, "Prefer"), &preferred))
        seconds = preferred < MAX_WAIT ? preferred : MAX_WAIT;
    *ret = (int)seconds;
    return true;
}

bool
request_key(const struct request *request, const char **ret, struct api_problem *p)
{
    const char *key = request_header(request, "Idempotency-Key");
    size_t len = key ? strlen(key) : 0;
    *ret = key;
    if (key && (len == 0 || len > MAX_KEY))
        return api_problem_set(p, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                               "an Idempotency-Key has 1 to %d characters", MAX_KEY);
    for (size_t i = 0; i < len; i++)
        if (key[i] < ' ' || key[i] > '~')
            return api_problem_set(p, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                                   "an Idempotency-Key is printable ASCII");
    return true;
}

/* --- answering ------------------------------------------------------------ */

static void
set_reply(struct request *request, int status, const char *type, char *text)
{
    struct reply *reply = &request->reply;
    reply_fini(reply);
    reply->status = status;
    reply->type = type;
    reply->text = text;
}

void
reply_text(struct request *request, int status, const char *type, char *text)
{
    struct api_problem problem = {0};
    if (text) {
        set_reply(request, status, type, text);
        return;
    }
    api_problem_set(&problem, API_NO_MEMORY, QDQ_AT_NOTHING, NULL, "out of memory");
    reply_problem(request, &problem);
}

void
reply_json(struct request *request, int status, char *text)
{
    reply_text(request, status, "application/json", text);
}

void
reply_problem(struct request *request, const struct api_problem *problem)
{
    int status = api_problem_status(problem->code);
    char quoted[LOG_QUOTED];
    /* How a worker died was logged when it did. */
    if (status == 500 && problem->code != API_WORKER_DIED)
        log_error("request_failed", "request=%s code=%s detail=%s", request->trace.id,
                  api_problem_slug(problem->code), log_quote(quoted, problem->detail));
    set_reply(request, status, "application/problem+json", api_problem_encode(problem));
    if (problem->code == API_METHOD_NOT_ALLOWED)
        reply_header(request, "Allow", "%s", request->allow);
    if (status == 401)
        reply_header(
            request, "WWW-Authenticate", "Bearer%s",
            request_header(request, "Authorization") ? " error=\"invalid_token\"" : "");
    if (problem->code == API_FORBIDDEN)
        reply_header(request, "WWW-Authenticate",
                     "Bearer error=\"insufficient_scope\"");
    if (problem->code == API_BUSY)
        reply_header(request, "Connection", "close");
    if (status == 429 || status == 503 || problem->code == API_NOT_FINISHED)
        reply_header(request, "Retry-After", "1");
}

void
reply_empty(struct request *request, int status)
{
    set_reply(request, status, NULL, NULL);
}

void
reply_file(struct request *request, const char *type, int fd, uint64_t size)
{
    set_reply(request, 200, type, NULL);
    request->reply.fd = fd;
    request->reply.offset = 0;
    request->reply.size = size;
}

void
reply_bundle(struct request *request, struct bundle *bundle)
{
    set_reply(request, 200, "application/x-tar", NULL);
    request->reply.bundle = bundle;
    request->reply.offset = 0;
    request->reply.size = bundle_size(bundle);
}

void
reply_part(struct request *request, const struct api_range *range)
{
    struct reply *reply = &request->reply;
    reply_header(request, "Content-Range", "bytes %llu-%llu/%llu",
                 (unsigned long long)range->first,
                 (unsigned long long)(range->first + range->size - 1),
                 (unsigned long long)reply->size);
    reply->status = 206;
    reply->offset = range->first;
    reply->size = range->size;
}

void
reply_stream(struct request *request, const char *type, const struct stream *stream)
{
    set_reply(request, 200, type, NULL);
    request->reply.stream = *stream;
}

void
reply_header(struct request *request, const char *name, const char *fmt, ...)
{
    struct reply *reply = &request->reply;
    va_list args;
    if (reply->n_headers == REPLY_HEADERS)
        return;
    va_start(args, fmt);
    vsnprintf(reply->headers[reply->n_headers].value,
              sizeof reply->headers[reply->n_headers].value, fmt, args);
    va_end(args);
    reply->headers[reply->n_headers++].name = name;
}

void
reply_fini(struct reply *reply)
{
    free(reply->text);
    reply->text = NULL;
    if (reply->fd >= 0)
        close(reply->fd);
    reply->fd = -1;
    bundle_close(&reply->bundle);
    if (reply->stream.read)
        reply->stream.free(reply->stream.arg);
    reply->stream = (struct stream){0};
}
