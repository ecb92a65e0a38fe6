/* SPDX-License-Identifier: Apache-2.0 */
/* The places in remotes that a request for a job names. */
#ifndef QDQD_HANDLERS_PLACES_H
#define QDQD_HANDLERS_PLACES_H

#include "http/request.h"

/*
 * Checks that a token with these scopes (bits of tenants/tokens.h) may use the remotes of the
 * job's places, and that their refs have the form of the remote's kind. No connection is
 * opened. REMOTE_UNKNOWN, REMOTE_DENIED, BAD_REQUEST, UNSUPPORTED.
 */
bool places_check(const struct service *service, unsigned scopes,
                  const struct api_job_request *job, struct api_problem *p);

/* Returns whether the model or the calibration data is fetched from a remote. */
bool places_are_fetched(const struct api_job_request *job);

#endif
