/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "kept/times.h"

#include <stdlib.h>

#include "kept/file.h"

enum { MOST_BYTES = 8 << 20 };

int
times_open(void *arg)
{
    struct kept_times *times = arg;
    const char *id = pending_id_wait(times->model_id);
    char *identity = id ? qdq_times_identity(times->spec, id) : NULL;
    if (identity)
        kept_file_open("times", identity, MOST_BYTES, &times->file);
    free(identity);
    return times->file.fd;
}

void
times_keep(struct kept_times *times, bool succeeded)
{
    kept_file_close(&times->file, succeeded, MOST_BYTES);
}
