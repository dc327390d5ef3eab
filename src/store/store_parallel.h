/* One piece of work as many requests: blocks of a large put, ranges of a large get.
 *
 * A request that fails temporarily is retried by itself, after a pause, until the attempt's deadline; those that
 * succeeded are not repeated.  The first lasting failure ends all. */
#ifndef STORE_PARALLEL_H
#define STORE_PARALLEL_H

#include "http.h"

typedef struct store_parallel {
    shoal_store *store;
    http_pool *pool;
    void *context;
    /* Fills in the request for an item, zero before: method, address, headers, body or buffer.  What it points to must
     * last until `take`, which is called also when this failed. */
    int (*ask)(void *context, size_t item, http_request *request);
    /* Judges the answer and frees what `ask` made.  SHOAL_AGAIN and SHOAL_UNKNOWN, with the attempt's cause: make it
     * again. `asked` is false when there is no answer, because `ask` failed or all was given up. */
    int (*take)(void *context, size_t item, http_request *request, bool asked, store_attempt *attempt);
} store_parallel;

int store_parallel_run(const store_parallel *work, size_t items, store_attempt *attempt);

#endif
