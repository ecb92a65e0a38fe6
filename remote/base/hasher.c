/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/hasher.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define CHUNK (INT64_C(256) << 10)
#define STACK (INT64_C(128) << 10)
#define WAKE (INT64_C(1) << 20) /* bytes that wake the thread */

struct hasher {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t change;
    int fd;
    int64_t at;   /* the thread's own while it runs */
    int64_t end;  /* under the lock, as what follows */
    bool is_last; /* `end` is the end of all */
    bool is_given_up;
    int64_t woken; /* the caller's own: `end` when it woke the thread last */
    bool ok;       /* the thread's own while it runs */
    struct digest *digest;
    unsigned char *chunk;
};

/* Waits for bytes. Returns where they end; `at` itself when there will be no more. */
static int64_t
wait_for_bytes(struct hasher *hasher)
{
    pthread_mutex_lock(&hasher->lock);
    while (hasher->end <= hasher->at && !hasher->is_last && !hasher->is_given_up)
        pthread_cond_wait(&hasher->change, &hasher->lock);
    int64_t end = hasher->is_given_up ? hasher->at : hasher->end;
    pthread_mutex_unlock(&hasher->lock);
    return end;
}

static void *
run(void *arg)
{
    struct hasher *hasher = arg;
    int64_t end;
    hasher->ok = true;
    while (hasher->ok && (end = wait_for_bytes(hasher)) > hasher->at) {
        int64_t left = end - hasher->at;
        ssize_t n = pread(hasher->fd, hasher->chunk,
                          (size_t)(left < CHUNK ? left : CHUNK), (off_t)hasher->at);
        if (n < 0 && errno == EINTR)
            continue;
        hasher->ok = n > 0 && digest_update(hasher->digest, hasher->chunk, (size_t)n);
        hasher->at += n;
    }
    return NULL;
}

static bool
start_thread(struct hasher *hasher)
{
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    pthread_attr_setstacksize(&attributes, STACK);
    bool ok = pthread_create(&hasher->thread, &attributes, run, hasher) == 0;
    pthread_attr_destroy(&attributes);
    return ok;
}

static void
release(struct hasher *hasher)
{
    pthread_cond_destroy(&hasher->change);
    pthread_mutex_destroy(&hasher->lock);
    digest_free(&hasher->digest);
    free(hasher->chunk);
    free(hasher);
}

struct hasher *
hasher_start(int fd, int64_t from)
{
    struct hasher *hasher = calloc(1, sizeof *hasher);
    if (!hasher)
        return NULL;
    hasher->fd = fd;
    hasher->at = hasher->end = hasher->woken = from;
    pthread_mutex_init(&hasher->lock, NULL);
    pthread_cond_init(&hasher->change, NULL);
    hasher->digest = digest_new();
    hasher->chunk = malloc(CHUNK);
    if (hasher->digest && hasher->chunk && start_thread(hasher))
        return hasher;
    release(hasher);
    return NULL;
}

void
hasher_allow(struct hasher *hasher, int64_t end)
{
    if (end - hasher->woken < WAKE)
        return;
    hasher->woken = end;
    pthread_mutex_lock(&hasher->lock);
    hasher->end = end;
    pthread_cond_signal(&hasher->change);
    pthread_mutex_unlock(&hasher->lock);
}

/* Ends the thread: at `end`, or at once. */
static void
end_thread(struct hasher *hasher, int64_t end, bool is_given_up)
{
    pthread_mutex_lock(&hasher->lock);
    hasher->is_given_up = is_given_up;
    hasher->is_last = true;
    hasher->end = end;
    pthread_cond_signal(&hasher->change);
    pthread_mutex_unlock(&hasher->lock);
    pthread_join(hasher->thread, NULL);
}

bool
hasher_finish(struct hasher **hasher, int64_t end, char ret[DIGEST_SIZE])
{
    struct hasher *one = *hasher;
    end_thread(one, end, false);
    bool ok = one->ok && one->at == end && digest_finish(one->digest, ret);
    release(one);
    *hasher = NULL;
    return ok;
}

void
hasher_free(struct hasher **hasher)
{
    if (!*hasher)
        return;
    end_thread(*hasher, (*hasher)->end, true);
    release(*hasher);
    *hasher = NULL;
}
