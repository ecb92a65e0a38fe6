/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The open connections: how many there are in all and from one address, and which of
 * them occupy a place while sending almost nothing.
 *
 * A connection beyond the limit is not refused, because it may ask for the daemon's
 * health: it gets one of a few reserved places, where only that is answered, and where
 * a newer connection replaces the oldest. So /healthz has a place whatever other
 * clients do.
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
    CONN_NEW,    /* its first request has not arrived */
    CONN_IDLE,   /* between two requests */
    CONN_HEAD,   /* the head of a request is arriving */
    CONN_BODY,   /* the body of a request is arriving */
    CONN_ANSWER, /* the daemon works or answers; the client need not send anything */
};

/* Opens the table. `tls` is shared by all connections; NULL: none. Both are
   borrowed. */
bool conns_open(const struct settings *settings, struct tls *tls, struct conns **ret,
                struct api_problem *p);
/* Sets where open connections are counted. Must be called before there are any. */
void conns_count(struct conns *conns, struct metrics *metrics);
/* Frees the table. All connections must be closed. */
void conns_close(struct conns **conns);
/* Returns whether a connection was just accepted and has not sent anything yet. */
bool conns_await(struct conns *conns);
/* Returns the number of connections that the HTTP library must allow. */
unsigned conns_limit(const struct conns *conns);

/* The callback for MHD_OPTION_NOTIFY_CONNECTION. */
void conns_notify(void *arg, struct MHD_Connection *connection, void **context,
                  enum MHD_ConnectionNotificationCode code);

/* Returns the entry of a connection; NULL when there was no memory for it. */
struct conn *conn_of(struct MHD_Connection *connection);
/* Returns a connection's socket, which the library owns; -1: it is not known. */
int conn_socket(struct MHD_Connection *connection);
/* Returns whether this connection may only ask for the daemon's health. */
bool conn_is_reserve(const struct conn *conn);
/*
 * Notes whose request a connection carries: `owner` is that tenant's, and is only compared.
 * Returns false when the last quarter of the places is reached, of all or of the client's
 * address, and the owner has a sixteenth of them or more: these are kept for other tenants.
 */
bool conn_claim(struct conn *conn, const void *owner);
void conn_begin(struct conn *conn, enum conn_phase phase);
void conn_received(struct conn *conn, size_t len);

#endif
