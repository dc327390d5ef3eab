/* Many requests for one piece of work.  See store_parallel.h. */
#include "store_parallel.h"

#include "base/memory.h"

/* This many are prepared at a time: enough to keep all connections busy, few enough that a signature made at the start
 * of a wave is still valid at its end. */
enum { WAVE = 2 * HTTP_PARALLEL_MOST };

typedef struct wave {
    http_request requests[WAVE];
    size_t items[WAVE];
    size_t count;
} wave;

/* Makes the requests of a wave; those that have to be made again stay in it, their items at its start. */
static int run_wave(const store_parallel *work, wave *self, store_attempt *attempt)
{
    size_t asked = 0, kept = 0;
    int status = SHOAL_OK, passing = SHOAL_OK;
    for (; asked < self->count && status == SHOAL_OK; asked++) {
        self->requests[asked] = (http_request){0};
        status = work->ask(work->context, self->items[asked], &self->requests[asked]);
    }
    if (status == SHOAL_OK) {
        status = http_perform(work->pool, self->requests, self->count, attempt->deadline);
        if (status < 0)
            store_fail(work->store, NULL, status, "%s", shoal_error());
    }
    for (size_t i = 0; i < asked; i++) {
        /* After a lasting failure, whose message is kept, the rest is only freed. */
        int taken = work->take(work->context, self->items[i], &self->requests[i], status == SHOAL_OK, attempt);
        http_request_release(&self->requests[i]);
        if (status < 0)
            continue;
        if (taken == SHOAL_AGAIN || taken == SHOAL_UNKNOWN) {
            self->items[kept++] = self->items[i];
            passing = taken;
        } else {
            status = taken;
        }
    }
    if (status < 0)
        return status; /* all of the wave is still to do, should this have been one that passes */
    self->count = kept;
    return passing;
}

int store_parallel_run(const store_parallel *work, size_t items, store_attempt *attempt)
{
    wave *self = NULL;
    store_backoff backoff = {0};
    size_t next = 0;
    int status = base_alloc(&self, 1, sizeof *self, "requests");
    while (status == SHOAL_OK && (next < items || self->count > 0)) {
        while (self->count < WAVE && next < items)
            self->items[self->count++] = next++;
        attempt->retry_after = 0;
        status = run_wave(work, self, attempt);
        if (status == SHOAL_OK)
            backoff = (store_backoff){0};
        else if ((status == SHOAL_AGAIN || status == SHOAL_UNKNOWN) &&
                 store_backoff_sleep(&backoff, work->store, attempt))
            status = SHOAL_OK;
    }
    if (status == SHOAL_OK)
        attempt->cause = SHOAL_CAUSE_NONE; /* what passed has passed */
    base_free(&self);
    return status;
}
