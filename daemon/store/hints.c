/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "store/hints.h"
#include "base/clock.h"
#include "store/inner.h"
#include "store/postgres.h"

#include <poll.h>
#include <time.h>

#define AGAIN_MS 1000 /* between two attempts to connect */
#define ANSWER_MS 4000

void
store_hint(struct store *store)
{
    struct api_problem ignored = {0};
    if (!store->hints)
        return;
    lock_acquire(&store->lock);
    (void)run(store, HINT, &ignored);
    lock_release(&store->lock);
}

struct hint_listener {
    const char *url;
    PGconn *conn;     /* NULL: it is not connected */
    int64_t tried_at; /* steady clock of the last attempt; 0: there was none */
};

struct hint_listener *
hint_listener_new(const char *url)
{
    struct hint_listener *listener = calloc(1, sizeof *listener);
    if (listener)
        listener->url = url;
    return listener;
}

void
hint_listener_free(struct hint_listener **listener)
{
    if (!*listener)
        return;
    PQfinish((*listener)->conn);
    free(*listener);
    *listener = NULL;
}

static void
disconnect(struct hint_listener *listener)
{
    PQfinish(listener->conn);
    listener->conn = NULL;
}

/* Connects, unless that was tried a moment ago. */
static void
connect_again(struct hint_listener *listener)
{
    struct postgres_failure ignored;
    int64_t now = clock_steady_ms();
    if (listener->conn || (listener->tried_at && now - listener->tried_at < AGAIN_MS))
        return;
    listener->tried_at = now;
    listener->conn = postgres_connect(listener->url, &ignored);
    if (!listener->conn)
        return;
    PGresult *result = postgres_ask(
        listener->conn, &(struct postgres_query){.sql = "LISTEN qdqd", .n = -1},
        ANSWER_MS, &ignored);
    if (!result)
        disconnect(listener);
    PQclear(result);
}

/* Takes all hints that have come. */
static bool
read_hints(struct hint_listener *listener)
{
    bool any = false;
    PGnotify *one;
    if (!PQconsumeInput(listener->conn)) {
        disconnect(listener);
        return false;
    }
    while ((one = PQnotifies(listener->conn))) {
        any = true;
        PQfreemem(one);
    }
    return any;
}

bool
hint_listener_wait(struct hint_listener *listener, int64_t ms)
{
    connect_again(listener);
    if (!listener->conn) {
        const struct timespec a_while = {ms / 1000, ms % 1000 * 1000000};
        nanosleep(&a_while, NULL);
        return false;
    }
    struct pollfd fd = {.fd = PQsocket(listener->conn), .events = POLLIN};
    return poll(&fd, 1, (int)ms) > 0 && read_hints(listener);
}
