/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "watch/watchdog.h"
#include "base/clock.h"
#include "base/log.h"
#include "watch/notify.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_MS 1000
#define LEAST_MS 50

/* Returns the number in an environment variable, or 0 where there is none. */
static long long
read_variable(const char *name)
{
    const char *text = getenv(name);
    char *end;
    errno = 0;
    long long n = text ? strtoll(text, &end, 10) : 0;
    return text && !errno && end != text && !*end && n > 0 ? n : 0;
}

void
watchdog_open(struct watchdog *ret, int listener)
{
    long long us = read_variable("WATCHDOG_USEC"), pid = read_variable("WATCHDOG_PID");
    *ret = (struct watchdog){.len = sizeof ret->address};
    if (!us || (pid && pid != getpid()) ||
        getsockname(listener, (struct sockaddr *)&ret->address, &ret->len))
        return;
    ret->every_ms = us / 2000 < LEAST_MS ? LEAST_MS : us / 2000;
}

/* Waits until the socket is ready for `events`. Returns false when that takes too
   long. */
static bool
wait_for(int fd, short events, int64_t deadline)
{
    struct pollfd one = {.fd = fd, .events = events};
    int64_t left = deadline - clock_steady_ms();
    return left > 0 && poll(&one, 1, (int)left) == 1;
}

/* Sends an HTTP request without TLS. A server with TLS answers it too, at least by
   an alert or by closing the connection; any answer shows that it lives. */
static bool
is_answered(const struct watchdog *dog)
{
    static const char ask[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
                              "Connection: close\r\n\r\n";
    int64_t deadline = clock_steady_ms() + PATIENCE_MS;
    char got[16];
    int fd =
        socket(dog->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    const struct sockaddr *to = (const struct sockaddr *)&dog->address;
    bool ok = (connect(fd, to, dog->len) == 0 || errno == EINPROGRESS) &&
              wait_for(fd, POLLOUT, deadline) &&
              send(fd, ask, sizeof ask - 1, MSG_NOSIGNAL) == sizeof ask - 1 &&
              wait_for(fd, POLLIN, deadline);
    ssize_t n = ok ? recv(fd, got, sizeof got, 0) : -1;
    close(fd);
    return n >= 0 || (ok && errno == ECONNRESET);
}

void
watchdog_beat(void *arg)
{
    const struct watchdog *dog = arg;
    if (is_answered(dog))
        notify_send("WATCHDOG=1");
    else
        log_error("not_answering", "within_ms=%d", PATIENCE_MS);
}
