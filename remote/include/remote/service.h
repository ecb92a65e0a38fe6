/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A qdqd as its clients reach it. A request is made again after a connection that was lost, and
 * where the service is busy; it must therefore be one that may be repeated. Only the first
 * contact is not tried again: a service that is not there is a mistake of the caller's.
 *
 * Errors are the problems of the service, with their codes; REMOTE_UNAVAILABLE where it cannot
 * be reached, and REMOTE_DENIED where its certificate is not valid.
 *
 * qdqr_init() comes first. One thread at a time uses a service.
 */
#ifndef REMOTE_SERVICE_H
#define REMOTE_SERVICE_H

#include <stddef.h>
#include <stdint.h>

#include "api/problem.h"

struct qdqr_service_options {
    const char *url;   /* http://…, https://… or unix:/path of a socket; borrowed */
    const char *token; /* an access token; NULL: none */
    const void *ca;    /* PEM of the authorities; NULL: those of the system */
    size_t ca_len;
    int64_t patience; /* seconds of pauses that a request may make, all in all */
    /* Called several times a second while bytes move. Returns false to cancel. NULL: none. */
    bool (*on_progress)(void *arg, int64_t done, int64_t total);
    /* Called before a request is made again. NULL: none. */
    void (*on_pause)(void *arg, const struct api_problem *why, double seconds);
    void *arg;
};

struct qdqr_service;

bool qdqr_service_open(const struct qdqr_service_options *options,
                       struct qdqr_service **ret, struct api_problem *problem);
void qdqr_service_close(struct qdqr_service **service);

/* A request. Members that it lacks are NULL or 0. */
struct qdqr_ask {
    const char *method; /* NULL: GET */
    const char *path;   /* below the service's URL, with its query */
    const char *accept; /* the media type of the answer */
    const char *json;   /* a body of JSON */
    /* A body of a file: its bytes from the start, and its digest. */
    int fd;
    int64_t size; /* 0: there is none */
    const char *digest;
    const char *key; /* the Idempotency-Key */
};

/* Makes a request. The caller frees the body of the answer, which ends in NUL. */
bool qdqr_service_ask(struct qdqr_service *service, const struct qdqr_ask *ask,
                      char **ret, size_t *ret_len, struct api_problem *problem);
/* Finds out by HEAD whether there is a resource. *ret is false also where the token may not
   read, because the answer to the request that stores it says more. */
bool qdqr_service_has(struct qdqr_service *service, const char *path, bool *ret,
                      struct api_problem *problem);
/* Writes what a path answers to an empty regular file. A lost connection is resumed. */
bool qdqr_service_fetch(struct qdqr_service *service, const char *path,
                        const char *accept, int fd, struct api_problem *problem);

/* An event of a job. Returns false, with a problem, to end the stream with an error. */
typedef bool (*qdqr_event_fn)(void *arg, const char *event, const char *data,
                              size_t len, struct api_problem *problem);
/*
 * Follows the events of a job until its end. After a lost connection the stream goes on behind
 * the last event; the patience begins anew with each event.
 */
bool qdqr_service_watch(struct qdqr_service *service, const char *job,
                        qdqr_event_fn on_event, void *arg, struct api_problem *problem);

#endif
