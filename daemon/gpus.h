/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs that jobs may have (gpu.devices): each is one job's at a time. Any thread may
 * call.
 */
#ifndef QDQD_GPUS_H
#define QDQD_GPUS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum { GPUS_MOST = 64, GPUS_NONE = -1 };

struct gpus {
    pthread_mutex_t lock;
    size_t n;
    int devices[GPUS_MOST]; /* as CUDA counts */
    /* guarded by lock: */
    bool taken[GPUS_MOST];
};

/* Reads "0,1": numbers from 0 to 63, none twice, with commas between; "": none. */
bool gpus_parse(const char *text, int ret[GPUS_MOST], size_t *ret_n);

/* Of a text that can be read. */
void gpus_init(struct gpus *gpus, const char *text);
void gpus_fini(struct gpus *gpus);

/* A device that is free, which is the caller's from then on; GPUS_NONE: there is none. */
int gpus_take(struct gpus *gpus);
/* GPUS_NONE: nothing. */
void gpus_give_back(struct gpus *gpus, int device);
/* There are some, and none is free. */
bool gpus_are_taken(struct gpus *gpus);

#endif
