/* SPDX-License-Identifier: Apache-2.0 */
/* The carrier process's own state, which its parts share. No other file includes this
   header. */
#ifndef QDQD_CARRIERS_CARRY_H
#define QDQD_CARRIERS_CARRY_H

#include "carriers/string_list.h"
#include "workers/message.h"
#include "remote/remote.h"

/* A remote with the texts of its files, which are overwritten when they are freed. */
struct opened {
    struct qdqr_remote remote;
    char *texts[MESSAGE_N_SECRETS];
    size_t sizes[MESSAGE_N_SECRETS];
    size_t n_fds; /* descriptors of the message that it took */
};

struct carrier {
    struct opened opened;
    struct qdqr_call call;
    struct qdqr_source *source; /* of FETCH, for PULL */
    uint64_t done_before;       /* bytes of the files before this one */
    int64_t told_at;
    bool gone; /* the daemon does not read messages any more */
};

/* Sends a message, and notes whether the daemon still reads them. */
void carry_send(struct carrier *c, const struct message *message);
/* Answers with the strings, or with the problem unless `ok`. Frees the strings. */
void carry_answer(struct carrier *c, bool ok, enum message_type type,
                  struct string_list *strings, const struct api_problem *problem);
/* Opens the remote of a message, which must outlive it. */
bool carry_open_remote(struct carrier *c, const struct message_remote *from,
                       const struct message *message, struct api_problem *p);
void carry_close_remote(struct opened *opened);
/* Serves requests for objects of the bucket until the daemon closes the socket. */
void carry_objects(struct carrier *c, const struct message *request);

#endif
