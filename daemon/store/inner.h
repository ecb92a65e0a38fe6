/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `struct store` that its own files share: the database and how a
   statement is run. */
#ifndef QDQD_STORE_INNER_H
#define QDQD_STORE_INNER_H

#include "api/utf8.h"
#include "base/lock.h"
#include "store/db.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A statement of one store. */
struct stmt {
    struct db *db;
    enum statement name;
    const struct lock *lock; /* the store's; held while it is used */
    bool *lacks_memory;      /* the store's */
    char *repaired[24];      /* copies of bound texts, which done() frees */
    size_t n_repaired;
};

struct store {
    struct db *db;
    struct store_retention retention;
    int64_t lease_ms;
    bool hints;        /* changes are told (store/hints.h) */
    struct lock lock;  /* guards db and its statements, and: */
    bool lacks_memory; /* a text of a bound statement could not be copied */
    int64_t led;       /* guarded by lock: the leader's fence; 0: another one leads */
    struct stmt statements[N_STATEMENTS];
};

/* Returns a repaired copy of a text, which lives until done() (texts.c). */
const char *store_repair(struct stmt *stmt, const char *text);

static inline bool
fail(struct store *store, struct api_problem *p)
{
    return store->lacks_memory ? api_problem_no_memory(p)
                               : store->db->class->fail(store->db, p);
}

/* Returns the end of a retention that counts from `kept_from`. */
static inline int64_t
expires(int64_t kept_from, int64_t retention)
{
    return kept_from && retention ? kept_from + retention : 0;
}

/* --- statements; the caller holds the lock -------------------------------- */

/* Binds a text, which is borrowed until done(). Both databases keep the same one: U+FFFD stands for
   each byte that is not UTF-8, which PostgreSQL would refuse. */
static inline void
bind_text(struct stmt *stmt, int i, const char *text)
{
    lock_assert_held(stmt->lock);
    if (text && !api_utf8_is_valid(text))
        text = store_repair(stmt, text);
    stmt->db->class->bind_text(stmt->db, stmt->name, i, text);
}

static inline void
bind_int(struct stmt *stmt, int i, int64_t value)
{
    lock_assert_held(stmt->lock);
    stmt->db->class->bind_int(stmt->db, stmt->name, i, value);
}

/* The value of a parameter. */
struct bound {
    bool is_int;
    int64_t number;
    const char *text;
};
#define INT(value) ((struct bound){.is_int = true, .number = (value)})
#define TEXT(value) ((struct bound){.text = (value)})

static inline void
bind_row(struct stmt *stmt, int i, const struct bound *values, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (values[k].is_int)
            bind_int(stmt, i + (int)k, values[k].number);
        else
            bind_text(stmt, i + (int)k, values[k].text);
}

/* Binds the parameters from i on, as in bind_all(stmt, 1, TEXT(id), INT(fence)). */
#define bind_all(stmt, i, ...)                             \
    bind_row(stmt, i, (const struct bound[]){__VA_ARGS__}, \
             sizeof(const struct bound[]){__VA_ARGS__} / sizeof(struct bound))

/* Returns DB_ROW, DB_DONE or DB_FAILED. */
static inline int
step(struct stmt *stmt)
{
    lock_assert_held(stmt->lock);
    return *stmt->lacks_memory ? DB_FAILED
                               : stmt->db->class->step(stmt->db, stmt->name);
}

static inline int64_t
column_int(struct stmt *stmt, int i)
{
    lock_assert_held(stmt->lock);
    return stmt->db->class->column_int(stmt->db, stmt->name, i);
}

/* Returns a text that is borrowed until the next step, or NULL. */
static inline const char *
borrow_text(struct stmt *stmt, int i)
{
    lock_assert_held(stmt->lock);
    return stmt->db->class->column_text(stmt->db, stmt->name, i);
}

/* Returns the number of rows that the last statement changed. */
static inline int64_t
changes(struct store *store)
{
    lock_assert_held(&store->lock);
    return store->db->class->changes(store->db);
}

/* Resets a statement after its use. Its bindings borrow from the caller. */
static inline void
done(struct stmt *stmt)
{
    lock_assert_held(stmt->lock);
    stmt->db->class->done(stmt->db, stmt->name);
    *stmt->lacks_memory = false;
    while (stmt->n_repaired)
        free(stmt->repaired[--stmt->n_repaired]);
}

/* Runs a bound statement and ignores its rows. */
static inline bool
run(struct store *store, enum statement s, struct api_problem *p)
{
    lock_assert_held(&store->lock);
    int rc = step(&store->statements[s]);
    bool ok = rc == DB_DONE || rc == DB_ROW || fail(store, p);
    done(&store->statements[s]);
    return ok;
}

/* Runs a bound statement. *ret_did is whether it changed a row. */
static inline bool
change(struct store *store, enum statement s, bool *ret_did, struct api_problem *p)
{
    bool ok = run(store, s, p);
    *ret_did = ok && changes(store) == 1;
    return ok;
}

/* Runs a bound statement. *ret_any is whether there was a row; the row's first
   column goes to *ret if `ret` is not NULL. */
static inline bool
ask(struct store *store, enum statement s, bool *ret_any, int64_t *ret,
    struct api_problem *p)
{
    lock_assert_held(&store->lock);
    int rc = step(&store->statements[s]);
    bool ok = rc == DB_DONE || rc == DB_ROW || fail(store, p);
    if (ok && ret_any)
        *ret_any = rc == DB_ROW;
    if (rc == DB_ROW && ret)
        *ret = column_int(&store->statements[s], 0);
    done(&store->statements[s]);
    return ok;
}

/* Commits a transaction, or rolls it back when `ok` is false or the commit fails. */
static inline bool
finish(struct store *store, bool ok, struct api_problem *p)
{
    lock_assert_held(&store->lock);
    if (ok && run(store, COMMIT, p))
        return true;
    struct api_problem ignored = {0};
    (void)run(store, ROLLBACK, &ignored);
    return false;
}

/* Copies a column's text. Sets *ok to false when there is no memory for it. */
static inline char *
column_text(struct stmt *stmt, int i, bool *ok)
{
    const char *text = borrow_text(stmt, i);
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy)
        *ok = false;
    return copy;
}

static inline void
column_chars(struct stmt *stmt, int i, char *ret, size_t size)
{
    const char *text = borrow_text(stmt, i);
    snprintf(ret, size, "%s", text ? text : "");
}

/* Adds the rows of a model's files, as a part of a transaction. NULL: the model is
   one file. */
bool store_add_model_files(struct store *store, const char *model,
                           const struct store_model_files *files,
                           struct api_problem *p);

/* Steps a statement with the columns of a job once (store.c). *ret_any is false when there
   is no row. */
bool store_read_job(struct store *store, enum statement s, struct store_job *ret,
                    bool *ret_any, struct api_problem *p);
/* Binds the states of a change, the first at parameter `i` (job_states.c). Every statement that
   changes a job's state gets its states here. */
void store_bind_change(struct stmt *stmt, int i, enum api_job_state from,
                       enum api_job_state to);
/* When another job has the same identity, copies its result to the job, or joins them
   (equal_jobs.c). A part of a transaction. */
bool store_settle_job(struct store *store, const struct store_job *job,
                      const char *identity, enum store_added *ret,
                      struct api_problem *p);

/* Inserts the row of a job (store.c). A part of a transaction, or one of its own. NOT_FOUND. */
bool store_insert_job(struct store *store, const struct store_job *job,
                      const struct store_asking *asking, struct api_problem *p);

/* The targets of a job, in their order. */
struct store_target_state {
    char id[JOB_ID_SIZE];
    enum api_job_state state;
};
struct store_targets {
    struct store_target_state *items; /* the caller frees it */
    size_t n;
};
/* Lists the targets of a job and locks their rows (several/states.c). A part of a transaction, which locks
   the row of the job itself only behind them. */
bool store_lock_targets(struct store *store, const char *job, struct store_targets *ret,
                        struct api_problem *p);

/* Sets on which class of processors a job runs (store.c). A part of a transaction. */
bool store_set_processor(struct store *store, const struct store_job *job,
                         struct api_problem *p);
/* Renews the lease of a claim by a statement (store.c); a delivery has no progress: NULL.
   *ret_held as in store_job_renew(). */
bool store_renew(struct store *store, enum statement s, const char *id, int64_t fence,
                 const struct store_progress *progress, bool *ret_held,
                 struct api_problem *p);
/* Reads a job (store.c). NOT_FOUND. */
bool store_find_job(struct store *store, const char *id, struct store_job *ret,
                    struct api_problem *p);
/* Makes sure, as a part of a transaction, that this daemon leads until its end (leader.c).
   CANCELLED: it does not. */
bool store_check_leads(struct store *store, struct api_problem *p);

static inline void
bind_file(struct store *store, enum statement s, enum store_kind kind, const char *id)
{
    bind_all(&store->statements[s], 1, INT((int)kind), TEXT(id));
}

#endif
