/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "http/server.h"
#include "base/clock.h"
#include "http/access_log.h"
#include "http/conditions.h"
#include "http/conns.h"
#include "http/framing.h"
#include "http/head.h"
#include "http/response.h"
#include "http/tls.h"
#include "settings/settings.h"
#include "tenants/tenants.h"

#include <microhttpd.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAGIC 0x72657131u
#define STACK_SIZE (512u << 10)
#define MIN_POOL (32u << 10) /* so that bodies arrive in pieces of 16 KB */

/* Time for which a stopping daemon waits for requests under way. */
#define STOP_MS 5000

struct http {
    struct http_needs needs;
    const struct service *service; /* service of requests without a tenant */
    struct conns *conns;
    struct tls *tls; /* NULL: TLS is off */
    struct MHD_Daemon *daemon;
    char host[128];    /* the host in http.listen; "" for a Unix socket */
    atomic_int active; /* requests that have begun and not ended */
    uint32_t start;    /* names this daemon in the ids of requests */
    atomic_uint_fast64_t n_requests;
};

/*
 * The request that this thread reads, since its request line arrived. Each connection
 * has a thread, and the library's log callback is not told which connection it concerns.
 */
static _Thread_local struct reading {
    struct MHD_Connection *connection; /* NULL: none */
    struct request *request;           /* NULL before its head has arrived */
    struct api_problem problem;        /* of the request line */
} reading;

/* --- one request ---------------------------------------------------------- */

/* Runs the handler. The connection's timeout limits the client's silence, not the
   handler's time, so it is off while the handler runs. */
static enum MHD_Result
run_handler(struct request *request)
{
    const struct settings *settings = request->service->settings;
    conn_begin(request->conn, CONN_ANSWER);
    MHD_set_connection_option(request->connection, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
    if (!request->problem.set && body_finish(&request->body, &request->problem))
        request->handler(request);
    if (request->problem.set || !request->reply.status)
        reply_problem(request, &request->problem);
    conditions_apply(request);
    MHD_set_connection_option(request->connection, MHD_CONNECTION_OPTION_TIMEOUT,
                              (unsigned)settings->http_timeout);
    return response_send(request);
}

static bool
has_body(const struct request *request)
{
    const char *length = request_header(request, "Content-Length");
    return request_header(request, "Transfer-Encoding") ||
           (length && strtoull(length, NULL, 10) > 0);
}

/* Fills in a request whose head has arrived, at least in part. */
static void
init_request(struct http *http, struct MHD_Connection *connection, const char *method,
             struct request *request)
{
    *request = (struct request){.magic = MAGIC,
                                .service = http->service,
                                .connection = connection,
                                .conn = conn_of(connection),
                                .method = method,
                                .reply.fd = -1};
    access_log_begin(request, http->start, atomic_fetch_add(&http->n_requests, 1) + 1);
}

/* Checks the head of a request. An error is answered before the client sends the
   body, or while it does so when it does not wait for "100 Continue". */
static enum MHD_Result
begin_request(struct http *http, struct MHD_Connection *connection,
              const struct request_line *line, void **ret)
{
    struct conn *conn = conn_of(connection);
    struct request *request = conn ? calloc(1, sizeof *request) : NULL;
    if (!request)
        return MHD_NO;
    conn_begin(conn, CONN_BODY);
    init_request(http, connection, line->method, request);
    *ret = reading.request = request;
    atomic_fetch_add(&http->active, 1);
    request->problem = reading.problem;
    if (head_read(&http->needs, http->host, request, line, &request->problem) ||
        !has_body(request))
        return MHD_YES;
    request->linger = true;
    reply_problem(request, &request->problem);
    return response_send(request);
}

/* Adds bytes to the body. After an error, reads and drops the rest of the body up to
   a limit of bytes and time, then breaks the connection off. */
static enum MHD_Result
receive_body(struct request *request, const char *data, size_t len)
{
    if (!request->problem.set) {
        if (!body_receive(&request->body, data, len, &request->problem)) {
            request->body.received = 0;
            request->drop_until = clock_steady_ms() + DROP_MS;
        }
        return MHD_YES;
    }
    request->body.received += len;
    if (request->body.received <= DROP_BYTES && clock_steady_ms() < request->drop_until)
        return MHD_YES;
    response_break_off(request);
    return MHD_NO;
}

static enum MHD_Result
on_request(void *arg, struct MHD_Connection *connection, const char *url,
           const char *method, const char *version, const char *data, size_t *len,
           void **state)
{
    struct request *request = *state;
    if (!request)
        return begin_request(arg, connection,
                             &(struct request_line){method, framing_path(url), version},
                             state);
    if (request->magic != MAGIC)
        abort();
    if (!*len)
        return request->reply.status ? MHD_YES : run_handler(request);
    size_t taken = *len;
    *len = 0;
    conn_received(request->conn, taken);
    request->received += taken;
    return receive_body(request, data, taken);
}

/* Is called when the first line of a request has arrived. */
static void *
on_line(void *arg, const char *uri, struct MHD_Connection *connection)
{
    struct conn *conn = conn_of(connection);
    (void)arg;
    reading = (struct reading){.connection = connection};
    (void)framing_check_target(uri, &reading.problem);
    if (conn)
        conn_begin(conn, CONN_HEAD);
    return NULL;
}

/* Is called at the end of a request, also of a broken one, and frees its temporary
   files. */
static void
on_completed(void *arg, struct MHD_Connection *connection, void **state,
             enum MHD_RequestTerminationCode code)
{
    struct http *http = arg;
    struct request *request = *state;
    reading = (struct reading){0};
    if (!request)
        return;
    if (request->linger && code == MHD_REQUEST_TERMINATED_COMPLETED_OK)
        response_linger(connection);
    access_log_end(request);
    body_fini(&request->body);
    reply_fini(&request->reply);
    conn_begin(request->conn, CONN_IDLE);
    free(request);
    *state = NULL;
    atomic_fetch_sub(&http->active, 1);
}

/* --- requests that the library refuses ------------------------------------ */

/* The problems of the statuses with which the library refuses a request. */
static const struct {
    unsigned status;
    enum api_code code;
    const char *detail;
} refusals[] = {
    {413, API_TOO_LARGE, "the body or its length is over every limit"},
    {414, API_HEADER_TOO_LARGE, "the request line is over the limit"},
    {431, API_HEADER_TOO_LARGE,
     "the request has too many headers or members of its query, or they are too long "
     "(http.max_header)"},
    {400, API_BAD_REQUEST, "the request is not well-formed HTTP/1.1"},
};

static void
set_refusal(unsigned status, struct api_problem *p)
{
    size_t i = 0, last = sizeof refusals / sizeof *refusals - 1;
    while (i < last && refusals[i].status != status)
        i++;
    (void)api_fail(p, refusals[i].code, "%s", refusals[i].detail);
}

/* Answers with a problem document past the library, and ends the connection. */
static void
refuse(struct http *http, unsigned status)
{
    struct request without = {0}, *request = reading.request;
    int socket = conn_socket(reading.connection);
    if (socket < 0 || (request && request->reply.status))
        return;
    if (!request) {
        init_request(http, reading.connection, "-", &without);
        request = &without;
    }
    if (!request->problem.set)
        set_refusal(status, &request->problem);
    response_break_off(request);
    shutdown(socket, SHUT_RDWR);
    if (request != &without)
        return;
    access_log_end(request);
    reply_fini(&request->reply);
}

/*
 * The library answers some malformed requests by itself: with HTML, and version 0.9.75
 * sometimes with two heads. It logs this first. So the problem document is sent here,
 * before, and the library's answer finds a closed socket.
 */
static void
on_library_log(void *arg, const char *fmt, va_list args)
{
    static const char refusal[] = "Error processing request (HTTP response code is %u ";
    if (reading.connection && !strncmp(fmt, refusal, sizeof refusal - 1))
        refuse(arg, va_arg(args, unsigned));
}

/* --- opening and closing the server --------------------------------------- */

/* Starts libmicrohttpd, which owns the listener's descriptor on success. */
static struct MHD_Daemon *
start_library(struct http *http, int listener)
{
    char priorities[] = TLS_PRIORITIES;
    const struct settings *settings = http->needs.settings;
    /* libmicrohttpd uses half of a connection's pool as the buffer for bodies. */
    size_t pool = 2 * (size_t)settings->http_max_header;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, tls_callback()},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, priorities},
        {MHD_OPTION_END, 0, NULL},
    };
    return MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL |
            MHD_USE_ERROR_LOG | MHD_USE_ITC | /* needed by MHD_quiesce_daemon() */
            (http->tls ? MHD_USE_TLS : MHD_NO_FLAG),
        0, NULL, NULL, on_request, http,
        /* clang-format off */
        MHD_OPTION_EXTERNAL_LOGGER, on_library_log, http,
        MHD_OPTION_LISTEN_SOCKET, listener,
        MHD_OPTION_STRICT_FOR_CLIENT, framing_strictness(),
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, http,
        MHD_OPTION_NOTIFY_CONNECTION, conns_notify, http->conns,
        MHD_OPTION_URI_LOG_CALLBACK, on_line, http,
        MHD_OPTION_CONNECTION_LIMIT, conns_limit(http->conns),
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)settings->http_timeout,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, pool < MIN_POOL ? MIN_POOL : pool,
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
server_open(const struct http_needs *needs, const struct listener *listener,
            struct http **ret, struct api_problem *p)
{
    struct http *http = calloc(1, sizeof *http);
    if (!http) {
        close(listener->fd);
        return api_problem_no_memory(p);
    }
    http->needs = *needs;
    http->start = (uint32_t)clock_wall_ms();
    memcpy(http->host, listener->host, sizeof http->host);
    bool ok = tenants_get(needs->tenants, "", false, &http->service, p) &&
              (!*needs->settings->http_tls_cert ||
               tls_open(needs->settings, &http->tls, p)) &&
              conns_open(needs->settings, http->tls, &http->conns, p);
    if (ok)
        conns_count(http->conns, tenants_metrics(needs->tenants));
    if (ok && !(http->daemon = start_library(http, listener->fd)))
        ok = api_fail(p, API_IO, "the HTTP server cannot be started");
    if (!ok) {
        close(listener->fd);
        free_http(http);
        return false;
    }
    *ret = http;
    return true;
}

bool
server_reload(struct http *http, struct api_problem *p)
{
    return !http->tls || tls_reload(http->tls, p);
}

void
server_close(struct http **http)
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
