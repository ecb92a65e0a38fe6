/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "http/response.h"
#include "base/clock.h"
#include "http/conns.h"
#include "http/request.h"
#include "http/tls.h"
#include "library/bundle.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define STREAM_BLOCK (4u << 10)
#define BUNDLE_BLOCK (128u << 10)

/* The state of a stream while it is sent. */
struct sent_stream {
    struct stream stream;
    int socket;
};

/* The state of a bundle while its bytes from `offset` on are sent. */
struct sent_bundle {
    struct bundle *bundle;
    uint64_t offset;
};

static ssize_t
read_stream(void *arg, uint64_t at, char *to, size_t size)
{
    struct sent_stream *sent = arg;
    (void)at;
    ssize_t n = sent->stream.read(sent->stream.arg, sent->socket, to, size);
    return n > 0    ? n
           : n == 0 ? MHD_CONTENT_READER_END_OF_STREAM
                    : MHD_CONTENT_READER_END_WITH_ERROR;
}

static void
free_stream(void *arg)
{
    struct sent_stream *sent = arg;
    sent->stream.free(sent->stream.arg);
    free(sent);
}

static ssize_t
read_bundle(void *arg, uint64_t at, char *to, size_t size)
{
    struct sent_bundle *sent = arg;
    ssize_t n = bundle_read(sent->bundle, sent->offset + at, to, size);
    return n > 0 ? n : MHD_CONTENT_READER_END_WITH_ERROR;
}

static void
free_bundle(void *arg)
{
    struct sent_bundle *sent = arg;
    bundle_close(&sent->bundle);
    free(sent);
}

static struct MHD_Response *
make_bundle(struct reply *reply)
{
    struct sent_bundle *sent = malloc(sizeof *sent);
    if (!sent)
        return NULL;
    *sent = (struct sent_bundle){reply->bundle, reply->offset};
    struct MHD_Response *response = MHD_create_response_from_callback(
        reply->size, BUNDLE_BLOCK, read_bundle, sent, free_bundle);
    if (response)
        reply->bundle = NULL;
    else
        free(sent);
    return response;
}

static struct MHD_Response *
make_stream(struct MHD_Connection *connection, struct stream *stream)
{
    int socket = conn_socket(connection);
    struct sent_stream *sent = socket >= 0 ? malloc(sizeof *sent) : NULL;
    if (!sent)
        return NULL;
    *sent = (struct sent_stream){*stream, socket};
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, sent, free_stream);
    if (response)
        *stream = (struct stream){0};
    else
        free(sent);
    return response;
}

/*
 * Marks the end of the body by closing the connection. Otherwise libmicrohttpd 0.9.75
 * answers HEAD with the last chunk of a chunked body, which the client takes for the
 * next answer.
 */
static void
end_with_connection(const struct request *request, struct MHD_Response *response)
{
    if (response && strcmp(request->method, MHD_HTTP_METHOD_HEAD) == 0)
        MHD_set_response_options(response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT,
                                 MHD_RO_END);
}

static struct MHD_Response *
make_response(const struct request *request, struct reply *reply)
{
    struct MHD_Response *response;
    static char nothing[1];
    if (reply->stream.read) {
        response = make_stream(request->connection, &reply->stream);
        end_with_connection(request, response);
    } else if (reply->bundle) {
        response = make_bundle(reply);
    } else if (reply->fd >= 0) {
        response = MHD_create_response_from_fd_at_offset64(reply->size, reply->fd,
                                                           reply->offset);
        if (response)
            reply->fd = -1;
    } else if (reply->text) {
        response = MHD_create_response_from_buffer(strlen(reply->text), reply->text,
                                                   MHD_RESPMEM_MUST_FREE);
        if (response)
            reply->text = NULL;
    } else {
        response = MHD_create_response_from_buffer(0, nothing, MHD_RESPMEM_PERSISTENT);
    }
    if (response && reply->type)
        MHD_add_response_header(response, "Content-Type", reply->type);
    if (response)
        MHD_add_response_header(response, "X-Request-Id", request->trace.id);
    if (response && *request->trace.parent)
        MHD_add_response_header(response, "traceparent", request->trace.parent);
    if (response && request->ends_connection)
        MHD_add_response_header(response, "Connection", "close");
    for (size_t i = 0; response && i < reply->n_headers; i++)
        MHD_add_response_header(response, reply->headers[i].name,
                                reply->headers[i].value);
    return response;
}

enum MHD_Result
response_send(struct request *request)
{
    const struct reply *reply = &request->reply;
    bool whole = reply->bundle || reply->fd >= 0;
    if (strcmp(request->method, MHD_HTTP_METHOD_HEAD) != 0)
        request->sent = whole ? reply->size : reply->text ? strlen(reply->text) : 0;
    struct MHD_Response *response = make_response(request, &request->reply);
    if (!response)
        return MHD_NO;
    enum MHD_Result result = MHD_queue_response(
        request->connection, (unsigned)request->reply.status, response);
    MHD_destroy_response(response);
    return result;
}

/* --- replies before the end of the body ----------------------------------- */

void
response_linger(struct MHD_Connection *connection)
{
    int socket = conn_socket(connection);
    int64_t deadline = clock_steady_ms() + DROP_MS, left;
    size_t dropped = 0;
    char chunk[8192];
    if (socket < 0)
        return;
    shutdown(socket, SHUT_WR);
    while (dropped < DROP_BYTES && (left = deadline - clock_steady_ms()) > 0) {
        struct pollfd poll_fd = {.fd = socket, .events = POLLIN};
        if (poll(&poll_fd, 1, (int)left) <= 0)
            return;
        ssize_t n = recv(socket, chunk, sizeof chunk, MSG_DONTWAIT);
        if (n <= 0)
            return;
        dropped += (size_t)n;
    }
}

void
response_break_off(struct request *request)
{
    int socket = conn_socket(request->connection);
    char *text = NULL;
    size_t size;
    reply_problem(request, &request->problem);
    const struct reply *reply = &request->reply;
    FILE *stream = socket >= 0 && reply->text ? open_memstream(&text, &size) : NULL;
    if (!stream)
        return;
    fprintf(stream,
            "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Type: %s\r\n"
            "Content-Length: %zu\r\nX-Request-Id: %s\r\n",
            reply->status, MHD_get_reason_phrase_for((unsigned)reply->status),
            reply->type, strlen(reply->text), request->trace.id);
    for (size_t i = 0; i < reply->n_headers; i++)
        fprintf(stream, "%s: %s\r\n", reply->headers[i].name, reply->headers[i].value);
    fprintf(stream, "\r\n%s", reply->text);
    if (!fclose(stream) &&
        (tls_of(request->connection)
             ? tls_send(request->connection, text, size)
             : send(socket, text, size, MSG_DONTWAIT | MSG_NOSIGNAL) > 0))
        response_linger(request->connection);
    free(text);
}
