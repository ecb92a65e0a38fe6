/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every kind of lock, in the order in which a thread may acquire them: LOCK(NAME, "name").
 * A thread that holds one acquires only those that stand further down, and no second one
 * of the same kind.
 */
LOCK(TOKENS, "tokens")       /* the tokens that were read from their file */
LOCK(TURNS, "turns")         /* whose job is claimed next */
LOCK(TENANTS, "tenants")     /* the list of tenants, and their limits */
LOCK(JOBS, "jobs")           /* a tenant's running jobs and those who wait for them */
LOCK(LIBRARY, "library")     /* a tenant's rows and blobs, while they change together */
LOCK(STORE, "store")         /* a tenant's database */
LOCK(STORE_LOG, "store_log") /* how much of a database's log is on the disk */
LOCK(NAMING, "naming")       /* names of blobs, and how many bytes they are */
LOCK(BELL, "bell")           /* how often it was rung */
LOCK(GPUS, "gpus")           /* which GPU is leased */
LOCK(PROCESS, "process")     /* a worker's process id */
LOCK(SHORT_WORK, "short_work") /* the short work that waits */
LOCK(BACKENDS, "backends")     /* what models can run with */
LOCK(CONNS, "conns")           /* the connections */
LOCK(TLS, "tls")               /* the newest certificate */
