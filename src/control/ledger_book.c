/* Ledgers in a store: read, changed, swapped.  See ledger.h. */
#include <stdio.h>
#include <string.h>
#include <shoal/error.h>

#include "base/memory.h"
#include "base/world.h"
#include "control/ledger.h"

static const uint32_t kind = SHOAL_KIND('l', 'e', 'd', 'g');
enum { BYTES_MOST = 4 << 20 };

static int put_ledger(ledger_book *book, ledger *self, const shoal_etag *expected, int64_t deadline)
{
    void *bytes = NULL;
    size_t size = 0;
    self->serial++;
    int status = ledger_encode(&bytes, &size, self, book->key, book->secret);
    if (status == SHOAL_OK)
        status = shoal_store_put_framed(book->store, book->key, kind, bytes, size, expected, NULL, deadline);
    base_free(&bytes);
    return status;
}

int ledger_create(ledger_book *book, const char *currency, int64_t budget, int64_t deadline)
{
    ledger fresh = {.budget = budget};
    if (strlen(currency) >= sizeof fresh.currency || budget < 0)
        return shoal_fail(SHOAL_USAGE, "'%.20s' is no currency's three letters, or the budget is negative", currency);
    snprintf(fresh.currency, sizeof fresh.currency, "%s", currency);
    return put_ledger(book, &fresh, SHOAL_NOTHING, deadline);
}

/* What this process saw of a later one it does not forget, unless the store may. */
static int check_serial(ledger_book *book, const ledger *self)
{
    uint64_t serial = self->serial;
    if (serial < book->seen && book->seen - serial > (uint64_t)book->allowance)
        return shoal_fail(SHOAL_BROKEN, "%s: somebody put back an older ledger: it is change %llu, and was %llu",
                          book->key, (unsigned long long)serial, (unsigned long long)book->seen);
    book->seen = serial; /* an older one that the store fell back to is the newest there is */
    return SHOAL_OK;
}

static int read_version(ledger *out, shoal_etag *etag, ledger_book *book, int64_t deadline)
{
    shoal_blob blob = {0};
    int status = shoal_store_get_framed_within(book->store, book->key, kind, BYTES_MOST, &blob, deadline);
    *out = (ledger){0};
    if (status < 0)
        return status;
    status = ledger_decode(out, blob.data, blob.size, book->key, book->secret);
    if (status == SHOAL_OK)
        status = check_serial(book, out);
    if (status < 0)
        ledger_release(out);
    *etag = blob.etag;
    shoal_blob_release(&blob);
    return status;
}

int ledger_read(ledger *out, ledger_book *book, int64_t deadline)
{
    shoal_etag etag;
    return read_version(out, &etag, book, deadline);
}

/* A lost answer (SHOAL_UNKNOWN) is no matter: a change that was done is left as it is when it is repeated. */
int ledger_change(ledger_book *book, int (*change)(void *context, ledger *self, uint64_t fresh), void *context,
                  int64_t deadline)
{
    for (;;) {
        ledger self;
        shoal_etag etag;
        uint64_t fresh = 0;
        base_entropy(&fresh, sizeof fresh);
        int status = read_version(&self, &etag, book, deadline);
        if (status == SHOAL_OK) {
            ledger_witness(&self, base_wall_now() / 1000000000); /* after it was read */
            status = change(context, &self, fresh);
        }
        if (status == SHOAL_OK)
            status = put_ledger(book, &self, &etag, deadline);
        ledger_release(&self);
        if ((status != SHOAL_CONFLICT && status != SHOAL_UNKNOWN) || shoal_now() >= deadline)
            return status;
    }
}

typedef struct reserving {
    const ledger_wish *wish;
    int64_t count;
} reserving;

static int add_all(void *context, ledger *self, uint64_t fresh)
{
    const reserving *all = context;
    int status = SHOAL_OK;
    for (int64_t i = 0; i < all->count && status == SHOAL_OK; i++)
        status = ledger_add(self, &all->wish[i], fresh);
    return status;
}

int ledger_reserve(ledger_book *book, const ledger_wish *wish, int64_t count, int64_t deadline)
{
    reserving all = {.wish = wish, .count = count};
    return ledger_change(book, add_all, &all, deadline);
}
