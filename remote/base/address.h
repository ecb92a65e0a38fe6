/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses that only a remote with allow_private may have. */
#ifndef REMOTE_BASE_ADDRESS_H
#define REMOTE_BASE_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

/* Returns whether the address is one of the public Internet: neither loopback, private,
   link-local, shared, multicast nor reserved, and none of these inside of an IPv6 form
   (mapped, compatible, 6to4, NAT64, Teredo). Other families are not public. */
bool address_is_public(const struct sockaddr *address);

#endif
