/* Copying blobs.  See blobs_copy.h. */
#include "engine/blobs_copy.h"

#include <pthread.h>

#include "base/memory.h"
#include "base/pool.h"
#include "engine/blobs.h"

typedef struct copying {
    const engine_copy *all;
    bool in_pieces;
    pthread_mutex_t lock;
    pthread_cond_t freed;
    int64_t held; /* bytes */
} copying;

static void take_room(copying *self, int64_t bytes)
{
    pthread_mutex_lock(&self->lock);
    while (self->held > 0 && bytes > self->all->memory - self->held)
        pthread_cond_wait(&self->freed, &self->lock);
    self->held += bytes;
    pthread_mutex_unlock(&self->lock);
}

static void give_room(copying *self, int64_t bytes)
{
    pthread_mutex_lock(&self->lock);
    self->held -= bytes;
    pthread_cond_broadcast(&self->freed);
    pthread_mutex_unlock(&self->lock);
}

static int copy_whole(const engine_copy *all, const engine_blob *blob)
{
    void *bytes = NULL;
    size_t size = 0;
    int status = all->from->get(all->from, blob->name, blob->size, &bytes, &size);
    if (status == SHOAL_MEMORY || (status == SHOAL_OK && (int64_t)size != blob->size))
        status = shoal_fail(SHOAL_INVALID, "%s has another size than when it was listed", blob->name);
    if (status == SHOAL_OK)
        status = all->to->put(all->to, blob->name, bytes, size);
    all->from->release(all->from, &bytes);
    return status;
}

static int copy_pieces(const engine_copy *all, const engine_blob *blob)
{
    const int64_t piece = blob->size < ENGINE_COPY_PIECE ? blob->size : ENGINE_COPY_PIECE;
    engine_blob_parts *parts = NULL;
    void *bytes = NULL;
    int64_t whole = -1;
    int status = all->from->has(all->from, blob->name, &whole);
    if (status == SHOAL_OK && whole != blob->size)
        status = shoal_fail(SHOAL_INVALID, "%s has another size than when it was listed", blob->name);
    if (status == SHOAL_OK)
        status = base_alloc_unset(&bytes, (size_t)piece, 1, blob->name);
    if (status == SHOAL_OK)
        status = engine_blobs_begin(&parts, all->to, blob->name);
    for (int64_t at = 0; at < blob->size && status == SHOAL_OK; at += piece) {
        const size_t size = (size_t)(blob->size - at < piece ? blob->size - at : piece);
        status = all->from->get_part(all->from, blob->name, at, bytes, size);
        if (status == SHOAL_OK)
            status = engine_blobs_add(parts, bytes, size);
    }
    status = engine_blobs_end(&parts, status);
    base_free(&bytes);
    return status;
}

static int copy_one(void *context, int64_t item, int thread)
{
    copying *self = context;
    const engine_blob *blob = &self->all->blob[item];
    const int64_t bytes = self->in_pieces && blob->size > ENGINE_COPY_PIECE ? ENGINE_COPY_PIECE : blob->size;
    (void)thread;
    take_room(self, bytes);
    int status = self->in_pieces ? copy_pieces(self->all, blob) : copy_whole(self->all, blob);
    give_room(self, bytes);
    return status;
}

int engine_blobs_copy(const engine_copy *copy)
{
    copying self = {.all = copy,
                    .in_pieces = engine_blobs_take_parts(copy->to),
                    .lock = PTHREAD_MUTEX_INITIALIZER,
                    .freed = PTHREAD_COND_INITIALIZER};
    base_pool *pool = NULL;
    int status = base_pool_new(&pool, copy->count < copy->threads ? (int)copy->count : copy->threads);
    if (status == SHOAL_OK)
        status = base_pool_each(pool, copy->count, copy_one, &self);
    base_pool_free(&pool);
    return status;
}
