/* SPDX-License-Identifier: Apache-2.0 */
/* The build id (the linker's note NT_GNU_BUILD_ID) of the program or library that the engine is
   part of, which two builds of one version do not share unless they are the same bytes. */
#ifndef QDQI_GROUND_BASE_BUILD_ID_H
#define QDQI_GROUND_BASE_BUILD_ID_H

#define QDQI_BUILD_ID_BYTES 32
#define QDQI_BUILD_ID_SIZE (2 * QDQI_BUILD_ID_BYTES + 1)

/* Writes it in hex digits; "" where the linker wrote none. */
void qdqi_build_id(char ret[QDQI_BUILD_ID_SIZE]);

#endif
