/* SPDX-License-Identifier: Apache-2.0 */
/* The listening socket, from its text: "HOST:PORT", "[HOST]:PORT" or "unix:PATH". */
#ifndef QDQD_HTTP_LISTEN_H
#define QDQD_HTTP_LISTEN_H

#include "api/problem.h"

struct listener {
    int fd;
    char host[128];        /* as it was given; "" for a unix socket */
    char address[192];     /* "127.0.0.1:8383" with the port that it really has */
    char unlink_path[112]; /* of a unix socket, else "" */
};

/*
 * The socket listens when this returns. It is the one that systemd has opened, where it
 * has. What others than this machine reach is refused, unless `far`.
 */
bool listen_open(const char *text, bool far, struct listener *ret,
                 struct api_problem *p);
/* Removes a unix socket's file; the descriptor is its new owner's to close. */
void listen_forget(struct listener *listener);

#endif
