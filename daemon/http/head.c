/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "http/head.h"
#include "http/conditions.h"
#include "http/conns.h"
#include "http/framing.h"
#include "http/request.h"
#include "http/server.h"
#include "jobs/job.h"
#include "settings/settings.h"
#include "tenants/tokens.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SHORT_BODY (16u << 10) /* bytes */

/* Returns whether a list in the form of http.hosts names the host. */
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

/* Returns whether "HOST:PORT" or "[HOST]:PORT" names this daemon's host. The port
   does not matter. */
static bool
is_our_host(const struct http_needs *needs, const char *our_host, const char *host)
{
    const char *const ours[] = {"localhost", "127.0.0.1", "::1", our_host};
    bool bracket = *host == '[';
    host += bracket;
    size_t len = strcspn(host, bracket ? "]" : ":");
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (len && strlen(ours[i]) == len && !strncasecmp(ours[i], host, len))
            return true;
    return len && is_listed(needs->settings->http_hosts, host, len);
}

/*
 * Refuses requests that a web page of a foreign site makes from a browser on this
 * machine. The browser sends the site's name in Origin, and also in Host when the
 * site's name was made to resolve to this machine (DNS rebinding). A Unix socket is not
 * checked, because no browser speaks to one.
 */
static bool
check_host(const struct http_needs *needs, const char *our_host,
           const struct request *request, struct api_problem *p)
{
    const char *host = request_header(request, "Host");
    const char *origin = request_header(request, "Origin");
    const char *scheme_end = origin ? strstr(origin, "://") : NULL;
    if (!*our_host)
        return true;
    if (host && !is_our_host(needs, our_host, host))
        return api_fail(p, API_HOST_NOT_ALLOWED,
                        "the Host header names a foreign host");
    if (origin && !(scheme_end && is_our_host(needs, our_host, scheme_end + 3)))
        return api_fail(p, API_HOST_NOT_ALLOWED,
                        "the Origin header names a foreign host");
    return true;
}

static uint64_t
body_limit(const struct request *request)
{
    return (uint64_t)request->service->settings->http_max_body;
}

static bool
check_length(const struct request *request, uint64_t limit, struct api_problem *p)
{
    const char *length = request_header(request, "Content-Length");
    if (length && strtoull(length, NULL, 10) > limit)
        return api_fail(p, API_TOO_LARGE, "the body is over the limit of %llu bytes",
                        (unsigned long long)limit);
    return true;
}

/* Returns whether the body is so short that nothing is saved by refusing it before it is read:
   the room is checked again when the job is added. */
static bool
is_short(const struct request *request)
{
    const char *length = request_header(request, "Content-Length");
    return length && strtoull(length, NULL, 10) <= SHORT_BODY;
}

/* Checks the queue's room for another job. A job that its idempotency key finds
   again needs none. */
static bool
check_queue(const struct request *request, struct api_problem *p)
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
    return known || is_short(request) || jobs_check_room(jobs, p);
}

/* Checks the disk's room for a body that is stored. A body without Content-Length is
   checked while it arrives. */
static bool
check_disk(const struct request *request, struct api_problem *p)
{
    const char *length = request_header(request, "Content-Length");
    return request->match.body == API_BODY_NONE ||
           request->match.body == API_BODY_MESSAGE ||
           blobs_check_room(library_blobs(request->service->library),
                            length ? strtoull(length, NULL, 10) : 0, p);
}

/* Reads the digest that a blob's path gives. The header Repr-Digest must not give
   another one. */
static bool
read_blob_id(struct request *request, struct api_problem *p)
{
    char *digest = request->body.digest;
    const char *id = request->match.id;
    if (!digest_is_id(id))
        return api_fail(p, API_BAD_REQUEST,
                        "a blob's id is \"sha256:\" and 64 hex digits in lower case");
    if (*digest && strcmp(digest, id) != 0)
        return api_fail(p, API_DIGEST_MISMATCH, "Repr-Digest says %s, the path says %s",
                        digest, id);
    snprintf(digest, sizeof request->body.digest, "%.*s", API_HEADER_ID - 1, id);
    return true;
}

/* Reads the client's digest, if any, of a body that is one file. */
static bool
read_digest(struct request *request, struct api_problem *p)
{
    char *list = NULL;
    enum api_body kind = request->match.body;
    bool blob = kind == API_BODY_BLOB;
    if (kind == API_BODY_NONE || kind == API_BODY_JOB || kind == API_BODY_MESSAGE)
        return true;
    bool ok = request_list(request, "Repr-Digest", &list, p) &&
              api_header_digest(list, request->body.digest, p) &&
              (!blob || read_blob_id(request, p));
    free(list);
    return ok;
}

/* Returns whether the list names no coding, or only "identity". */
static bool
is_identity(const char *list)
{
    static const char word[] = "identity";
    for (const char *at = list ? list : ""; *(at += strspn(at, ", \t"));) {
        size_t len = strcspn(at, ", \t");
        if (len != sizeof word - 1 || strncasecmp(at, word, len) != 0)
            return false;
        at += len;
    }
    return true;
}

/* Refuses a body in a coding such as gzip, which would be stored, hashed and read as if it were
   the file itself. */
static bool
check_coding(const struct request *request, struct api_problem *p)
{
    char *list = NULL;
    if (request->match.body == API_BODY_NONE)
        return true;
    if (!request_list(request, "Content-Encoding", &list, p))
        return false;
    bool ok = is_identity(list) || api_fail(p, API_UNSUPPORTED_MEDIA_TYPE,
                                            "the body has the Content-Encoding "
                                            "\"%.64s\"; send it without one, as it is",
                                            list);
    free(list);
    return ok;
}

/* Returns the scope that the token needs. A path without a route needs one, too, so
   that requests without a token cannot find out which paths exist. */
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
           api_fail(p, API_FORBIDDEN, "the access token has not the scope %s", name);
}

/* Checks the access token and its scope. The request then belongs to the token's
   tenant, or to the tenant that an administrator names. */
static bool
check_token(const struct http_needs *needs, struct request *request,
            struct api_problem *p)
{
    /* the tenant whose jobs are to be listed; NULL: the request names none */
    const char *listed = request->match.route == API_ROUTE_jobs_get
                             ? request_query(request, "tenant")
                             : NULL;
    const char *tenant = listed ? listed : request_header(request, "Qdqd-Tenant");
    const struct token *who = &request->who;
    request->tokens = needs->tokens;
    if (!tokens_check(needs->tokens, request_header(request, "Authorization"),
                      &request->who, p) ||
        !check_scope(who, request, p))
        return false;
    request->scopes = who->scopes;
    if (!tenant || !strcmp(tenant, who->tenant))
        return tenants_get(needs->tenants, who->tenant, true, &request->service, p);
    if (!(who->scopes & TOKEN_ADMIN))
        return api_fail(p, API_FORBIDDEN,
                        "only an administrator acts for another tenant");
    request->of_all = listed && !strcmp(listed, ALL_TENANTS);
    return tenants_get(needs->tenants, request->of_all ? "" : tenant, false,
                       &request->service, p);
}

static bool
check_connection_limit(const struct request *request, struct api_problem *p)
{
    return !conn_is_reserve(request->conn) ||
           api_fail(p, API_BUSY,
                    "there are too many connections (http.connections, "
                    "http.connections_per_address)");
}

/* Keeps one tenant from taking all connections. Without tokens there is one tenant. */
static bool
check_share(const struct http_needs *needs, struct request *request,
            struct api_problem *p)
{
    if (!request->conn || !tokens_count(needs->tokens) ||
        conn_claim(request->conn, request->service))
        return true;
    return api_fail(p, API_BUSY,
                    "the tenant has many connections, and those that are left are for "
                    "others (http.connections, http.connections_per_address)");
}

static bool
check_head_size(const struct request *request, struct api_problem *p)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(
        request->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    int64_t most = request->service->settings->http_max_header;
    return (info && info->header_size <= (size_t)most) ||
           api_fail(p, API_HEADER_TOO_LARGE,
                    "the head of the request is over the limit of %lld bytes "
                    "(http.max_header)",
                    (long long)most);
}

/* Checks whether the request can be read in one way only. After one that cannot, the
   connection ends: nobody knows where the next request begins. */
static bool
check_framing(struct request *request, const char *version, struct api_problem *p)
{
    bool ok = !p->set && framing_check_head(request, version, p);
    request->ends_connection = !ok || framing_ends_connection(request);
    request->linger = !ok;
    return ok;
}

/* Returns whether the path can be read. */
static bool
has_get(const char *url)
{
    struct api_match match;
    struct api_problem problem = {0};
    char allow[64];
    return api_route_match("GET", url, &match, allow, sizeof allow, &problem);
}

bool
head_read(const struct http_needs *needs, const char *host, struct request *request,
          const struct request_line *line, struct api_problem *p)
{
    struct api_problem no_route = {0};
    bool found = api_route_match(line->method, line->url, &request->match,
                                 request->allow, sizeof request->allow, &no_route);
    request->found = found;
    enum api_scope scope = scope_of(request);
    bool has_token = scope != API_SCOPE_ANYBODY && scope != API_SCOPE_SIGNED;
    if (!check_framing(request, line->version, p) || !check_head_size(request, p) ||
        !check_host(needs, host, request, p) || !framing_check_query(request, p) ||
        !check_length(request, body_limit(request), p) ||
        (scope != API_SCOPE_ANYBODY && !check_connection_limit(request, p)) ||
        (has_token &&
         (!check_token(needs, request, p) || !check_share(needs, request, p))) ||
        (found && request->match.route == API_ROUTE_readyz &&
         !tokens_check_rows(needs->tokens, p)))
        return false;
    if (!found) {
        *p = no_route;
        return false;
    }
    request->handler = needs->handler_of(request->match.route);
    if (!check_coding(request, p) || !check_queue(request, p))
        return false;
    return body_begin(&request->body, request->match.body,
                      library_blobs(request->service->library), body_limit(request),
                      request->connection, request_header(request, "Content-Type"),
                      p) &&
           read_digest(request, p) && check_length(request, request->body.limit, p) &&
           conditions_check(request, has_get(line->url), p) && check_disk(request, p);
}
