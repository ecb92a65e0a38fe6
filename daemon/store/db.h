/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The database under the record: SQLite (sqlite.c) or PostgreSQL (postgres/database.c). Both run the
 * statements of sql.h; where their SQL differs, sql.h uses the macros of
 * dialect_sqlite.h and postgres/dialect.h.
 *
 * The caller of each function holds the store's lock, except that of sync().
 */
#ifndef QDQD_STORE_DB_H
#define QDQD_STORE_DB_H

#include "base/lock.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

/* The names of the statements; their SQL is of no concern here. */
enum statement {
#define STATEMENT(name, sql) name,
#include "store/sql.h"
#undef STATEMENT
    N_STATEMENTS
};

/* The outcome of a step. */
enum { DB_ROW, DB_DONE, DB_FAILED };

struct db;

struct db_class {
    /* Parameters count from 1. A text is borrowed until done(); NULL is SQL's NULL. */
    void (*bind_int)(struct db *db, enum statement s, int i, int64_t value);
    void (*bind_text)(struct db *db, enum statement s, int i, const char *text);
    /* Runs the statement up to its next row: DB_ROW, DB_DONE or DB_FAILED. */
    int (*step)(struct db *db, enum statement s);
    /* Columns count from 0. A text is borrowed until the next step(); NULL: SQL's NULL. */
    int64_t (*column_int)(struct db *db, enum statement s, int i);
    const char *(*column_text)(struct db *db, enum statement s, int i);
    /* Forgets the parameters and the rows. */
    void (*done)(struct db *db, enum statement s);
    /* Returns the number of rows that the last statement changed. */
    int64_t (*changes)(struct db *db);
    /* Sets the problem of the last failure and returns false. */
    bool (*fail)(struct db *db, struct api_problem *p);
    bool (*sync)(struct db *db, struct api_problem *p);
    /* Reads the number that names the database, and chooses it when there is none. */
    bool (*identify)(struct db *db, uint32_t *ret, bool *ret_new,
                     struct api_problem *p);
    bool (*checkpoint)(struct db *db, struct api_problem *p);
    void (*close)(struct db **db);
    bool is_shared; /* other daemons may use the record at the same time */
};

/* Each backend has a struct that begins with this one. */
struct db {
    const struct db_class *class;
};

/* Returns for how long a statement of this thread may wait; 0: as long as others
   (store_wait_at_most()). */
int64_t db_longest_wait(void);

/* Ends an outage: the database has answered. */
void db_answered(void);

/* Opens the file at `path`. `lock` is the store's. */
bool db_open_sqlite(const char *path, struct lock *lock, struct db **ret,
                    struct api_problem *p);

/* Opens the schema of a tenant and makes it when it is absent. UNAVAILABLE when this build
   has no PostgreSQL. */
bool db_open_postgres(const struct store_place *place, struct db **ret,
                      struct api_problem *p);

#endif
