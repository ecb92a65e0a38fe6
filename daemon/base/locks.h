/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every kind of lock, in the order in which a thread may acquire them: LOCK(NAME,
 * "name"). A thread that holds a lock acquires only locks further down, and no second
 * one of the same kind.
 */
LOCK(TOKENS, "tokens")     /* the tokens, as parsed from their file */
LOCK(CARRIERS, "carriers") /* the carriers' search for work */
LOCK(POLLS, "polls")       /* when each hook asks its remote next */
LOCK(TURNS, "turns")       /* the order in which tenants' jobs are claimed */
LOCK(TENANTS, "tenants")   /* the list of tenants, and their limits */
LOCK(JOBS, "jobs") /* a tenant's running jobs, and the threads that wait for jobs */
LOCK(LIBRARY, "library")     /* a tenant's rows and blobs, while they change together */
LOCK(CACHE, "cache")         /* the cache of blobs, and what is fetched for it */
LOCK(STORE, "store")         /* a tenant's database */
LOCK(STORE_LOG, "store_log") /* the amount of a database's log that is on the disk */
LOCK(NAMING, "naming")       /* the names of blobs and their number of bytes */
LOCK(BELL, "bell")           /* the number of notifications of the lanes */
LOCK(GPUS, "gpus")           /* the devices that are leased to jobs */
LOCK(LEASES, "leases")       /* the leases of a tenant's running jobs and deliveries */
LOCK(PROCESS, "process")     /* a worker's process id */
LOCK(ENDINGS, "endings")     /* the ends of jobs that were given to threads */
LOCK(SHORT_WORK, "short_work") /* the short work that waits */
LOCK(BUCKET, "bucket")         /* the requests to the bucket that wait */
LOCK(BACKENDS, "backends")     /* the backends that were found */
LOCK(CONNS, "conns")           /* the connections */
LOCK(BUDGET, "budget")         /* the memory for large texts that is taken */
LOCK(TLS, "tls")               /* the newest certificate */
