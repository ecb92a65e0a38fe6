/* SPDX-License-Identifier: Apache-2.0 */
/* A request's body while it is received: files, JSON, or a multipart form of both.
   Files are streamed into spools, so memory does not grow with them. */
#ifndef QDQD_HTTP_BODY_H
#define QDQD_HTTP_BODY_H

#include "library/blob.h"
#include "api/files.h"
#include "api/header.h"
#include "api/job.h"
#include "api/route.h"

#define BODY_MAX_TEXT (1u << 20)
#define BODY_MAX_MESSAGE (256u << 10)

/* One external data file of a model. */
struct body_external {
    char *name;         /* name that the client gave it; "" when it gave none */
    struct spool *file; /* the received file, or NULL and: */
    char *id;           /* id of a stored file */
};

enum body_file { BODY_MODEL, BODY_DATASET, BODY_EVALUATION, BODY_N_FILES };

enum body_part {
#define PART(name, text, kind) BODY_PART_##name,
#include "http/parts.h"
#undef PART
    BODY_N_PARTS
};

struct body_text {
    char *data; /* NUL-terminated when there is any */
    size_t len, capacity;
};

struct MHD_Connection;
struct MHD_PostProcessor;

struct body {
    enum api_body kind;
    struct blobs *blobs;
    uint64_t limit, received;
    /* The digest that a raw body must have; "": any. May be set after body_begin(). */
    char digest[API_HEADER_ID];
    struct MHD_PostProcessor *post; /* parser of a form */
    bool is_json;
    bool seen[BODY_N_PARTS];
    int part; /* for a form: the part that is being received, -1 before the first */
    uint64_t part_size;
    struct api_problem *problem; /* receives the errors of the form's parser */
    struct body_text texts[BODY_N_PARTS];
    struct body_text json; /* JSON, or a message */
    /* The finished body. Files are NULL where there is none; a body of one file has
       it at BODY_MODEL. Ids are in `job`. */
    struct spool *files[BODY_N_FILES];
    struct api_job_request job;
    char *model_name; /* file name that the client gave the model; NULL: none */
    size_t n_externals;
    struct body_external *externals;
    uint64_t reserved; /* bytes of the budget for large texts */
    bool
        is_listed; /* the model's files are given by digest; `job.model` is the first */
};

/* Begins a body for a route that accepts `kind`, by its Content-Type (NULL: none).
   UNSUPPORTED_MEDIA_TYPE, BAD_REQUEST. */
bool body_begin(struct body *body, enum api_body kind, struct blobs *blobs,
                uint64_t limit, struct MHD_Connection *connection,
                const char *content_type, struct api_problem *p);
bool body_receive(struct body *body, const char *data, size_t len,
                  struct api_problem *p);
/* Ends the body: fills files and job. DIGEST_MISMATCH, and errors in the body. */
bool body_finish(struct body *body, struct api_problem *p);
/* Replaces what the request has of the budget for large texts by `bytes`. BUSY. */
bool body_reserve(struct body *body, uint64_t bytes, struct api_problem *p);
/* Frees everything, and discards the files that no handler has consumed. */
void body_fini(struct body *body);

#endif
