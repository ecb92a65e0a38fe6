/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "store/hints.h"
#include "base/check.h"
#include "base/clock.h"
#include "store/inner.h"
#include "store/postgres/inner.h"
#include "api/grow.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define AGAIN_MS 1000 /* between two attempts to connect */
#define ANSWER_MS 4000

/* --- looks ----------------------------------------------------------------- */

static int
compare_glances(const void *a, const void *b)
{
    const struct store_glance *one = a, *other = b;
    return strcmp(one->id, other->id);
}

static bool
add_glance(struct stmt *stmt, struct store_glance **list, size_t *n,
           struct api_problem *p)
{
    struct store_glance *grown = api_grow(*list, *n, 1, sizeof *grown);
    if (!grown)
        return api_problem_no_memory(p);
    *list = grown;
    column_chars(stmt, 0, grown[*n].id, sizeof grown->id);
    column_chars(stmt, 1, grown[*n].version, sizeof grown->version);
    ++*n;
    return true;
}

bool
store_look(struct store *store, const char *ids, bool *ret_queued,
           struct store_glance **ret, size_t *ret_n, struct api_problem *p)
{
    bool ok = true;
    int rc = DB_ROW;
    struct store_glance *list = NULL;
    size_t n = 0;
    QDQD_CHECK(store_is_shared(store));
    lock_acquire(&store->lock);
    struct stmt *stmt = &store->statements[LOOK];
    bind_text(stmt, 1, ids);
    while (ok && (rc = step(stmt)) == DB_ROW)
        ok = add_glance(stmt, &list, &n, p);
    ok = ok && (rc == DB_DONE || fail(store, p));
    done(stmt);
    lock_release(&store->lock);
    *ret = NULL;
    *ret_n = 0;
    if (!ok) {
        free(list);
        return false;
    }
    if (n > 0)
        qsort(list, n, sizeof *list, compare_glances);
    /* The first row is about the queue; it has no id. */
    *ret_queued = n && *list[0].version;
    if (n)
        memmove(list, list + 1, --n * sizeof *list);
    *ret = list;
    *ret_n = n;
    return true;
}

/* --- hints ----------------------------------------------------------------- */

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
