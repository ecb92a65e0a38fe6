/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of durations. */
#ifndef QDQI_GROUND_BASE_SECONDS_H
#define QDQI_GROUND_BASE_SECONDS_H

/* Returns seconds of a clock that is never set. Only differences mean something. */
double qdqi_seconds_now(void);

#endif
