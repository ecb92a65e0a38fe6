/* SPDX-License-Identifier: Apache-2.0 */
/* A tenant's schema in PostgreSQL and its migrations. */
#include "config.h"
#include "base/log.h"
#include "store/postgres/inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_MS 4000
#define MIGRATE_MS 600000 /* for one step, and for the daemon that takes them */

static const char *const steps[] = {
#define STEP(sql) sql,
#include "store/postgres/steps.h"
#undef STEP
};

enum { SCHEMA_VERSION = sizeof steps / sizeof *steps };

bool
postgres_schema_name(const char *tenant, char ret[POSTGRES_SCHEMA],
                     struct api_problem *p)
{
    int len = tenant && *tenant ? snprintf(ret, POSTGRES_SCHEMA, "qdqd-%s", tenant)
                                : snprintf(ret, POSTGRES_SCHEMA, "qdqd");
    return len < POSTGRES_SCHEMA ||
           api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL,
                           "the tenant %s: in PostgreSQL a tenant's name has at most "
                           "%d characters",
                           tenant, POSTGRES_SCHEMA - 6);
}

char *
postgres_translate(const char *sql, const char *schema)
{
    char prefix[POSTGRES_SCHEMA + 4];
    size_t marks = 0;
    snprintf(prefix, sizeof prefix, "\"%s\".", schema);
    size_t len = strlen(prefix);
    for (const char *at = sql; (at = strchr(at, '@')); at++)
        marks++;
    char *text = malloc(strlen(sql) + marks * len + 1), *to = text;
    if (!text)
        return NULL;
    for (const char *from = sql; *from; from++) {
        if (*from == '@') {
            memcpy(to, prefix, len);
            to += len;
        } else {
            *to++ = *from == '?' ? '$' : *from;
        }
    }
    *to = '\0';
    return text;
}

static bool
fail(const struct postgres_failure *failure, const char *schema, struct api_problem *p)
{
    return api_problem_set(p, failure->code, QDQ_AT_NOTHING, NULL,
                           "store.url: the schema %s: %s", schema, failure->text);
}

/* Runs SQL with marks within `ms`. *ret, unless NULL, is the number in the first row; without
   a row it stays. */
static bool
execute(PGconn *conn, const char *schema, const char *sql, int64_t ms, int64_t *ret,
        struct api_problem *p)
{
    struct postgres_failure failure;
    char *text = postgres_translate(sql, schema);
    if (!text)
        return api_problem_no_memory(p);
    PGresult *result = postgres_ask(
        conn, &(struct postgres_query){.sql = text, .n = -1}, ms, &failure);
    free(text);
    if (!result)
        return fail(&failure, schema, p);
    if (ret && PQntuples(result))
        *ret = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return true;
}

/* Reads the version of the schema; 0: there is none. */
static bool
read_version(PGconn *conn, const char *schema, int64_t *ret, struct api_problem *p)
{
    int64_t any = 0;
    char sql[256];
    snprintf(sql, sizeof sql,
             "SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname = '%s'"
             " AND tablename = 'version'",
             schema);
    *ret = 0;
    return execute(conn, schema, sql, ANSWER_MS, &any, p) &&
           (!any ||
            execute(conn, schema, "SELECT version FROM @version", ANSWER_MS, ret, p)) &&
           (*ret <= SCHEMA_VERSION ||
            api_problem_set(
                p, API_IO, QDQ_AT_NOTHING, NULL,
                "store.url: the schema %s has version %lld, this version of "
                "qdqd knows %d: start a newer qdqd",
                schema, (long long)*ret, SCHEMA_VERSION));
}

/* Takes the steps that are missing, in one transaction; each may take `ms`. */
static bool
migrate(PGconn *conn, const char *schema, int64_t ms, struct api_problem *p)
{
    int64_t version = 0;
    char sql[512];
    if (!execute(conn, schema,
                 "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('qdqd', 0))", ms,
                 NULL, p) ||
        !read_version(conn, schema, &version, p))
        return false;
    snprintf(
        sql, sizeof sql,
        "CREATE SCHEMA IF NOT EXISTS \"%s\";"
        "CREATE TABLE @version(version INTEGER NOT NULL, number BIGINT NOT NULL);"
        "INSERT INTO @version VALUES(0, 1 +"
        " (extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT %% 2147483646)",
        schema);
    bool ok = version > 0 || execute(conn, schema, sql, ms, NULL, p);
    for (int64_t i = version; ok && i < SCHEMA_VERSION; i++)
        ok = execute(conn, schema, steps[i], ms, NULL, p);
    snprintf(sql, sizeof sql, "UPDATE @version SET version = %d; COMMIT",
             SCHEMA_VERSION);
    ok = ok && execute(conn, schema, sql, ms, NULL, p);
    if (ok && version > 0 && version < SCHEMA_VERSION)
        log_info("schema_changed", "from=%lld to=%d schema=%s", (long long)version,
                 SCHEMA_VERSION, schema);
    return ok;
}

bool
postgres_schema_bring(const char *url, const char *schema, bool brief,
                      struct api_problem *p)
{
    struct postgres_failure failure;
    int64_t version;
    PGconn *conn = postgres_connect(url, &failure);
    if (!conn)
        return fail(&failure, schema, p);
    bool ok = read_version(conn, schema, &version, p) &&
              (version == SCHEMA_VERSION ||
               migrate(conn, schema, brief ? ANSWER_MS : MIGRATE_MS, p));
    PQfinish(conn);
    return ok;
}
