/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks of durations. */
#ifndef QDQI_GROUND_BASE_SECONDS_H
#define QDQI_GROUND_BASE_SECONDS_H

/* Returns seconds of a clock that is never set. Only differences mean something. */
double qdqi_seconds_now(void);

/* Likewise, of the processor time that the calling thread has had. */
double qdqi_seconds_of_thread(void);

/* Likewise, of all threads of the process. */
double qdqi_seconds_of_process(void);

#endif
