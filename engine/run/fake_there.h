/* SPDX-License-Identifier: Apache-2.0 */
/* FakeQuant on a device: scales lie there, too, and are sent again only when they have
   changed. Only for engine/run/. */
#ifndef QDQI_RUN_FAKE_THERE_H
#define QDQI_RUN_FAKE_THERE_H

#include "number/fake.h"
#include "run/place.h"

struct qdqi_sent; /* scales on the device */

/* What the nodes of one session work with. */
struct qdqi_faking {
    const struct qdqi_fakes *host;
    const struct qdqi_place *place;
    struct qdqi_sent *rows; /* by slot */
    struct qdq_error fault; /* what an operator met */
};

/* Both are borrowed. NO_MEMORY. */
enum qdq_code qdqi_faking_open(const struct qdqi_fakes *fakes,
                               const struct qdqi_place *place, struct qdqi_faking **ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_faking_close(struct qdqi_faking **faking);

void qdqi_fake_there_init(struct qdqi_op *op, const OrtApi *api,
                          struct qdqi_faking *faking);

#endif
