/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "http/listen.h"
#include "settings/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 256
#define FIRST_INHERITED 3

static bool
fail(struct api_problem *p, const char *text, const char *what)
{
    return api_fail(p, API_IO, "http.listen %s: %s", text, what);
}

static bool
is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, address, sizeof in);
        return ntohl(in.sin_addr.s_addr) >> 24 == 127;
    }
    struct sockaddr_in6 in6;
    memcpy(&in6, address, sizeof in6);
    return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
}

static int
bind_socket(const struct sockaddr *address, socklen_t len)
{
    int one = 1;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, address, len) || listen(fd, BACKLOG)) {
        int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

/* Returns whether no process listens at a socket file; a killed daemon leaves such a
   file behind. */
static bool
is_stale(const struct sockaddr_un *address)
{
    struct stat st;
    if (lstat(address->sun_path, &st) || !S_ISSOCK(st.st_mode))
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool stale = connect(fd, (const struct sockaddr *)address, sizeof *address) &&
                 errno == ECONNREFUSED;
    close(fd);
    return stale;
}

/* Returns whether something that is not a socket has this name. */
static bool
is_occupied(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode);
}

/* Remembers the socket's file, so that no other file is removed in its place. */
static void
remember_file(const char *path, struct listener *l)
{
    struct stat st;
    if (lstat(path, &st))
        return;
    snprintf(l->unlink_path, sizeof l->unlink_path, "%s", path);
    l->unlink_device = st.st_dev;
    l->unlink_inode = st.st_ino;
}

static bool
listen_unix(const char *text, const char *path, struct listener *l,
            struct api_problem *p)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!*path || strlen(path) >= sizeof address.sun_path)
        return fail(p, text, "the path is empty or too long");
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (is_occupied(path))
        return fail(p, text, "there is a file of this name that is not a socket");
    if (is_stale(&address))
        unlink(path);
    l->fd = bind_socket((const struct sockaddr *)&address, sizeof address);
    if (l->fd < 0)
        return fail(p, text, strerror(errno));
    /* The socket's owner and group may connect, whatever the umask is. */
    if (chmod(path, 0660)) {
        int saved = errno;
        close(l->fd);
        unlink(path);
        return fail(p, text, strerror(saved));
    }
    remember_file(path, l);
    snprintf(l->address, sizeof l->address, "unix:%s", path);
    return true;
}

static void
format_address(struct listener *l)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof address;
    char port[16] = "";
    if (getsockname(l->fd, (struct sockaddr *)&address, &len) == 0)
        getnameinfo((struct sockaddr *)&address, len, NULL, 0, port, sizeof port,
                    NI_NUMERICSERV);
    snprintf(l->address, sizeof l->address, strchr(l->host, ':') ? "[%s]:%s" : "%s:%s",
             l->host, port);
}

static bool
refuse_remote(const char *text, struct api_problem *p)
{
    return fail(p, text,
                "not a loopback address; without access tokens (see qdqd token) only "
                "this machine may reach the daemon");
}

static bool
listen_tcp(const char *text, bool far, struct listener *l, struct api_problem *p)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV},
                    *found;
    const char *port;
    if (!address_split(text, l->host, sizeof l->host, &port))
        return fail(p, text, "not HOST:PORT, [HOST]:PORT or unix:PATH");
    int rc = getaddrinfo(l->host, port, &hints, &found);
    /* "localhost" means this machine even without a hosts file or a name server (RFC
       6761). */
    if (rc == EAI_NONAME && strcmp(l->host, "localhost") == 0)
        rc = getaddrinfo("127.0.0.1", port, &hints, &found);
    if (rc)
        return fail(p, text, gai_strerror(rc));
    bool allowed = far || is_loopback(found->ai_addr);
    if (allowed)
        l->fd = bind_socket(found->ai_addr, found->ai_addrlen);
    int saved = errno;
    freeaddrinfo(found);
    if (!allowed)
        return refuse_remote(text, p);
    if (l->fd < 0)
        return fail(p, text, strerror(saved));
    format_address(l);
    return true;
}

/* --- sockets from systemd ------------------------------------------------- */

/* Returns the number of sockets that systemd passed to this process. Removes the
   variables, so that child processes do not use them. */
static int
count_inherited(void)
{
    const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");
    bool ours = pid && n && strtol(pid, NULL, 10) == (long)getpid();
    long count = ours ? strtol(n, NULL, 10) : 0;
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    return count < 0 || count > 1000 ? 0 : (int)count;
}

static bool
adopt_inherited(bool far, struct listener *l, struct api_problem *p)
{
    static const char text[] = "(from systemd)";
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof address;
    int listening = 0;
    socklen_t size = sizeof listening;
    l->fd = FIRST_INHERITED;
    if (fcntl(l->fd, F_SETFD, FD_CLOEXEC) ||
        getsockname(l->fd, (struct sockaddr *)&address, &len) ||
        getsockopt(l->fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) || !listening)
        return fail(p, text, "the descriptor is no socket that listens");
    if (address.ss_family == AF_UNIX) {
        snprintf(l->address, sizeof l->address, "unix:%s",
                 ((const struct sockaddr_un *)&address)->sun_path);
        return true;
    }
    if (address.ss_family != AF_INET && address.ss_family != AF_INET6)
        return fail(p, text, "neither an internet nor a unix socket");
    if (!far && !is_loopback((const struct sockaddr *)&address))
        return refuse_remote(text, p);
    getnameinfo((const struct sockaddr *)&address, len, l->host, sizeof l->host, NULL,
                0, NI_NUMERICHOST);
    format_address(l);
    return true;
}

bool
listen_open(const char *text, bool far, struct listener *ret, struct api_problem *p)
{
    struct listener l = {.fd = -1};
    int inherited = count_inherited();
    const char *path = address_unix_path(text);
    bool ok;
    if (inherited > 1)
        ok = fail(p, "(from systemd)", "more than one socket");
    else if (inherited)
        ok = adopt_inherited(far, &l, p);
    else
        ok = path ? listen_unix(text, path, &l, p) : listen_tcp(text, far, &l, p);
    if (ok)
        *ret = l;
    return ok;
}

void
listen_forget(struct listener *listener)
{
    struct stat st;
    if (listener->unlink_path[0] && lstat(listener->unlink_path, &st) == 0 &&
        S_ISSOCK(st.st_mode) && st.st_dev == listener->unlink_device &&
        st.st_ino == listener->unlink_inode)
        unlink(listener->unlink_path);
    listener->unlink_path[0] = '\0';
}
