/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections that are open: how many there are in all and of one address, and which
 * of them keep a place by sending next to nothing.
 *
 * One that is too many is not turned away, because it may ask for the daemon's health: it
 * gets one of a few places in reserve, where nothing else is answered, and where the next
 * one that comes takes the place of the one that came first. So /healthz has a place
 * whatever the others do.
 */
#ifndef QDQD_HTTP_CONNS_H
#define QDQD_HTTP_CONNS_H

#include "settings/settings.h"
#include "api/problem.h"

#include <microhttpd.h>

struct conns;
struct conn;
struct metrics;
struct tls;

enum conn_phase {
    CONN_NEW,    /* its first request has not come */
    CONN_IDLE,   /* between two requests */
    CONN_HEAD,   /* the head of a request comes in */
    CONN_BODY,   /* its body does */
    CONN_ANSWER, /* nothing is asked of the client */
};

/* `tls` is that of all connections, NULL: none. Borrowed. */
bool conns_open(const struct settings *settings, struct tls *tls, struct conns **ret,
                struct api_problem *p);
/* Where open connections are counted. Before there are any. */
void conns_count(struct conns *conns, struct metrics *metrics);
/* There are no connections any more. */
void conns_close(struct conns **conns);
/* There is one that came a moment ago and has not asked for anything yet. */
bool conns_await(struct conns *conns);
/* How many the HTTP library is to allow. */
unsigned conns_limit(const struct conns *conns);

/* MHD_OPTION_NOTIFY_CONNECTION */
void conns_notify(void *arg, struct MHD_Connection *connection, void **context,
                  enum MHD_ConnectionNotificationCode code);

/* NULL when there was no memory for it. */
struct conn *conn_of(struct MHD_Connection *connection);
/* Only the daemon's health is to be told to this one. */
bool conn_is_reserve(const struct conn *conn);
void conn_begin(struct conn *conn, enum conn_phase phase);
void conn_received(struct conn *conn, size_t len);

#endif
