/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/sync.h"

#include <errno.h>
#include <pthread.h>

struct one {
    int (*sync)(int fd);
    int fd, error;
    pthread_t thread;
};

static void *
sync_one(void *arg)
{
    struct one *one = arg;
    one->error = one->sync(one->fd) ? errno : 0;
    return NULL;
}

int
sync_together(int (*sync)(int fd), const int *fds, size_t n)
{
    struct one ones[SYNC_MOST];
    size_t started = 0;
    int error = 0;
    for (size_t i = 0; i < n; i++)
        ones[i] = (struct one){sync, fds[i], 0, pthread_self()};
    /* The last descriptor is synced by this thread, and so are all others when no
       thread can be started. */
    while (started + 1 < n &&
           !pthread_create(&ones[started].thread, NULL, sync_one, &ones[started]))
        started++;
    for (size_t i = started; i < n; i++)
        sync_one(&ones[i]);
    for (size_t i = 0; i < n; i++) {
        if (i < started)
            pthread_join(ones[i].thread, NULL);
        if (!error)
            error = ones[i].error;
    }
    return error;
}
