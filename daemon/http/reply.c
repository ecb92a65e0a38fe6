/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "http/reply.h"
#include "base/log.h"
#include "http/request.h"
#include "library/bundle.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
    api_problem_no_memory(&problem);
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
    /* A worker's death was logged when it happened. */
    if (status == 500 && problem->code != API_WORKER_DIED)
        log_error("request_failed", "request=%s code=%s detail=%s", request->trace.id,
                  api_problem_slug(problem->code), log_quote(quoted, problem->detail));
    set_reply(request, status, "application/problem+json", api_problem_encode(problem));
    if (problem->code == API_METHOD_NOT_ALLOWED)
        reply_header(request, "Allow", "%s", request->allow);
    if (problem->code == API_SIGNATURE_INVALID)
        reply_header(request, "WWW-Authenticate", "Signature");
    else if (status == 401)
        reply_header(
            request, "WWW-Authenticate", "Bearer%s",
            request_header(request, "Authorization") ? " error=\"invalid_token\"" : "");
    if (problem->code == API_FORBIDDEN)
        reply_header(request, "WWW-Authenticate",
                     "Bearer error=\"insufficient_scope\"");
    if (status == 415)
        reply_header(request, "Accept-Encoding", "identity");
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
