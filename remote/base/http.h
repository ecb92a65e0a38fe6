/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP for all kinds of remotes: one connection handle per call. Addresses are checked when a
 * socket is made, after name resolution, so that a name cannot point elsewhere later.
 * Redirects stay on the remote's host. Bodies are bounded.
 */
#ifndef REMOTE_BASE_HTTP_H
#define REMOTE_BASE_HTTP_H

#include <curl/curl.h>

#include "base/hasher.h"
#include "base/rate.h"
#include "remote/remote.h"

#define HTTP_URL 8192
#define HTTP_MOST_TIMEOUTS 10L /* that a request may take which moves no file */
#define HTTP_HEADERS 80

struct http {
    const struct qdqr_remote *remote;
    struct qdqr_call *call;
    CURL *curl;
    char base[HTTP_URL]; /* the remote's URL without a final '/' */
    char token[2400];    /* a header that all requests have; "": none */
    bool is_signed;      /* libcurl signs each request */
    bool refused;        /* an address was not public */
    struct rate rate;    /* of the request that runs */
    bool is_slow;        /* its rate was below min_rate */
    bool is_overdue;     /* total_timeout is over */
    int64_t done, total; /* bytes of the file that moves, for on_progress */
    /* Computes the digest of the file that is pulled while its bytes arrive. NULL: it is not
       wanted, or the file began anew. */
    struct hasher *hasher;
    /* The handle of a bucket where the remote keeps files, which this one owns; NULL: none is
       open. store_remote is its remote. */
    struct http *store;
    struct qdqr_remote store_remote;
};

struct http_request {
    const char *method;                /* NULL: GET */
    char url[HTTP_URL];                /* below `base` */
    const char *headers[HTTP_HEADERS]; /* "Name: value", to the first NULL */
    const char *body;
    size_t body_len;
    int body_fd; /* a body from a file, from body_at on, where body_size > 0 */
    int64_t body_at, body_size;
    /* Where a body of status 200 or 206 goes instead of the memory; 0: none. Bytes that are
       there already are not asked for again. */
    int to_fd;
    int64_t max_body; /* most bytes of the answer; 0: 8 MiB */
    bool accepts_401; /* whether the caller can use an answer of status 401 */
    bool accepts_all; /* whether it can use one of any status */
    bool is_file; /* whether a file's bytes go to on_body, which may take any time */
    /* Gets the bytes of a body of status 200 as they come, instead of the memory; NULL: none.
       Returns false when out of memory. */
    bool (*on_body)(void *arg, const char *bytes, size_t len);
    void *on_body_arg;
    char condition[320]; /* a header of the kind's own, for `headers` */
};

struct http_answer {
    long status;
    char *body; /* ends in NUL; freed by http_answer_fini() */
    size_t len;
    bool is_too_large, has_failed_write, is_other_range;
};

/* Opens a handle without credentials. */
bool http_open(const struct qdqr_remote *remote, struct qdqr_call *call,
               struct http **ret, struct api_problem *problem);
void http_close(struct http **http);
/* Sends the remote's credentials, "bearer TOKEN" or "basic USER:PASSWORD", with each request
   from now on. */
bool http_authenticate(struct http *http, struct api_problem *problem);

/* Appends `text` to a URL with everything but unreserved characters and those of `safe`
   escaped. Returns false with a problem when it becomes too long. */
bool url_add(char url[HTTP_URL], const char *text, const char *safe,
             struct api_problem *problem);

/*
 * Sends a request. Every status of an answer that arrived whole is a success for this call,
 * except those that no caller can use (401, 403, 408, 429, 5xx). After a failure the answer
 * has no body to free.
 */
bool http_send(struct http *http, const struct http_request *request,
               struct http_answer *ret, struct api_problem *problem);
void http_answer_fini(struct http_answer *answer);
/* Copies a header of the last answer; "" where it is absent or too long. */
void http_header(struct http *http, const char *name, char *ret, size_t size);
/* Sets the problem of an answer with a status that is no success, which names `what`. */
bool http_fail(const struct http *http, const struct http_answer *answer,
               const char *what, struct api_problem *problem);

/* Returns the seconds of the remote's timeout. */
int64_t http_timeout(const struct http *http);
/* Sets the problem of a transfer that ended with a code of libcurl's (http_fault.c). */
bool http_fail_transfer(struct http *http, const struct http_answer *answer,
                        CURLcode code, struct api_problem *problem);

/* Returns whether a URL has the scheme, host and port of the remote. */
bool http_is_own(const struct http *http, const char *url);

/* Writes a file to request->to_fd and resumes a few times when the connection breaks. */
bool http_pull(struct http *http, struct http_request *request, int64_t size,
               struct api_problem *problem);

#endif
