/* SPDX-License-Identifier: Apache-2.0 */
/* The carrier's work for the bucket of blobs: unlike other work, one process does many pieces
   of it, over one connection. Its credentials are the same for all. */
#include "config.h"
#include "carriers/carry.h"
#include "remote/bucket.h"
#include "workers/worker.h"
#include "api/grow.h"

#include <stdio.h>
#include <string.h>

static bool
add_object(void *arg, const struct qdqr_object *object, struct api_problem *p)
{
    struct string_list *list = arg;
    return (string_list_add(list, object->key) &&
            string_list_add_number(list, object->size) &&
            string_list_add_number(list, object->modified)) ||
           api_problem_no_memory(p);
}

/* Lists a page: the next token, the bucket's time, and each object. */
static bool
list_page(struct qdqr_bucket *bucket, const struct message *request,
          struct string_list *ret, struct api_problem *p)
{
    struct string_list objects = {0};
    char token[QDQR_TOKEN];
    int64_t now;
    snprintf(token, sizeof token, "%s", request->text ? request->text : "");
    bool ok = qdqr_object_list(bucket, request->body.object.key, token, add_object,
                               &objects, &now, p) &&
              ((string_list_add(ret, token) && string_list_add_number(ret, now)) ||
               api_problem_no_memory(p));
    ok = ok && (api_append(&ret->text, &ret->len, objects.text ? objects.text : "",
                           objects.len) ||
                api_problem_no_memory(p));
    string_list_fini(&objects);
    return ok;
}

static bool
do_one(struct qdqr_bucket *bucket, const struct message *request,
       struct string_list *ret, struct api_problem *p)
{
    const struct message_object *object = &request->body.object;
    bool there = false, ok = false;
    switch ((enum message_object_op)object->op) {
    case MESSAGE_OBJECT_PUT:
        ok = qdqr_object_put(bucket, object->key, request->fds[0], object->digest,
                             &there, p);
        break;
    case MESSAGE_OBJECT_GET:
        ok = qdqr_object_get(bucket, object->key, request->fds[0], p);
        break;
    case MESSAGE_OBJECT_FIND:
        ok = qdqr_object_find(bucket, object->key, &there, p);
        break;
    case MESSAGE_OBJECT_REMOVE:
        ok = qdqr_object_remove(bucket, object->key, p);
        break;
    case MESSAGE_OBJECT_REMOVE_BY:
        ok = qdqr_object_remove_by(bucket, object->key,
                                   &(struct qdqr_while){object->since, object->seconds},
                                   &there, p);
        break;
    case MESSAGE_OBJECT_LIST:
        return list_page(bucket, request, ret, p);
    case MESSAGE_N_OBJECT_OPS:
        break;
    }
    return ok && (string_list_add_number(ret, there) || api_problem_no_memory(p));
}

static void
serve_object(struct carrier *c, struct qdqr_bucket *bucket,
             const struct message *request)
{
    struct api_problem problem = {0};
    struct string_list strings = {0};
    bool ok = do_one(bucket, request, &strings, &problem);
    carry_answer(c, ok, MESSAGE_RESULT, &strings, &problem);
}

void
carry_objects(struct carrier *c, const struct message *request)
{
    struct api_problem problem = {0};
    struct qdqr_bucket *bucket = NULL;
    struct message next;
    bool ok = carry_open_remote(c, &request->body.bucket.remote, request, &problem) &&
              qdqr_bucket_open(&c->opened.remote, &c->call, &bucket, &problem);
    carry_answer(c, ok, MESSAGE_RESULT, &(struct string_list){0}, &problem);
    if (!ok)
        return;
    while (!c->gone && message_receive(WORKER_SOCKET, -1, -1, &next) == MESSAGE_GOT) {
        bool known = next.type == MESSAGE_OBJECT;
        if (known)
            serve_object(c, bucket, &next);
        message_fini(&next);
        if (!known)
            break;
    }
    qdqr_bucket_close(&bucket);
}
