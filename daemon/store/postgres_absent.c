/* SPDX-License-Identifier: Apache-2.0 */
/* Stands for postgres.c in a build without libpq. */
#include "config.h"
#include "store/db.h"

bool
db_open_postgres(const struct store_place *place, struct db **ret,
                 struct api_problem *p)
{
    (void)place;
    (void)ret;
    return api_problem_set(p, API_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
                           "store.url: this qdqd was built without PostgreSQL: install "
                           "libpq-dev and build it again");
}
