/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "http/server.h"
#include "base/clock.h"
#include "http/access_log.h"
#include "http/conns.h"
#include "http/head.h"
#include "http/response.h"
#include "http/tls.h"
#include "settings/settings.h"
#include "tenants/tenants.h"

#include <microhttpd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* --- one request ---------------------------------------------------------- */

/* Runs the handler. The connection's timeout limits the client's silence, not the
   handler's time, so it is off while the handler runs. */
static enum MHD_Result
run_handler(struct request *request)
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
    return response_send(request);
}

static bool
has_body(const struct request *request)
{
    const char *length = request_header(request, "Content-Length");
    return request_header(request, "Transfer-Encoding") ||
           (length && strtoull(length, NULL, 10) > 0);
}

/* Checks the head of a request. An error is answered before the client sends the
   body, or while it does so when it does not wait for "100 Continue". */
static enum MHD_Result
begin_request(struct http *http, struct MHD_Connection *connection, const char *method,
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
    access_log_begin(request, http->start, atomic_fetch_add(&http->n_requests, 1) + 1);
    if (head_read(&http->needs, http->host, request, method, url, &request->problem) ||
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
        if (!body_take(&request->body, data, len, &request->problem)) {
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
    (void)version;
    if (!request)
        return begin_request(arg, connection, method, url, state);
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
    (void)uri;
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
            MHD_USE_ITC | /* needed by MHD_quiesce_daemon() */
            (http->tls ? MHD_USE_TLS : MHD_NO_FLAG),
        0, NULL, NULL, on_request, http,
        /* clang-format off */
        MHD_OPTION_LISTEN_SOCKET, listener,
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
http_open(const struct http_needs *needs, const struct listener *listener,
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
