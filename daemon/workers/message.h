/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Typed messages over a socketpair between the daemon and one worker or carrier process.
 *
 * Both ends are the same program, so the bodies are plain structs. Still, neither end
 * trusts the other: type, sizes and number of descriptors are checked against
 * messages.h before any byte of the message is read, and the values of a body before it
 * is returned.
 *
 * A socket is used by one thread at a time.
 */
#ifndef QDQD_WORKERS_MESSAGE_H
#define QDQD_WORKERS_MESSAGE_H

#include "api/digest.h"
#include "api/files.h"
#include "api/remote.h"

#define MESSAGE_MAX_FILES API_MAX_EXTERNAL
#define MESSAGE_MAX_FDS (11 + MESSAGE_MAX_FILES) /* Linux passes at most 253 */
#define MESSAGE_MAX_NAMES (MESSAGE_MAX_FILES * (API_MAX_PATH + 1))
/* a spec of the size of a request body, with all defaults written out */
#define MESSAGE_MAX_SPEC (16u << 20)
#define MESSAGE_MAX_RESULT (64u << 20)
#define MESSAGE_MAX_NOTE 1024u
#define MESSAGE_MAX_RUNTIME 64u
#define MESSAGE_MAX_LIST (4u << 20)
#define MESSAGE_MAX_PUBLISHED 8 /* files of a publication */

/* The file name of a result's external data. */
#define MESSAGE_DATA_NAME "model.onnx.data"

/* Order of the descriptors of QUANTIZE. */
enum message_quantize_fd {
    MESSAGE_FD_MODEL,
    MESSAGE_FD_OUTPUT,
    MESSAGE_FD_REPORT,
    MESSAGE_FD_FROZEN,
    /* read: observations so far; written: those and the new ones */
    MESSAGE_FD_OBSERVATIONS,
    MESSAGE_FD_TIMES,   /* likewise the times of candidates */
    MESSAGE_FD_JOURNAL, /* of this job's measurements */
    MESSAGE_FD_DATA,    /* the result's external data, if it has a file for it */
    MESSAGE_FD_DATASET  /* and those behind it: each only if there is one */
};

struct message_quantize {
    char model_id[DIGEST_SIZE];
    char dataset_id[DIGEST_SIZE]; /* "" when there is no dataset */
    uint32_t observe;             /* 1: use the file of observations, 0: do not */
    uint32_t keep_times;          /* likewise that of times */
    /* "" when there is no data of its own to judge by; 1: there is a metric, 0: none */
    char evaluation_id[DIGEST_SIZE];
    uint32_t has_metric;
    char journal_of
        [DIGEST_SIZE]; /* what the journal belongs to besides; "": there is none */
};

struct message_gpu {
    uint32_t wanted; /* 1: another job wants the GPU; 0: go on */
};

struct message_judge_wanted {
    uint32_t again; /* 1: the one that this work had has ended; 0: it had none */
};

/* Parts of its setup that a worker can lack: NOTE(NAME, event in the daemon's log). */
#define MESSAGE_NOTES(NOTE)                  \
    NOTE(CAGE_LACKING, "cage_lacking")       \
    NOTE(ENGINE_FAILED, "engine_failed")     \
    NOTE(RUNTIME_MISSING, "runtime_missing") \
    NOTE(GPU_MISSING, "gpu_missing")

enum message_note_event {
#define NOTE(name, event) MESSAGE_NOTE_##name,
    MESSAGE_NOTES(NOTE)
#undef NOTE
        MESSAGE_N_NOTES
};

struct message_note {
    uint32_t event; /* enum message_note_event */
};

struct message_progress {
    uint32_t stage; /* enum qdq_stage */
    uint64_t done, total, later, unknown;
};

/* Files that a remote needs, in the order of their descriptors. */
enum message_secret {
    MESSAGE_CREDENTIALS,
    MESSAGE_CA,
    MESSAGE_SECRET,
    MESSAGE_SECRET_OLD,
    MESSAGE_ARTIFACTS, /* credentials of artifacts_url */
    MESSAGE_N_SECRETS
};

/* A remote as a carrier gets it. */
struct message_remote {
    char name[API_REMOTE_NAME], kind[16], url[1024], region[64];
    char artifacts_url[1024];
    uint32_t path_style, allow_private;
    uint32_t secrets; /* a bit for each enum message_secret that has a descriptor */
    int64_t timeout, min_rate, total_timeout, max_bytes;
};

struct message_fetch {
    struct message_remote remote;
    char ref[API_MAX_REF + 1];
};

struct message_publish {
    struct message_remote remote;
    char ref[API_MAX_REF + 1], source[API_MAX_REF + 1];
    char alias[256], delivery[128];
};

struct message_deliver {
    struct message_remote remote;
    char id[128];
    int64_t timestamp; /* seconds since 1970 */
};

struct message_news {
    struct message_remote remote;
    int64_t since; /* ms of the remote's clock */
};

/* The bucket of blobs; it stays open until the socket is closed. */
struct message_bucket {
    struct message_remote remote;
};

enum message_object_op {
    MESSAGE_OBJECT_PUT,
    MESSAGE_OBJECT_GET,
    MESSAGE_OBJECT_FIND,
    MESSAGE_OBJECT_REMOVE,
    MESSAGE_OBJECT_REMOVE_BY, /* its answer is whether it came in time */
    MESSAGE_OBJECT_LIST,
    MESSAGE_N_OBJECT_OPS
};

struct message_object {
    uint32_t op; /* enum message_object_op */
    char key[192];
    char digest[DIGEST_SIZE]; /* of PUT */
    int64_t since; /* of REMOVE_BY, and how many seconds are left from then */
    int32_t seconds;
};

struct message_sign {
    uint32_t form; /* enum signed_form of workers/signer.h */
};

struct message_carried {
    uint64_t done, total;
};

struct message_retry {
    int64_t seconds;
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
        struct message_judge_wanted judge_wanted;
        struct message_note note;
        struct message_fetch fetch;
        struct message_publish publish;
        struct message_deliver deliver;
        struct message_news news;
        struct message_bucket bucket;
        struct message_object object;
        struct message_sign sign;
        struct message_carried carried;
        struct message_retry retry;
        struct api_problem failed; /* for FAILED and REJECTED */
    } body;
    /* NULL, or text that ends in '\0', which text_len does not count; a list of strings
       has more of them, which it does count */
    char *text;
    size_t text_len;
    /* The model's other files: their descriptors come behind those of the type, and
       their paths, each with its '\0', follow one another in `names`. */
    char *names;
    size_t n_files, names_len;
    int fds[MESSAGE_MAX_FDS];
    size_t n_fds; /* number of all descriptors */
};

/* Returns the number of descriptors without those of the model's other files. */
static inline size_t
message_own_fds(const struct message *message)
{
    return message->n_fds - message->n_files;
}

/* Sends a message within `within_ms` (-1: without limit); everything is borrowed. Returns
   false and sets errno when the other side has closed the socket, ETIMEDOUT when it reads
   too slowly: half a message was sent then, so the socket cannot be used any more. */
bool message_send(int socket, int within_ms, const struct message *message);

enum message_got {
    MESSAGE_GOT,     /* *ret is filled */
    MESSAGE_EOF,     /* the other side has closed the socket */
    MESSAGE_TIMEOUT, /* no message began in time */
    MESSAGE_OVERDUE, /* one began and was not whole in time: the same as BROKEN */
    /* not as messages.h says, or out of memory: the socket cannot be used any more */
    MESSAGE_BROKEN,
};

/* Receives one message; the caller owns its text and descriptors (O_CLOEXEC). Waits
   at most `begin_ms` for it to begin, and from then on at most `whole_ms` until it is
   whole; -1: without limit. */
enum message_got message_receive(int socket, int begin_ms, int whole_ms,
                                 struct message *ret);
/* Frees text and names of a received message, and closes its descriptors. */
void message_fini(struct message *message);

#endif
