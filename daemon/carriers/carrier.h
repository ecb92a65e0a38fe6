/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `qdqd --carrier`: the process that speaks to remotes. It is started like a worker and
 * has a cage of its own (workers/cage.h): it may open connections, and no path but those
 * that name resolution needs. Credentials, certificates and files come as descriptors. It
 * does one piece of work, so that no credentials stay in it.
 */
#ifndef QDQD_CARRIERS_CARRIER_H
#define QDQD_CARRIERS_CARRIER_H

int carrier_main(int argc, char **argv);

#endif
