/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request's body while it comes in: files, JSON, or a multipart form of both.
 * Files are streamed into spools, so memory does not grow with them.
 */
#ifndef QDQD_HTTP_BODY_H
#define QDQD_HTTP_BODY_H

#include "library/blob.h"
#include "api/files.h"
#include "api/header.h"
#include "api/job.h"
#include "api/route.h"

#define BODY_MAX_TEXT (1u << 20)

/* A file beside the model. */
struct body_external {
    char *name;         /* as the client calls it, "" when it does not */
    struct spool *file; /* or NULL, and: */
    char *id;           /* of what is stored */
};

enum body_file { BODY_MODEL, BODY_DATASET, BODY_N_FILES };

enum body_part {
#define PART(name, text, kind) BODY_PART_##name,
#include "http/parts.h"
#undef PART
    BODY_N_PARTS
};

struct body_text {
    char *data; /* ends in '\0' when there is any */
    size_t len, capacity;
};

struct MHD_Connection;
struct MHD_PostProcessor;

struct body {
    enum api_body kind;
    struct blobs *blobs;
    uint64_t limit, received;
    /* What a raw body is to hash to; "": anything. May be set after body_begin(). */
    char digest[API_HEADER_ID];
    struct MHD_PostProcessor *post; /* of a form */
    bool is_json;
    bool seen[BODY_N_PARTS];
    int part; /* of a form: the part that is coming in, -1 before the first */
    uint64_t part_size;
    struct api_problem *problem; /* where the form's parser puts what it finds */
    struct body_text texts[BODY_N_PARTS];
    struct body_text json;
    /*
     * What it comes to. Files are NULL where there is none; a body for one file has it
     * at BODY_MODEL. Ids stand in `job`.
     */
    struct spool *files[BODY_N_FILES];
    struct api_job_request job;
    char *model_name; /* what the client calls the model's file; NULL: nothing */
    size_t n_externals;
    struct body_external *externals;
    bool
        is_listed; /* the model's files are named by digest, `job.model` is the first */
};

/*
 * Begins a body for a route that takes `kind`, by its Content-Type (NULL: none).
 * UNSUPPORTED_MEDIA_TYPE, BAD_REQUEST.
 */
bool body_begin(struct body *body, enum api_body kind, struct blobs *blobs,
                uint64_t limit, struct MHD_Connection *connection,
                const char *content_type, struct api_problem *p);
bool body_take(struct body *body, const char *data, size_t len, struct api_problem *p);
/* No more will come: fills files and job. DIGEST_MISMATCH and whatever is wrong. */
bool body_finish(struct body *body, struct api_problem *p);
/* Frees everything, and drops the files that nobody took. */
void body_fini(struct body *body);

#endif
