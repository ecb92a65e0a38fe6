/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "http/server.h"
#include "base/clock.h"
#include "base/log.h"
#include "http/access_log.h"
#include "http/conns.h"
#include "http/tls.h"
#include "jobs/job.h"
#include "settings/settings.h"
#include "tenants/tokens.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAGIC 0x72657131u
#define STACK_SIZE (512u << 10)
#define LEAST_POOL (32u << 10) /* gives bodies in pieces of 16 KB */
#define STREAM_BLOCK (4u << 10)
#define BUNDLE_BLOCK (128u << 10)

/* What is read of a body that nobody wants, so that the client sees the answer. */
#define DROP_BYTES (8u << 20)
#define DROP_MS 2000

/* What answers get that are on their way when the daemon stops. */
#define STOP_MS 5000

struct http {
    handler_fn (*handler_of)(enum api_route route);
    struct tenants *tenants;
    const struct settings *settings;
    struct tokens *tokens;
    const struct service *service; /* of who has no name */
    struct conns *conns;
    struct tls *tls; /* NULL: none */
    struct MHD_Daemon *daemon;
    char host[128];    /* of http.listen; "" for a unix socket */
    atomic_int active; /* requests that have begun and not ended */
    uint32_t start;    /* names this daemon in the ids of requests */
    atomic_uint_fast64_t n_requests;
};

/* --- reading -------------------------------------------------------------- */

const char *
request_header(const struct request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

const char *
request_query(const struct request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND,
                                       name);
}

struct list {
    const char *name;
    char *text;
    size_t len;
    bool full; /* memory is */
};

static enum MHD_Result
join_header(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct list *list = arg;
    (void)kind;
    if (strcasecmp(name, list->name) != 0)
        return MHD_YES;
    size_t len = strlen(value);
    char *grown = realloc(list->text, list->len + len + 2);
    list->full = !grown;
    if (!grown)
        return MHD_NO;
    if (list->len)
        grown[list->len++] = ',';
    memcpy(grown + list->len, value, len + 1);
    list->text = grown;
    list->len += len;
    return MHD_YES;
}

bool
request_list(const struct request *request, const char *name, char **ret,
             struct api_problem *p)
{
    struct list list = {.name = name};
    MHD_get_connection_values(request->connection, MHD_HEADER_KIND, join_header, &list);
    if (list.full) {
        free(list.text);
        return api_problem_set(p, API_NO_MEMORY, QDQ_AT_NOTHING, NULL, "out of memory");
    }
    *ret = list.text;
    return true;
}

struct counter {
    const char *name;
    int n;
};

static enum MHD_Result
count_header(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct counter *counter = arg;
    (void)kind;
    (void)value;
    counter->n += !strcasecmp(name, counter->name);
    return MHD_YES;
}

static int
count_headers(const struct request *request, const char *name)
{
    struct counter counter = {.name = name};
    MHD_get_connection_values(request->connection, MHD_HEADER_KIND, count_header,
                              &counter);
    return counter.n;
}

/* --- what can be refused before the body is read -------------------------- */

/* Is the host one of http.hosts? */
static bool
is_listed(const char *list, const char *host, size_t len)
{
    while (*list) {
        size_t n = strcspn(list, ", ");
        if ((n == 1 && *list == '*') || (n == len && !strncasecmp(list, host, len)))
            return true;
        list += n;
        list += strspn(list, ", ");
    }
    return false;
}

/* Is the host of "HOST:PORT" or "[HOST]:PORT" one of ours? The port does not matter. */
static bool
is_our_host(const struct http *http, const char *host)
{
    const char *const ours[] = {"localhost", "127.0.0.1", "::1", http->host};
    bool bracket = *host == '[';
    host += bracket;
    size_t len = strcspn(host, bracket ? "]" : ":");
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (len && strlen(ours[i]) == len && !strncasecmp(ours[i], host, len))
            return true;
    return len && is_listed(http->settings->http_hosts, host, len);
}

/*
 * A page of a foreign site that a browser shows on this machine names that site in
 * Origin, and in Host when it had its name resolved to this machine. No browser speaks
 * to a unix socket.
 */
static bool
check_host(const struct http *http, const struct request *request,
           struct api_problem *p)
{
    const char *host = request_header(request, "Host");
    const char *origin = request_header(request, "Origin");
    const char *scheme_end = origin ? strstr(origin, "://") : NULL;
    if (!http->host[0])
        return true;
    if (host && !is_our_host(http, host))
        return api_problem_set(p, API_HOST_NOT_ALLOWED, QDQ_AT_NOTHING, NULL,
                               "the Host header names a foreign host");
    if (origin && !(scheme_end && is_our_host(http, scheme_end + 3)))
        return api_problem_set(p, API_HOST_NOT_ALLOWED, QDQ_AT_NOTHING, NULL,
                               "the Origin header names a foreign host");
    return true;
}

static uint64_t
body_limit(const struct request *request)
{
    return (uint64_t)request->service->settings->http_max_body;
}

/* Two lengths are two readings of one message: a proxy may have taken the other. */
static bool
check_length(const struct request *request, uint64_t limit, struct api_problem *p)
{
    const char *length = request_header(request, "Content-Length");
    if (count_headers(request, "Content-Length") +
            count_headers(request, "Transfer-Encoding") >
        1)
        return api_problem_set(p, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                               "the request says its length more than once");
    if (length && strtoull(length, NULL, 10) > limit)
        return api_problem_set(p, API_TOO_LARGE, QDQ_AT_NOTHING, NULL,
                               "the body is over the limit of %llu bytes",
                               (unsigned long long)limit);
    return true;
}

/* Is there room for another job? One that is asked for again by its key needs none. */
static bool
check_room(const struct request *request, struct api_problem *p)
{
    struct jobs *jobs = request->service->jobs;
    enum api_route route = request->match.route;
    char id[JOB_ID_SIZE];
    const char *key = NULL;
    bool known = false;
    if (route != API_ROUTE_jobs_post && route != API_ROUTE_quantize_post)
        return true;
    if (route == API_ROUTE_jobs_post &&
        (!request_key(request, &key, p) ||
         (key && !jobs_find_key(jobs, key, NULL, id, &known, p))))
        return false;
    return known || jobs_check_room(jobs, p);
}

/* Is there room for a body that is stored? What does not say its length is looked after
   while it comes. */
static bool
check_disk(const struct request *request, struct api_problem *p)
{
    const char *length = request_header(request, "Content-Length");
    return request->match.body == API_BODY_NONE ||
           blobs_check_room(library_blobs(request->service->library),
                            length ? strtoull(length, NULL, 10) : 0, p);
}

/* A blob's path says what its bytes hash to, and no header may say anything else. */
static bool
read_blob_id(struct request *request, struct api_problem *p)
{
    char *digest = request->body.digest;
    const char *id = request->match.id;
    if (!digest_is_id(id))
        return api_problem_set(p, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                               "a blob's id is \"sha256:\" and 64 hex digits in lower "
                               "case");
    if (*digest && strcmp(digest, id) != 0)
        return api_problem_set(p, API_DIGEST_MISMATCH, QDQ_AT_NOTHING, NULL,
                               "Repr-Digest says %s, the path says %s", digest, id);
    snprintf(digest, sizeof request->body.digest, "%.*s", API_HEADER_ID - 1, id);
    return true;
}

/* The digest of a body that is one file, when the client sends it. */
static bool
read_digest(struct request *request, struct api_problem *p)
{
    char *list = NULL;
    enum api_body kind = request->match.body;
    bool blob = kind == API_BODY_BLOB;
    if (kind == API_BODY_NONE || kind == API_BODY_JOB)
        return true;
    bool ok = request_list(request, "Repr-Digest", &list, p) &&
              api_header_digest(list, request->body.digest, p) &&
              (!blob || read_blob_id(request, p));
    free(list);
    return ok;
}

/* The scope that a token needs. A path without a route needs one, too: strangers are not
   to learn what there is. */
static enum api_scope
scope_of(const struct request *request)
{
    bool reads = !strcmp(request->method, "GET") || !strcmp(request->method, "HEAD");
    if (request->found)
        return api_routes[request->match.route].scope;
    return reads ? API_SCOPE_READ : API_SCOPE_SUBMIT;
}

static bool
check_scope(const struct token *who, const struct request *request,
            struct api_problem *p)
{
    static const unsigned scopes[] = {
        [API_SCOPE_READ] = TOKEN_READ,
        [API_SCOPE_SUBMIT] = TOKEN_SUBMIT,
        [API_SCOPE_METRICS] = TOKEN_METRICS,
        [API_SCOPE_ADMIN] = TOKEN_ADMIN,
    };
    unsigned scope = scopes[scope_of(request)];
    char name[TOKEN_SCOPES];
    token_scopes_print(scope, name);
    return (who->scopes & (TOKEN_ADMIN | scope)) ||
           api_problem_set(p, API_FORBIDDEN, QDQ_AT_NOTHING, NULL,
                           "the access token has not the scope %s", name);
}

/* The tenant whose jobs are to be listed, NULL: that is not said. */
static const char *
listed_tenant(const struct request *request)
{
    return request->match.route == API_ROUTE_jobs_get ? request_query(request, "tenant")
                                                      : NULL;
}

/* Who is it, and may they do this? From then on the request is their tenant's, or that of
   the tenant that an administrator names. */
static bool
check_token(const struct http *http, struct request *request, struct api_problem *p)
{
    struct token who;
    const char *listed = listed_tenant(request);
    const char *tenant = listed ? listed : request_header(request, "Qdqd-Tenant");
    if (!tokens_check(http->tokens, request_header(request, "Authorization"), &who,
                      p) ||
        !check_scope(&who, request, p))
        return false;
    if (!tenant || !strcmp(tenant, who.tenant))
        return tenants_get(http->tenants, who.tenant, true, &request->service, p);
    if (!(who.scopes & TOKEN_ADMIN))
        return api_problem_set(p, API_FORBIDDEN, QDQ_AT_NOTHING, NULL,
                               "only an administrator acts for another tenant");
    request->of_all = listed && !strcmp(listed, ALL_TENANTS);
    return tenants_get(http->tenants, request->of_all ? "" : tenant, false,
                       &request->service, p);
}

static bool
check_place(const struct request *request, struct api_problem *p)
{
    return !conn_is_reserve(request->conn) ||
           api_problem_set(p, API_BUSY, QDQ_AT_NOTHING, NULL,
                           "there are too many connections (http.connections, "
                           "http.connections_per_address)");
}

static bool
check_head_size(const struct request *request, struct api_problem *p)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(
        request->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    int64_t most = request->service->settings->http_max_header;
    return (info && info->header_size <= (size_t)most) ||
           api_problem_set(p, API_HEADER_TOO_LARGE, QDQ_AT_NOTHING, NULL,
                           "the head of the request is over the limit of %lld bytes "
                           "(http.max_header)",
                           (long long)most);
}

static bool
check_head(const struct http *http, struct request *request, const char *method,
           const char *url, struct api_problem *p)
{
    struct api_problem no_route = {0};
    bool found = api_route_match(method, url, &request->match, request->allow,
                                 sizeof request->allow, &no_route);
    request->found = found;
    bool anybody = scope_of(request) == API_SCOPE_ANYBODY;
    if (!check_head_size(request, p) || !check_host(http, request, p) ||
        !check_length(request, body_limit(request), p) ||
        (!anybody && (!check_place(request, p) || !check_token(http, request, p))))
        return false;
    if (!found) {
        *p = no_route;
        return false;
    }
    request->handler = http->handler_of(request->match.route);
    if (!check_room(request, p))
        return false;
    return body_begin(&request->body, request->match.body,
                      library_blobs(request->service->library), body_limit(request),
                      request->connection, request_header(request, "Content-Type"),
                      p) &&
           read_digest(request, p) && check_length(request, request->body.limit, p) &&
           check_disk(request, p);
}

/* --- answering ------------------------------------------------------------ */

/* A reply's stream, and where it goes. */
struct sent_stream {
    struct stream stream;
    int socket;
};

/* The same of a bundle, whose bytes are sent from `offset`. */
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
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct sent_stream *sent = info ? malloc(sizeof *sent) : NULL;
    if (!sent)
        return NULL;
    *sent = (struct sent_stream){*stream, info->connect_fd};
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, sent, free_stream);
    if (response)
        *stream = (struct stream){0};
    else
        free(sent);
    return response;
}

/*
 * To HEAD libmicrohttpd 0.9.75 sends the end of a body in chunks, which the client takes
 * for the next answer; where the connection's end is the body's, it does not.
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
    for (size_t i = 0; response && i < reply->n_headers; i++)
        MHD_add_response_header(response, reply->headers[i].name,
                                reply->headers[i].value);
    return response;
}

static enum MHD_Result
send_reply(struct request *request)
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

/*
 * Runs the handler. It may block for longer than the connection's timeout, which is
 * about the client's silence, not ours: so it is off meanwhile.
 */
static enum MHD_Result
answer(struct request *request)
{
    const struct settings *settings = request->service->settings;
    conn_begin(request->conn, CONN_ANSWER);
    MHD_set_connection_option(request->connection, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
    if (!request->problem.set)
        (void)body_finish(&request->body, &request->problem);
    if (request->problem.set)
        reply_problem(request, &request->problem);
    else
        request->handler(request);
    MHD_set_connection_option(request->connection, MHD_CONNECTION_OPTION_TIMEOUT,
                              (unsigned)settings->http_timeout);
    return send_reply(request);
}

/* --- the way of a request ------------------------------------------------- */

static bool
has_body(const struct request *request)
{
    const char *length = request_header(request, "Content-Length");
    return request_header(request, "Transfer-Encoding") ||
           (length && strtoull(length, NULL, 10) > 0);
}

/*
 * The head has come. What is wrong already is answered before the body is sent (or,
 * from clients that do not wait for "100 Continue", while it is).
 */
static enum MHD_Result
begin(struct http *http, struct MHD_Connection *connection, const char *method,
      const char *url, void **ret)
{
    struct conn *conn = conn_of(connection);
    struct request *request = conn ? calloc(1, sizeof *request) : NULL;
    if (!request)
        return MHD_NO;
    conn_begin(conn, CONN_BODY);
    *request = (struct request){.magic = MAGIC,
                                .service = http->service,
                                .connection = connection,
                                .conn = conn,
                                .method = method,
                                .reply.fd = -1};
    *ret = request;
    atomic_fetch_add(&http->active, 1);
    watch_begin(request, http->start, atomic_fetch_add(&http->n_requests, 1) + 1);
    if (check_head(http, request, method, url, &request->problem) || !has_body(request))
        return MHD_YES;
    request->linger = true;
    reply_problem(request, &request->problem);
    return send_reply(request);
}

/*
 * Closing a socket with unread bytes in it makes the kernel reset the connection, and
 * the client may never see the answer. So the rest of the body is read for a while.
 */
static void
linger(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    int64_t deadline = clock_steady_ms() + DROP_MS, left;
    size_t dropped = 0;
    char chunk[8192];
    if (!info)
        return;
    shutdown(info->connect_fd, SHUT_WR);
    while (dropped < DROP_BYTES && (left = deadline - clock_steady_ms()) > 0) {
        struct pollfd poll_fd = {.fd = info->connect_fd, .events = POLLIN};
        if (poll(&poll_fd, 1, (int)left) <= 0)
            return;
        ssize_t n = recv(info->connect_fd, chunk, sizeof chunk, MSG_DONTWAIT);
        if (n <= 0)
            return;
        dropped += (size_t)n;
    }
}

/*
 * Answers in the middle of a body, which the library cannot. What is sent is small and
 * the first that goes this way, so it fits into the socket's buffer.
 */
static void
break_off(struct request *request)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    char *text = NULL;
    size_t size;
    reply_problem(request, &request->problem);
    const struct reply *reply = &request->reply;
    FILE *stream = info && reply->text ? open_memstream(&text, &size) : NULL;
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
             : send(info->connect_fd, text, size, MSG_DONTWAIT | MSG_NOSIGNAL) > 0))
        linger(request->connection);
    free(text);
}

/* After a mistake in it the rest of a body is dropped, but not without end. */
static enum MHD_Result
take(struct request *request, const char *data, size_t len)
{
    if (!request->problem.set) {
        if (!body_take(&request->body, data, len, &request->problem)) {
            request->body.received = 0;
            request->drop_until = clock_steady_ms() + DROP_MS;
        }
        return MHD_YES;
    }
    request->body.received += len;
    if (request->body.received <= DROP_BYTES && clock_steady_ms() < request->drop_until)
        return MHD_YES;
    break_off(request);
    return MHD_NO;
}

static enum MHD_Result
on_request(void *arg, struct MHD_Connection *connection, const char *url,
           const char *method, const char *version, const char *data, size_t *len,
           void **state)
{
    struct request *request = *state;
    (void)version;
    if (!request)
        return begin(arg, connection, method, url, state);
    if (request->magic != MAGIC)
        abort();
    if (!*len)
        return request->reply.status ? MHD_YES : answer(request);
    size_t taken = *len;
    *len = 0;
    conn_received(request->conn, taken);
    request->received += taken;
    return take(request, data, taken);
}

/* The first line of a request has come. */
static void *
on_line(void *arg, const char *uri, struct MHD_Connection *connection)
{
    struct conn *conn = conn_of(connection);
    (void)arg;
    (void)uri;
    if (conn)
        conn_begin(conn, CONN_HEAD);
    return NULL;
}

/* However the request ended: its temporary files end here. */
static void
on_completed(void *arg, struct MHD_Connection *connection, void **state,
             enum MHD_RequestTerminationCode code)
{
    struct http *http = arg;
    struct request *request = *state;
    if (!request)
        return;
    if (request->linger && code == MHD_REQUEST_TERMINATED_COMPLETED_OK)
        linger(connection);
    watch_end(request);
    body_fini(&request->body);
    reply_fini(&request->reply);
    conn_begin(request->conn, CONN_IDLE);
    free(request);
    *state = NULL;
    atomic_fetch_sub(&http->active, 1);
}

/* The listener's descriptor becomes the library's, where this succeeds. */
static struct MHD_Daemon *
start_library(struct http *http, int listener)
{
    char priorities[] = TLS_PRIORITIES;
    const struct settings *settings = http->settings;
    /* Half of the pool is what bodies come in. */
    size_t pool = 2 * (size_t)settings->http_max_header;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, tls_callback()},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, priorities},
        {MHD_OPTION_END, 0, NULL},
    };
    return MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL |
            MHD_USE_ITC | /* for MHD_quiesce_daemon() */
            (http->tls ? MHD_USE_TLS : MHD_NO_FLAG),
        0, NULL, NULL, on_request, http,
        /* clang-format off */
        MHD_OPTION_LISTEN_SOCKET, listener,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, http,
        MHD_OPTION_NOTIFY_CONNECTION, conns_notify, http->conns,
        MHD_OPTION_URI_LOG_CALLBACK, on_line, http,
        MHD_OPTION_CONNECTION_LIMIT, conns_limit(http->conns),
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)settings->http_timeout,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, pool < LEAST_POOL ? LEAST_POOL : pool,
        MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_SIZE,
        MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
        MHD_OPTION_ARRAY, http->tls ? tls : tls + 2,
        MHD_OPTION_END);
    /* clang-format on */
}

static void
free_http(struct http *http)
{
    conns_close(&http->conns);
    tls_close(&http->tls);
    free(http);
}

bool
http_open(const struct http_needs *needs, const struct listener *listener,
          struct http **ret, struct api_problem *p)
{
    struct http *http = calloc(1, sizeof *http);
    if (!http) {
        close(listener->fd);
        return api_problem_set(p, API_NO_MEMORY, QDQ_AT_NOTHING, NULL, "out of memory");
    }
    http->handler_of = needs->handler_of;
    http->tenants = needs->tenants;
    http->tokens = needs->tokens;
    http->settings = needs->settings;
    http->start = (uint32_t)clock_wall_ms();
    memcpy(http->host, listener->host, sizeof http->host);
    bool ok =
        tenants_get(http->tenants, "", false, &http->service, p) &&
        (!*http->settings->http_tls_cert || tls_open(http->settings, &http->tls, p)) &&
        conns_open(http->settings, http->tls, &http->conns, p);
    if (ok)
        conns_count(http->conns, tenants_metrics(http->tenants));
    if (ok && !(http->daemon = start_library(http, listener->fd)))
        ok = api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL,
                             "the HTTP server cannot be started");
    if (!ok) {
        close(listener->fd);
        free_http(http);
        return false;
    }
    *ret = http;
    return true;
}

bool
http_reload(struct http *http, struct api_problem *p)
{
    return !http->tls || tls_reload(http->tls, p);
}

void
http_close(struct http **http)
{
    const struct timespec a_moment = {0, 10 * 1000000};
    int64_t deadline = clock_steady_ms() + STOP_MS;
    if (!*http)
        return;
    close(MHD_quiesce_daemon((*http)->daemon));
    while ((atomic_load(&(*http)->active) || conns_await((*http)->conns)) &&
           clock_steady_ms() < deadline)
        nanosleep(&a_moment, NULL);
    MHD_stop_daemon((*http)->daemon);
    free_http(*http);
    *http = NULL;
}
