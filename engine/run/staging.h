/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inputs on their way to a device, ahead of the run that reads them. They are copied into
 * pinned memory, from where a stream of its own takes them over while the run before them
 * is under way. There are two of everything: one is read by a run while the other one is
 * filled. Memory is taken when it is first needed, and again only for what is larger.
 * Only for engine/run/.
 */
#ifndef QDQI_RUN_STAGING_H
#define QDQI_RUN_STAGING_H

#include "data/feed.h"
#include "run/place.h"

struct qdqi_staging;

/* `place` is borrowed. DEVICE_MEMORY, DEVICE_LOST. */
enum qdq_code qdqi_staging_open(const struct qdqi_place *place,
                                struct qdqi_staging **ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_staging_close(struct qdqi_staging **staging);

/*
 * Sends n inputs, which may change as soon as it returns; their names may not. At most two
 * are on their way, or read by a run, at a time. DEVICE_MEMORY, DEVICE_LOST.
 */
enum qdq_code qdqi_staging_put(struct qdqi_staging *staging,
                               const struct qdqi_input *inputs, size_t n,
                               struct qdq_error *err) QDQ_MUST_CHECK;
/* Waits for the inputs that were put first and not taken yet. They lie on the device, until
   the next but one is put. DEVICE_LOST. */
enum qdq_code qdqi_staging_take(struct qdqi_staging *staging,
                                const struct qdqi_input **ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;
/* Whether these are inputs that were taken. */
bool qdqi_staging_has(const struct qdqi_staging *staging,
                      const struct qdqi_input *inputs);

#endif
