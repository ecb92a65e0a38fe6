/* SPDX-License-Identifier: Apache-2.0 */
/* The model of a job, from the service to its files. */
#ifndef CLI_DOWNLOAD_H
#define CLI_DOWNLOAD_H

#include "client.h"
#include "files.h"

/*
 * Writes the model of a job that succeeded and commits it. A data file goes beside it, under
 * the name by which the model finds it; a file of that name with other bytes is an error. All
 * bytes are compared with their digests.
 */
bool download_model(struct client *client, const struct api_job_facts *job,
                    struct output *out, struct api_problem *problem);

#endif
