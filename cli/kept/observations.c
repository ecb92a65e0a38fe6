/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "kept/observations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kept/file.h"

enum { MOST_BYTES = 8 << 20 };

bool
observations_are_kept(const struct qdq_spec *spec, int dataset)
{
    return dataset >= 0 && !qdq_spec_rounds(spec) && !spec->smooth_awq &&
           spec->bias_correction == QDQ_BIASES_NONE && spec->device != QDQ_DEVICE_CUDA;
}

void
observations_open(const struct qdq_spec *spec, const char *text, const char *model_id,
                  const char *dataset_id, struct output *ret)
{
    char *identity =
        model_id && text ? qdq_observations_identity(spec, model_id, dataset_id) : NULL;
    char *whole = NULL;
    if (identity && asprintf(&whole, "%s\n%s", identity, text) >= 0) {
        kept_file_open("observations", whole, MOST_BYTES, ret);
        free(whole);
    }
    free(identity);
}

/* The first bytes are written last. */
void
observations_keep(struct output *file)
{
    char begin[sizeof QDQ_OBSERVATIONS_MAGIC - 1];
    const bool is_whole = file->fd >= 0 &&
                          pread(file->fd, begin, sizeof begin, 0) == sizeof begin &&
                          memcmp(begin, QDQ_OBSERVATIONS_MAGIC, sizeof begin) == 0;
    kept_file_close(file, is_whole, MOST_BYTES);
}
