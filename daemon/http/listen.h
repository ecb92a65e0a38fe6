/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the listening socket described by "HOST:PORT", "[HOST]:PORT" or "unix:PATH". */
#ifndef QDQD_HTTP_LISTEN_H
#define QDQD_HTTP_LISTEN_H

#include "api/problem.h"

#include <sys/types.h>

struct listener {
    int fd;
    char host[128];        /* as configured; "" for a unix socket */
    char address[192];     /* "127.0.0.1:8383", with the actual port */
    char unlink_path[112]; /* path of a unix socket, else "" */
    dev_t unlink_device;   /* the file that the socket has there */
    ino_t unlink_inode;
};

/* Opens the socket, which listens on return. A socket that systemd passed is used
   instead. An address that other machines can reach is refused, unless `far`. */
bool listen_open(const char *text, bool far, struct listener *ret,
                 struct api_problem *p);
/* Removes a unix socket's file. The descriptor stays open: its new owner closes it. */
void listen_forget(struct listener *listener);

#endif
