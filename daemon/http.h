/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP server. Each connection has a thread of its own, so handlers may block: on
 * the disk, on a worker, on a job's end. That keeps them linear code, where suspending
 * and resuming connections would make a state machine of each. What it costs is bounded
 * by http.connections, by small stacks, and by the timeout of idle connections.
 */
#ifndef QDQD_HTTP_H
#define QDQD_HTTP_H

#include "listen.h"
#include "request.h"

struct http;

/* Serves at the listener, whose descriptor it takes. `service` is borrowed. */
bool http_open(const struct service *service, const struct listener *listener,
               struct http **ret, struct api_problem *p);
/* Takes no more connections, gives the answers that are on their way some seconds, ends all
   connections and waits for their threads. */
void http_close(struct http **http);

#endif
