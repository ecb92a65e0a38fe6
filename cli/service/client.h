/* SPDX-License-Identifier: Apache-2.0 */
/* The service of --url, for the commands that work through it. */
#ifndef CLI_SERVICE_CLIENT_H
#define CLI_SERVICE_CLIENT_H

#include "api/client.h"
#include "api/digest.h"
#include "commands.h"
#include "files.h"
#include "progress.h"
#include "remote/service.h"

struct client {
    struct qdqr_service *service;
    struct progress progress;
    const char
        *moving;  /* what the bytes that move are called; NULL: they are not shown */
    bool is_lost; /* the last request has been tried again */
    char *token, *ca; /* owned */
    size_t ca_len;
};

/* Opens the service of the options. The caller closes *ret, which must not move, also when it
   fails. */
bool client_open(const struct options *options, struct client *ret,
                 struct api_problem *problem);
void client_close(struct client *client);

/* Makes a request and parses its answer. */
bool client_ask(struct client *client, const struct qdqr_ask *ask,
                struct api_document **ret, struct api_problem *problem);
/* Prints the JSON of an answer. */
bool client_print(struct client *client, const struct qdqr_ask *ask,
                  struct api_problem *problem);

/* Writes the path of a job, with what stands behind its id. BAD_REQUEST for an id with other
   characters than those of ids. */
bool client_path(const char *job, const char *end, char *to, size_t size,
                 struct api_problem *problem);
/* Makes the place of a mistake in a request that in the spec, which is a member of it. */
void client_place(struct api_problem *problem);

/* Store what the service lacks. `path` may also be the id of a stored file. Write the id. */
bool client_store_model(struct client *client, const char *path, char ret[DIGEST_SIZE],
                        struct api_problem *problem);
bool client_store_dataset(struct client *client, const char *path, const char *model,
                          char ret[DIGEST_SIZE], struct api_problem *problem);

/* Encodes a request with its spec, which this frees, or else with that of --spec. The caller frees
   *ret. */
bool client_encode(const struct options *options, struct api_job_request *request,
                   char **ret, struct api_problem *problem);
/* Queues a job. The caller frees *ret. */
bool client_submit(struct client *client, const char *request,
                   struct api_document **ret, struct api_problem *problem);
/* Follows a job to its end, with the progress on the terminal. The caller frees *ret, the
   job at its end. */
bool client_wait(struct client *client, const char *job, struct api_document **ret,
                 struct api_problem *problem);

/*
 * Writes the model of a job that succeeded to `out`, and its data file, where it has one, to
 * `data`, which is OUTPUT_NONE before, for the caller to commit as a new file. The data file
 * has the name by which the model finds it, beside `out`; a file of that name with other bytes
 * is an error, and one with its bytes is left alone. All bytes are compared with their digests.
 */
bool download_model(struct client *client, const struct options *options,
                    const struct api_job_facts *job, struct output *out,
                    struct output *data, struct api_problem *problem);

#endif
