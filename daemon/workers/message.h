/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Typed messages over a socketpair between the daemon and one worker process.
 *
 * Both ends are the same program, so the bodies are plain structs. All the same neither
 * end trusts the other: type, sizes and number of descriptors are checked against
 * messages.h before a byte of the message is read, the values in a body before it is
 * handed over.
 *
 * A socket is used by one thread at a time.
 */
#ifndef QDQD_WORKERS_MESSAGE_H
#define QDQD_WORKERS_MESSAGE_H

#include "base/digest.h"
#include "api/files.h"

#define MESSAGE_MAX_FILES API_MAX_EXTERNAL
#define MESSAGE_MAX_FDS (7 + MESSAGE_MAX_FILES) /* Linux takes 253 */
#define MESSAGE_MAX_NAMES (MESSAGE_MAX_FILES * (API_MAX_PATH + 1))
#define MESSAGE_MAX_SPEC (16u << 20) /* a spec of a body's size, all written out */
#define MESSAGE_MAX_RESULT (64u << 20)

/* What a result calls the file of its data. */
#define MESSAGE_DATA_NAME "model.onnx.data"

/* Order of the descriptors of QUANTIZE. */
enum message_quantize_fd {
    MESSAGE_FD_MODEL,
    MESSAGE_FD_OUTPUT,
    MESSAGE_FD_REPORT,
    MESSAGE_FD_FROZEN,
    MESSAGE_FD_OBSERVATIONS, /* what is known, then what is known by then */
    MESSAGE_FD_DATA,         /* the result's data, where that is a file of its own */
    MESSAGE_FD_DATASET
};

struct message_quantize {
    char model_id[DIGEST_SIZE];
    char dataset_id[DIGEST_SIZE]; /* "" when there is no dataset */
    uint32_t observe;             /* 1: use the file of observations, 0: leave it */
};

struct message_gpu {
    uint32_t wanted; /* 1: by another job; 0: go on */
};

struct message_progress {
    uint32_t stage; /* enum qdq_stage */
    uint64_t done, total, later;
};

enum message_type {
#define MESSAGE(name, body, text, min_fds, max_fds, max_files) MESSAGE_##name,
#include "workers/messages.h"
#undef MESSAGE
    MESSAGE_N_TYPES
};

struct message {
    enum message_type type;
    union {
        struct message_quantize quantize;
        struct message_progress progress;
        struct message_gpu gpu;
        struct api_problem failed; /* and of REJECTED */
    } body;
    char *text; /* NULL or ends in '\0', which text_len does not count */
    size_t text_len;
    /* The model's other files: descriptors behind those that the type has, and their
       paths, each with its '\0', one after the other. */
    char *names;
    size_t n_files, names_len;
    int fds[MESSAGE_MAX_FDS];
    size_t n_fds; /* of all */
};

/* Descriptors without those of the model's other files. */
static inline size_t
message_own_fds(const struct message *message)
{
    return message->n_fds - message->n_files;
}

/* Sends; everything is borrowed. False with errno when the other side is gone. */
bool message_send(int socket, const struct message *message);

enum message_got {
    MESSAGE_GOT,     /* *ret is filled */
    MESSAGE_EOF,     /* the other side is gone */
    MESSAGE_TIMEOUT, /* nothing came in time */
    MESSAGE_BROKEN,  /* not by messages.h, or no memory: the socket is of no more use */
};

/*
 * Receives one message; the text and the descriptors (O_CLOEXEC) become the caller's.
 * Waits `timeout_ms` for it to begin, -1: without end.
 */
enum message_got message_receive(int socket, int timeout_ms, struct message *ret);
/* Frees text and names and closes the descriptors of a received message. */
void message_fini(struct message *message);

#endif
