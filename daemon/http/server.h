/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP server. Each connection has a thread of its own, so handlers may block: on
 * the disk, on a worker, on a job's end. That keeps them linear code, where suspending
 * and resuming connections would make a state machine of each. What it costs is bounded
 * by http.connections, by small stacks, and by the timeout of idle connections.
 */
#ifndef QDQD_HTTP_SERVER_H
#define QDQD_HTTP_SERVER_H

#include "http/listen.h"
#include "http/request.h"

struct http;
struct settings;
struct tenants;
struct tokens;

/* What it works with; all of it is borrowed. */
struct http_needs {
    handler_fn (*handler_of)(enum api_route route);
    const struct settings *settings;
    struct tenants *tenants;
    struct tokens *tokens;
};

/* Serves at the listener, whose descriptor it takes. */
bool http_open(const struct http_needs *needs, const struct listener *listener,
               struct http **ret, struct api_problem *p);
/* Reads certificate and key again; where that fails those stay that were. */
bool http_reload(struct http *http, struct api_problem *p);
/* Takes no more connections, gives the answers that are on their way some seconds, ends all
   connections and waits for their threads. */
void http_close(struct http **http);

#endif
