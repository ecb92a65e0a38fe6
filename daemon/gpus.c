/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "gpus.h"

#include <string.h>

static bool
has(const int *devices, size_t n, int device)
{
    for (size_t i = 0; i < n; i++)
        if (devices[i] == device)
            return true;
    return false;
}

bool
gpus_parse(const char *text, int ret[GPUS_MOST], size_t *ret_n)
{
    size_t n = 0;
    *ret_n = 0;
    while (*text) {
        int device = 0;
        size_t digits = strspn(text, "0123456789");
        if (digits == 0 || digits > 2)
            return false;
        for (size_t i = 0; i < digits; i++)
            device = device * 10 + (text[i] - '0');
        text += digits;
        if (device >= GPUS_MOST || has(ret, n, device))
            return false;
        ret[n++] = device;
        if (*text && (*text++ != ',' || !*text))
            return false;
    }
    *ret_n = n;
    return true;
}

void
gpus_init(struct gpus *gpus, const char *text)
{
    memset(gpus, 0, sizeof *gpus);
    pthread_mutex_init(&gpus->lock, NULL);
    (void)gpus_parse(text, gpus->devices, &gpus->n);
}

void
gpus_fini(struct gpus *gpus)
{
    pthread_mutex_destroy(&gpus->lock);
}

int
gpus_take(struct gpus *gpus)
{
    int device = GPUS_NONE;
    pthread_mutex_lock(&gpus->lock);
    for (size_t i = 0; device == GPUS_NONE && i < gpus->n; i++)
        if (!gpus->taken[i]) {
            gpus->taken[i] = true;
            device = gpus->devices[i];
        }
    pthread_mutex_unlock(&gpus->lock);
    return device;
}

void
gpus_give_back(struct gpus *gpus, int device)
{
    pthread_mutex_lock(&gpus->lock);
    for (size_t i = 0; i < gpus->n; i++)
        if (gpus->devices[i] == device)
            gpus->taken[i] = false;
    pthread_mutex_unlock(&gpus->lock);
}

bool
gpus_are_taken(struct gpus *gpus)
{
    bool taken = gpus->n > 0;
    pthread_mutex_lock(&gpus->lock);
    for (size_t i = 0; i < gpus->n; i++)
        taken &= gpus->taken[i];
    pthread_mutex_unlock(&gpus->lock);
    return taken;
}
