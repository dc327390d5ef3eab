/* Counts the requests to a store, and what they cost approximately.  Prices are those of the hot or standard tier: for
 * S3 in us-east-1, for Azure those of the vendor's own worked examples of July 2024.  They differ by region and change
 * with time; storage and outbound traffic cost extra. */
#include "store_internal.h"

#include <string.h>

typedef struct price {
    const char *scheme;
    double dollars[SHOAL_REQUEST_KINDS]; /* for 10,000 requests */
} price;

static const price prices[] = {
    {"az",
     {[SHOAL_REQUEST_GET] = 0.0044,
      [SHOAL_REQUEST_PUT] = 0.055,
      [SHOAL_REQUEST_LIST] = 0.055,
      [SHOAL_REQUEST_QUEUE] = 0.004,
      [SHOAL_REQUEST_OTHER] = 0.0044}},
    {"s3",
     {[SHOAL_REQUEST_GET] = 0.004,
      [SHOAL_REQUEST_PUT] = 0.05,
      [SHOAL_REQUEST_LIST] = 0.05,
      [SHOAL_REQUEST_OTHER] = 0.004}},
};

double store_price(const char *scheme, const shoal_store_counts *counts)
{
    double sum = 0;
    for (size_t i = 0; i < sizeof prices / sizeof *prices; i++)
        for (int kind = 0; kind < SHOAL_REQUEST_KINDS && strcmp(prices[i].scheme, scheme) == 0; kind++)
            sum += (double)counts->requests[kind] * prices[i].dollars[kind] / 10000;
    return sum;
}

void store_count(shoal_store *self, shoal_request_kind kind, int64_t sent, int64_t received)
{
    atomic_fetch_add_explicit(&self->counts.requests[kind], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&self->counts.sent, sent, memory_order_relaxed);
    atomic_fetch_add_explicit(&self->counts.received, received, memory_order_relaxed);
}

shoal_store_counts shoal_store_counted(const shoal_store *store)
{
    shoal_store_counts out = {.bytes_sent = store->counts.sent, .bytes_received = store->counts.received};
    for (int i = 0; i < SHOAL_REQUEST_KINDS; i++)
        out.requests[i] = store->counts.requests[i];
    for (int i = 0; i < SHOAL_CAUSES; i++)
        out.causes[i] = store->counts.causes[i];
    out.price = store_price(store->class->scheme, &out);
    return out;
}

int64_t store_counts_requests(const shoal_store_counts *counts)
{
    int64_t sum = 0;
    for (int i = 0; i < SHOAL_REQUEST_KINDS; i++)
        sum += counts->requests[i];
    return sum;
}

void store_counts_add(shoal_store_counts *sum, const shoal_store *store)
{
    const shoal_store_counts more = shoal_store_counted(store);
    for (int i = 0; i < SHOAL_REQUEST_KINDS; i++)
        sum->requests[i] += more.requests[i];
    for (int i = 0; i < SHOAL_CAUSES; i++)
        sum->causes[i] += more.causes[i];
    sum->bytes_sent += more.bytes_sent;
    sum->bytes_received += more.bytes_received;
    sum->price += more.price;
}

const char *shoal_cause_name(shoal_cause cause)
{
    static const char *const names[SHOAL_CAUSES] = {
        [SHOAL_CAUSE_NONE] = "none",
        [SHOAL_CAUSE_THROTTLED] = "throttled",
        [SHOAL_CAUSE_SERVER] = "server error",
        [SHOAL_CAUSE_UNREACHABLE] = "unreachable",
        [SHOAL_CAUSE_CUT] = "connection cut",
        [SHOAL_CAUSE_TIMEOUT] = "timed out",
        [SHOAL_CAUSE_RACE] = "raced by another writer",
        [SHOAL_CAUSE_BUSY] = "blocked by another process",
    };
    return cause >= 0 && cause < SHOAL_CAUSES ? names[cause] : "?";
}
