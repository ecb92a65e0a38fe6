/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to PostgreSQL: no call waits for longer than it was told to. */
#include "config.h"
#include "base/clock.h"
#include "store/postgres/inner.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_SECONDS "3"

/* Maps the class of an SQLSTATE. A request may be sent again after an error of the
   connection, of the server's state, or of transactions that hindered each other. A statement
   that is refused for its values is refused whenever it is sent. */
static enum api_code
code_of(const char *state)
{
    static const char *const passing[] = {"08", "40", "53", "55", "57", "58", "25"};
    static const char *const refused[] = {"21", "22", "23", "44", "54"};
    if (!state)
        return API_UNAVAILABLE;
    if (!strcmp(state, "53100"))
        return API_DISK_FULL;
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
        if (!strncmp(state, passing[i], 2))
            return API_UNAVAILABLE;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (!strncmp(state, refused[i], 2))
            return API_INTERNAL;
    return API_IO;
}

/* Copies a message of libpq on one line. */
static void
fill(struct postgres_failure *failure, enum api_code code, bool lost, const char *text)
{
    failure->code = code;
    failure->lost = lost;
    snprintf(failure->text, sizeof failure->text, "%s", text);
    for (char *at = failure->text; *at; at++)
        if (*at == '\n' || *at == '\t')
            *at = ' ';
    for (size_t n = strlen(failure->text); n && failure->text[n - 1] == ' ';)
        failure->text[--n] = '\0';
}

PGconn *
postgres_connect(const char *url, struct postgres_failure *failure)
{
    const char *const keys[] = {"connect_timeout", "tcp_user_timeout",
                                "application_name", "dbname", NULL};
    const char *const values[] = {CONNECT_SECONDS, "5000", "qdqd", url, NULL};
    PGconn *conn = PQconnectdbParams(keys, values, 1);
    if (conn && PQstatus(conn) == CONNECTION_OK && PQsetnonblocking(conn, 1) == 0)
        return conn;
    fill(failure, API_UNAVAILABLE, true, conn ? PQerrorMessage(conn) : "out of memory");
    PQfinish(conn);
    return NULL;
}

/* Waits until the socket has data, or can take some. Returns false at the deadline. */
static bool
wait_for_socket(PGconn *conn, bool unsent, int64_t deadline)
{
    struct pollfd fd = {PQsocket(conn), (short)(POLLIN | (unsent ? POLLOUT : 0)), 0};
    int64_t left = deadline - clock_steady_ms();
    int n;
    do
        n = poll(&fd, 1, left > 0 ? (int)left : 0);
    while (n < 0 && errno == EINTR);
    return n > 0;
}

/* Returns the last result of the query; NULL at the deadline or without memory. */
static PGresult *
receive(PGconn *conn, int64_t deadline)
{
    PGresult *last = NULL, *next;
    int unsent = 1;
    for (;;) {
        if (unsent)
            unsent = PQflush(conn);
        while (PQisBusy(conn)) {
            if (!wait_for_socket(conn, unsent > 0, deadline) || !PQconsumeInput(conn)) {
                PQclear(last);
                return NULL;
            }
            if (unsent > 0)
                unsent = PQflush(conn);
        }
        if (!(next = PQgetResult(conn)))
            return last;
        ExecStatusType status = last ? PQresultStatus(last) : PGRES_COMMAND_OK;
        if (status == PGRES_FATAL_ERROR) {
            PQclear(next);
        } else {
            PQclear(last);
            last = next;
        }
    }
}

static int
send_query(PGconn *conn, const struct postgres_query *query)
{
    if (query->n < 0)
        return PQsendQuery(conn, query->sql);
    if (query->name)
        return PQsendQueryPrepared(conn, query->name, query->n, query->values, NULL,
                                   NULL, 0);
    return PQsendQueryParams(conn, query->sql, query->n, query->types, query->values,
                             NULL, NULL, 0);
}

/* Waits for the answer to what was sent. */
static PGresult *
receive_answer(PGconn *conn, int sent, int64_t ms, struct postgres_failure *failure)
{
    int64_t deadline = clock_steady_ms() + ms;
    PGresult *result = sent ? receive(conn, deadline) : NULL;
    ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
        return result;
    bool bad = PQstatus(conn) != CONNECTION_OK;
    if (result)
        fill(failure, code_of(PQresultErrorField(result, PG_DIAG_SQLSTATE)), bad,
             PQresultErrorMessage(result));
    else
        fill(failure, API_UNAVAILABLE, true,
             clock_steady_ms() >= deadline ? "PostgreSQL does not answer"
                                           : PQerrorMessage(conn));
    PQclear(result);
    return NULL;
}

PGresult *
postgres_ask(PGconn *conn, const struct postgres_query *query, int64_t ms,
             struct postgres_failure *failure)
{
    return receive_answer(conn, send_query(conn, query), ms, failure);
}

bool
postgres_prepare(PGconn *conn, const struct postgres_query *query, int64_t ms,
                 struct postgres_failure *failure)
{
    int sent = PQsendPrepare(conn, query->name, query->sql, query->n, query->types);
    PGresult *result = receive_answer(conn, sent, ms, failure);
    PQclear(result);
    return result;
}

bool
postgres_set_up(PGconn *conn, int64_t ms, struct postgres_failure *failure)
{
    const struct postgres_query query = {
        .sql =
            "SET idle_in_transaction_session_timeout = 4000;"
            " SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off;"
            /* A scan that no index can replace would count as costly enough to compile. */
            " SET jit = off",
        .n = -1};
    PGresult *result = postgres_ask(conn, &query, ms, failure);
    PQclear(result);
    return result;
}

bool
postgres_find_pooler(PGconn *conn, int64_t ms, bool *ret,
                     struct postgres_failure *failure)
{
    const struct postgres_query query = {.sql = "SELECT pg_backend_pid()", .n = -1};
    PGresult *result = postgres_ask(conn, &query, ms, failure);
    if (result)
        *ret = PQntuples(result) != 1 ||
               strtol(PQgetvalue(result, 0, 0), NULL, 10) != PQbackendPID(conn);
    PQclear(result);
    return result;
}
