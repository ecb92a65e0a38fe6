/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that occupies a little of the disk, so that a full disk is not the end:
 * removing something needs room for its transaction, and gives up the ballast for it.
 */
#ifndef QDQD_LIBRARY_FOLDER_BALLAST_H
#define QDQD_LIBRARY_FOLDER_BALLAST_H

#include <stdbool.h>

/* Opens the ballast of a state folder and fills it. Returns -1 when it cannot be
   opened; the other calls then do nothing. */
int ballast_open(int dir);
/* Occupies the room again, where the disk has it. */
void ballast_fill(int ballast);
/* Frees the room. Returns whether there was any. */
bool ballast_drop(int ballast);

#endif
