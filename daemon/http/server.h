/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP server. Each connection has a thread of its own, so handlers may block: on
 * the disk, on a worker, on a job's end. That keeps handlers linear, where suspending
 * and resuming connections would turn each into a state machine. The cost is bounded by
 * http.connections, by small stacks, and by the timeout of idle connections.
 */
#ifndef QDQD_HTTP_SERVER_H
#define QDQD_HTTP_SERVER_H

#include "http/listen.h"
#include "http/request.h"

struct http;
struct settings;
struct tenants;
struct tokens;

/* The objects that the server uses; all are borrowed. */
struct http_needs {
    handler_fn (*handler_of)(enum api_route route);
    const struct settings *settings;
    struct tenants *tenants;
    struct tokens *tokens;
};

/* Serves at the listener and takes ownership of its descriptor. */
bool server_open(const struct http_needs *needs, const struct listener *listener,
                 struct http **ret, struct api_problem *p);
/* Reads certificate and key again; on failure the old ones stay in use. */
bool server_reload(struct http *http, struct api_problem *p);
/* Stops accepting, lets running answers finish for some seconds, closes all
   connections and waits for their threads. */
void server_close(struct http **http);

#endif
