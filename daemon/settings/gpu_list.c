/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "settings/gpu_list.h"

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
