/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the statements that SQLite writes in a way of its own. */

#define BYTES_OF(text) "length(CAST(" text " AS BLOB))"
#define GREATER_OF(a, b) "max(" a ", " b ")"
#define NUMBER_OF(text) "CAST(" text " AS INTEGER)"
/* One writer at a time uses a file: rows need no locks of their own. */
#define BEGIN_SQL "BEGIN IMMEDIATE"
#define DATABASE_NUMBER "0"
/* One daemon has the file: its claims need no leases. */
#define LEASE(ms) ""
#define RENEW_SQL "SELECT 1"
#define UNTOLD ""
#define PROGRESS "NULL, 0, 0, -1"
#define RENEW_DELIVERY_SQL "SELECT 1"
/* Its clock is the only one: the time that a statement is given. */
#define MOMENT(asked) asked
/* A time from which retention counts, and by which it ends, never goes back. */
#define RECORD_TIME(asked) "max(" asked ", (SELECT newest FROM @clock))"
#define EXPIRED ""
#define FENCED(fence) ""
#define FENCE "0"
#define SKIP_LOCKED ""
/* No other daemon is to be listed. */
#define NODE_SEEN_SQL "SELECT 1"
#define NODE_EXPIRE_SQL "SELECT 1"
#define NODE_REMOVE_SQL "SELECT 1"
#define NODE_LIST_SQL "SELECT 1"
/* There is nobody to lead, and nobody who stores the same bytes. */
#define LEAD_SQL "SELECT 1"
#define LEAD_END_SQL "SELECT 1"
#define LEAD_LOCK_SQL "SELECT 1"
#define MARK_ADD_SQL "SELECT 1"
#define MARK_TAKE_SQL "SELECT 1"
#define MARK_DROP_SQL "SELECT 1"
#define TENANT_LIST_SQL "SELECT 1"
/* Access tokens are in a file. */
#define RUNS_ON(class) ""
#define SHARED_SQL(sql) "SELECT 1"
#define LOCAL_SQL(sql) sql
#define LOCK_ROW ""
#define LOCK_KEY ""
#define LOCK_NAME(name) "1"

#define HAS_LABEL(text) \
    "EXISTS (SELECT 1 FROM json_each(labels) WHERE key || ':' || value = " text ")"

/* JSON of the files of a model of several files, else NULL. */
#define MODEL_FILES_OF(model)                                                       \
    "(SELECT json_group_array(json_object('path', path, 'digest', digest, 'size', " \
    "size)) FROM (SELECT path, digest, size FROM @model_files WHERE model = " model \
    " AND model IS NOT NULL ORDER BY position) HAVING count(*) > 0)"

/* JSON of a job's deliveries, in their order. */
#define DELIVERIES                                                             \
    "(SELECT json_group_array(json_object('id', id, 'remote', remote, 'ref', " \
    "ref, 'event', event, 'state', state, 'attempts', attempts, 'location', "  \
    "location, 'error', json(error))) FROM (SELECT * FROM @deliveries WHERE "  \
    "job = jobs.id ORDER BY event IS NOT NULL, seq))"

/* JSON of the targets of a job that has several, in their order, else NULL. */
#define TARGETS                                                                      \
    "(SELECT json_group_array(json_object('target', target, 'job', id, 'state', "    \
    "state, 'model', result_model, 'size', result_size, 'files', json(files), "      \
    "'summary', json(summary), 'error_code', error_code, 'error_kind', "             \
    "error_kind, 'error_where', error_where, 'error_detail', error_detail)) "        \
    "FROM (SELECT *, " MODEL_FILES_OF(                                               \
        "one.result_model") " AS files "                                             \
                            "FROM @jobs AS one WHERE one.parent = jobs.id ORDER BY " \
                            "one.seq) "                                              \
                            "HAVING count(*) > 0)"
