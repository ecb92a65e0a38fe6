/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that the C library keeps when it is freed. */
#ifndef QDQI_GROUND_BASE_UNUSED_H
#define QDQI_GROUND_BASE_UNUSED_H

/*
 * From now on large blocks go back to the system when they are freed, and threads that begin
 * later share one heap. A runtime that allocates several times a model's size to load it, and
 * frees most of it, asks for this.
 */
void qdqi_keep_little_unused(void);

/* Gives free memory between blocks that are still allocated back to the system, too. It takes
   less than a millisecond for 50 MB. */
void qdqi_release_unused(void);

#endif
