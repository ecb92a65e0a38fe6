/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uploads inputs to a device ahead of the run that reads them. The inputs are copied to
 * pinned memory, from where a separate stream uploads them during the run before. There
 * are two slots: a run reads one while the other one is filled. Memory is allocated on
 * first use and again only when larger inputs come. This header is only for
 * engine/run/.
 */
#ifndef QDQI_RUN_OPERATORS_STAGING_H
#define QDQI_RUN_OPERATORS_STAGING_H

#include "files/data/feed.h"
#include "run/operators/device_memory.h"

struct qdqi_staging;

/* Borrows the device. DEVICE_MEMORY, DEVICE_LOST. */
enum qdq_code qdqi_staging_open(const struct qdqi_device *dev,
                                struct qdqi_staging **ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_staging_close(struct qdqi_staging **staging);

/*
 * Starts the upload of n inputs. The caller may change their data as soon as it
 * returns; their names must stay valid. At most two sets of inputs can be on their way
 * or in use by a run. DEVICE_MEMORY, DEVICE_LOST.
 */
enum qdq_code qdqi_staging_upload(struct qdqi_staging *staging,
                                  const struct qdqi_input *inputs, size_t n,
                                  struct qdq_error *err) QDQ_MUST_CHECK;
/*
 * Waits for the oldest set of inputs that was uploaded and not yet returned. The returned
 * inputs are in device memory and are valid until the next but one set is uploaded.
 * DEVICE_LOST.
 */
enum qdq_code qdqi_staging_next(struct qdqi_staging *staging,
                                const struct qdqi_input **ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;
/* Returns whether qdqi_staging_next() returned these inputs last. Another thread may upload
   inputs meanwhile. */
bool qdqi_staging_owns(const struct qdqi_staging *staging,
                       const struct qdqi_input *inputs);

#endif
