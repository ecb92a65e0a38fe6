/* SPDX-License-Identifier: Apache-2.0 */
/* The list of GPUs in the setting gpu.devices. */
#ifndef QDQD_SETTINGS_GPU_LIST_H
#define QDQD_SETTINGS_GPU_LIST_H

#include <stdbool.h>
#include <stddef.h>

enum { GPUS_MOST = 64, GPUS_NONE = -1 };

/* Parses "0,1": numbers from 0 to 63, none twice, with commas between; "": none. */
bool gpus_parse(const char *text, int ret[GPUS_MOST], size_t *ret_n);

#endif
