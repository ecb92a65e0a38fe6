/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "http/conns.h"
#include "base/clock.h"
#include "base/lock.h"
#include "http/tls.h"
#include "watch/metrics.h"

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#define RESERVE 16
/* connections beyond the limits whose sockets are shut down and whose threads have
   not ended yet */
#define ENDING 32
#define CHECK_MS 250
/* time to wait for the first request of a new connection when the daemon stops */
#define FIRST_REQUEST_MS 500

METRIC(connections, GAUGE, "qdqd_http_connections", &metric_unlabelled, ONE,
       "Open connections.");

struct conn {
    struct conns *conns;
    int socket;
    /* for IPv6 the first 64 bits, which one network shares; all zero: no address */
    unsigned char address[16];
    bool reserve;      /* it occupies a reserved place; constant */
    bool cut;          /* its socket was shut down; guarded by the lock of conns */
    const void *owner; /* whose last request it carried; guarded by the lock of conns */
    _Atomic enum conn_phase phase;
    /* when the phase began; in a body, when its rate was last checked */
    atomic_int_fast64_t since;
    /* bytes of the body: all, and those before the last check */
    atomic_uint_fast64_t received, looked;
    struct conn *next, *before;
};

struct conns {
    const struct settings *settings;
    struct tls *tls;
    struct metrics *metrics;
    pthread_t thread;
    struct lock lock;
    pthread_cond_t closed;
    /* The lock guards these members: */
    struct conn *newest, *oldest;
    /* ordinary places, and reserved places without those that were shut down */
    size_t n, n_reserve;
    size_t n_cut; /* shut down, and still counted by libmicrohttpd */
    bool closing;
};

/* --- one connection ------------------------------------------------------- */

/*
 * From version 1.0 of the library on, every question about a connection is answered in
 * one and the same place. So what is found is read before the next question is asked.
 */
struct conn *
conn_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

int
conn_socket(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

struct tls *
tls_of(struct MHD_Connection *connection)
{
    const struct conn *conn = conn_of(connection);
    return conn ? conn->conns->tls : NULL;
}

bool
conn_is_reserve(const struct conn *conn)
{
    return conn->reserve;
}

void
conn_begin(struct conn *conn, enum conn_phase phase)
{
    /* The first request has one time limit for the whole of its head. */
    if (phase == CONN_HEAD && conn->phase == CONN_NEW)
        return;
    /* `since` is written first. So a reader that finds `since` unchanged has not
       read members of two phases. */
    conn->since = clock_steady_ms();
    conn->received = conn->looked = 0;
    conn->phase = phase;
}

void
conn_received(struct conn *conn, size_t len)
{
    conn->received += len;
}

/* Shuts the socket down. The connection's thread then reads an end of file and ends.
   The caller holds the lock. */
static void
shut_down(struct conn *conn)
{
    lock_assert_held(&conn->conns->lock);
    if (conn->cut)
        return;
    conn->cut = true;
    conn->conns->n_cut++;
    conn->conns->n_reserve -= conn->reserve;
    shutdown(conn->socket, SHUT_RDWR);
}

/* --- adding and removing connections -------------------------------------- */

static void
read_address(const struct sockaddr *from, unsigned char ret[16])
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    memset(ret, 0, 16);
    if (from && from->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, from, sizeof in);
        memcpy(ret, mapped, sizeof mapped);
        memcpy(ret + sizeof mapped, &in.sin_addr, 4);
    }
    if (from && from->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, from, sizeof in6);
        bool is_v4 = !memcmp(&in6.sin6_addr, mapped, sizeof mapped);
        bool is_loopback = IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
        memcpy(ret, &in6.sin6_addr, is_v4 || is_loopback ? 16 : 8);
    }
}

/* Counts the connections of an address; 0 when there is no address. The caller holds the
   lock. */
static int64_t
count_of_address(const struct conns *conns, const unsigned char address[16])
{
    lock_assert_held(&conns->lock);
    static const unsigned char none[16];
    int64_t n = 0;
    if (!memcmp(address, none, sizeof none))
        return 0;
    for (const struct conn *c = conns->newest; c; c = c->next)
        n += !c->reserve && !memcmp(c->address, address, sizeof none);
    return n;
}

/* Counts the other connections that carry an owner's requests. The caller holds the lock. */
static int64_t
count_of_owner(const struct conn *conn, const void *owner)
{
    int64_t n = 0;
    lock_assert_held(&conn->conns->lock);
    for (const struct conn *c = conn->conns->newest; c; c = c->next)
        n += c != conn && !c->reserve && !c->cut && c->owner == owner;
    return n;
}

bool
conn_claim(struct conn *conn, const void *owner)
{
    struct conns *conns = conn->conns;
    int64_t all = conns->settings->http_connections;
    int64_t one = conns->settings->http_connections_per_address;
    int64_t share = (one < all ? one : all) / 16;
    lock_acquire(&conns->lock);
    bool is_crowded = (int64_t)conns->n > all - all / 4 ||
                      count_of_address(conns, conn->address) > one - one / 4;
    bool may = !is_crowded || count_of_owner(conn, owner) < (share > 0 ? share : 1);
    if (may)
        conn->owner = owner;
    lock_release(&conns->lock);
    return may;
}

/* Returns whether the connection is silent: every received byte was read, and no
   request is being answered. */
static bool
is_silent(const struct conn *conn)
{
    int pending = 0;
    return conn->phase <= CONN_HEAD &&
           (ioctl(conn->socket, FIONREAD, &pending) != 0 || pending == 0);
}

/* Finds the reserved connection to shut down for a new one: the oldest silent one,
   or else the oldest. The caller holds the lock. */
static struct conn *
find_replaceable(const struct conns *conns)
{
    lock_assert_held(&conns->lock);
    struct conn *first = NULL;
    for (struct conn *c = conns->oldest; c; c = c->before) {
        if (!c->reserve || c->cut)
            continue;
        if (is_silent(c))
            return c;
        if (!first)
            first = c;
    }
    return first;
}

/* Adds a connection, in a reserved place when the limits are reached. The caller
   holds the lock. */
static void
add_connection(struct conns *conns, struct conn *conn)
{
    lock_assert_held(&conns->lock);
    conn->reserve = conns->n >= (size_t)conns->settings->http_connections ||
                    count_of_address(conns, conn->address) >=
                        conns->settings->http_connections_per_address;
    if (conn->reserve && conns->n_reserve >= RESERVE) {
        struct conn *first = find_replaceable(conns);
        if (first)
            shut_down(first);
    }
    conns->n += !conn->reserve;
    conns->n_reserve += conn->reserve;
    conn->next = conns->newest;
    if (conn->next)
        conn->next->before = conn;
    else
        conns->oldest = conn;
    conns->newest = conn;
}

static void
remove_connection(struct conns *conns, struct conn *conn)
{
    lock_assert_held(&conns->lock);
    *(conn->before ? &conn->before->next : &conns->newest) = conn->next;
    *(conn->next ? &conn->next->before : &conns->oldest) = conn->before;
    conns->n -= !conn->reserve;
    conns->n_reserve -= conn->reserve && !conn->cut;
    conns->n_cut -= conn->cut;
}

/*
 * Delays the next accept while the threads of many shut-down connections have not
 * ended. libmicrohttpd counts these threads, and closes each new connection once it has
 * as many as conns_limit() says. During the delay, new connections wait in the
 * listener's backlog instead.
 */
static void
delay_accept(size_t n_cut)
{
    size_t ms = n_cut > ENDING / 4 ? 2 * (n_cut - ENDING / 4) : 0;
    const struct timespec pause = {0, (long)ms * 1000000};
    if (ms)
        nanosleep(&pause, NULL);
}

void
conns_notify(void *arg, struct MHD_Connection *connection, void **context,
             enum MHD_ConnectionNotificationCode code)
{
    struct conns *conns = arg;
    struct conn *conn = *context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        int socket = conn_socket(connection);
        const union MHD_ConnectionInfo *from =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        *context = conn = socket >= 0 ? calloc(1, sizeof *conn) : NULL;
        if (!conn)
            return;
        conn->conns = conns;
        conn->socket = socket;
        conn->since = clock_steady_ms();
        read_address(from ? from->client_addr : NULL, conn->address);
    }
    if (!conn)
        return;
    metrics_add(conns->metrics, &metric_connections, 0,
                code == MHD_CONNECTION_NOTIFY_STARTED ? 1 : -1);
    lock_acquire(&conns->lock);
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        add_connection(conns, conn);
    else
        remove_connection(conns, conn);
    size_t n_cut = conns->n_cut;
    lock_release(&conns->lock);
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        delay_accept(n_cut);
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        free(conn);
        *context = NULL;
    }
}

/* --- slow connections ----------------------------------------------------- */

/* Returns whether the bytes of a body since the last check are below http.min_rate.
   A body is checked every http.timeout. */
static bool
is_below_min_rate(struct conn *conn, int64_t since, int64_t ms, int64_t min_rate)
{
    int_fast64_t expected = since;
    uint64_t received = conn->received, came = received - conn->looked;
    if (came < (uint64_t)min_rate * (uint64_t)ms / 1000)
        return true;
    conn->looked = received;
    atomic_compare_exchange_strong(&conn->since, &expected, since + ms);
    return false;
}

static bool
is_too_slow(struct conn *conn, const struct settings *s, int64_t since, int64_t now)
{
    int64_t ms = now - since;
    switch (atomic_load(&conn->phase)) {
    case CONN_NEW:
    case CONN_HEAD:
        return ms > s->http_header_timeout * 1000;
    case CONN_IDLE: /* libmicrohttpd itself closes connections that send nothing */
        return ms > (s->http_timeout + 2) * 1000;
    case CONN_BODY:
        return ms > s->http_timeout * 1000 &&
               is_below_min_rate(conn, since, ms, s->http_min_rate);
    default:
        return false;
    }
}

static void *
watch_connections(void *arg)
{
    struct conns *conns = arg;
    lock_acquire(&conns->lock);
    while (!conns->closing) {
        int64_t now = clock_steady_ms();
        for (struct conn *c = conns->newest; c; c = c->next) {
            int64_t since = c->since;
            if (is_too_slow(c, conns->settings, since, now) && c->since == since)
                shut_down(c);
        }
        lock_wait_until(&conns->lock, &conns->closed, now + CHECK_MS);
    }
    lock_release(&conns->lock);
    return NULL;
}

/* --- opening and closing the table ---------------------------------------- */

bool
conns_open(const struct settings *settings, struct tls *tls, struct conns **ret,
           struct api_problem *p)
{
    struct conns *conns = calloc(1, sizeof *conns);
    if (!conns)
        return api_problem_no_memory(p);
    conns->settings = settings;
    conns->tls = tls;
    lock_init(&conns->lock, LOCK_CONNS);
    lock_cond_init(&conns->closed);
    if (pthread_create(&conns->thread, NULL, watch_connections, conns) == 0) {
        *ret = conns;
        return true;
    }
    pthread_cond_destroy(&conns->closed);
    lock_fini(&conns->lock);
    free(conns);
    return api_fail(p, API_IO, "a thread cannot be started");
}

void
conns_count(struct conns *conns, struct metrics *metrics)
{
    conns->metrics = metrics;
}

void
conns_close(struct conns **conns)
{
    struct conns *old = *conns;
    if (!old)
        return;
    lock_acquire(&old->lock);
    old->closing = true;
    pthread_cond_signal(&old->closed);
    lock_release(&old->lock);
    pthread_join(old->thread, NULL);
    pthread_cond_destroy(&old->closed);
    lock_fini(&old->lock);
    free(old);
    *conns = NULL;
}

bool
conns_await(struct conns *conns)
{
    int64_t now = clock_steady_ms();
    bool found = false;
    lock_acquire(&conns->lock);
    for (const struct conn *c = conns->newest; c && !found; c = c->next)
        found = !c->cut && c->phase == CONN_NEW && now - c->since < FIRST_REQUEST_MS;
    lock_release(&conns->lock);
    return found;
}

unsigned
conns_limit(const struct conns *conns)
{
    return (unsigned)conns->settings->http_connections + RESERVE + ENDING;
}
