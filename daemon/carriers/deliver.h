/* SPDX-License-Identifier: Apache-2.0 */
/* Delivering the results and events of jobs that have ended. */
#ifndef QDQD_CARRIERS_DELIVER_H
#define QDQD_CARRIERS_DELIVER_H

#include "carriers/ask.h"
#include "store/outbox.h"

/* Makes one attempt of a claimed delivery and records how it ended. */
void deliver_one(struct carrier_work *work, const struct store_delivery *delivery);

#endif
