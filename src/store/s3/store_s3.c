/* S3, and what speaks its protocol: one attempt each at what is asked of a bucket. s3_internal.h says where the rest
 * is.
 *
 * Etags are kept without their quotes.  On most servers they are made from the content, so the same bytes written twice
 * have the same etag; callers that must tell them apart write frames. */
#include "s3_internal.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

static const int64_t put_most = INT64_C(5) << 30, blob_most = INT64_C(5) << 40;

static void close_s3(shoal_store *store)
{
    s3_store *self = (s3_store *)store;
    s3_chain_free(&self->chain);
    http_pool_free(&self->pool);
    base_free(&self->bucket);
    base_free(&self->region);
    base_free(&self->base);
    base_free(&self->host);
    base_free(&self->root);
}

/* ---- getting ----------------------------------------------------------------------------------------------------- */

static bool read_number(int64_t *out, const char *text)
{
    char *end;
    if (!text || *text < '0' || *text > '9')
        return false;
    unsigned long long number = strtoull(text, &end, 10);
    *out = (int64_t)number;
    return *end == '\0' && number <= (unsigned long long)blob_most * 2;
}

/* The size of the whole blob, of which the answer may be a range. */
static int read_whole(const http_request *http, int64_t *out)
{
    char buffer[128];
    const char *text = http_header(http, "content-range", buffer, sizeof buffer);
    if (text)
        text = strchr(text, '/') ? strchr(text, '/') + 1 : NULL; /* bytes 0-99/12345 */
    else
        text = http_header(http, "content-length", buffer, sizeof buffer);
    return read_number(out, text) ? SHOAL_OK
                                  : shoal_fail(SHOAL_BROKEN, "the server's answer does not give the blob's size");
}

/* Version and age. */
static int read_version(s3_store *self, const s3_request *request, shoal_blob *out)
{
    out->age = http_age(&request->http);
    return s3_read_etag(self, request, &out->etag);
}

/* Unsuccessful answers to a get or a similar request. */
static int fail_get(s3_store *self, const s3_request *request, const store_range *range, store_attempt *attempt)
{
    int status = s3_fail(self, request, attempt);
    if (status == SHOAL_CONFLICT && range->expected)
        return store_fail(&self->store, request->key, status, "it is no longer the expected version");
    return status;
}

/* Nothing of the blob is wanted, or there is nothing where it is wanted. */
static int get_nothing(s3_store *self, const char *key, const store_range *range, shoal_blob *out,
                       store_attempt *attempt)
{
    s3_request request = {.key = key, .http = {.method = "HEAD", .kind = SHOAL_REQUEST_GET}};
    s3_add_condition(self, &request, range->expected);
    int status = s3_perform(self, &request, attempt);
    if (status == SHOAL_OK && request.http.status != 200)
        status = fail_get(self, &request, range, attempt);
    if (status == SHOAL_OK)
        status = read_version(self, &request, out);
    if (status == SHOAL_OK && (status = read_whole(&request.http, &out->whole)) < 0)
        store_fail(&self->store, key, status, "%s", shoal_error());
    if (status == SHOAL_OK && range->length != 0 && out->whole > range->offset) {
        attempt->cause = SHOAL_CAUSE_RACE;
        status = store_fail(&self->store, key, SHOAL_AGAIN, "it was replaced while being read");
    }
    if (status == SHOAL_OK && !range->buffer)
        status = store_blob_room(&self->store, key, out, 0);
    s3_request_release(&request);
    return status;
}

typedef struct getting {
    const shoal_store *store;
    const store_range *range;
    shoal_blob *out;
    int64_t wanted; /* bytes of the range that there are; -1 before that is known */
} getting;

static size_t first_range(int64_t wanted)
{
    return wanted < S3_RANGE ? (size_t)wanted : S3_RANGE;
}

/* Makes room for all that is wanted as soon as the headers tell how much there is, so that no byte is moved twice. */
static int place_bytes(http_request *http, void *context)
{
    getting *get = context;
    const store_range *range = get->range;
    int status = read_whole(http, &get->out->whole);
    int64_t left = get->out->whole - range->offset;
    if (status == SHOAL_OK && left < 0)
        status = shoal_fail(SHOAL_BROKEN, "the server sent bytes beyond the end of the blob");
    get->wanted = range->length < 0 || range->length > left ? left : range->length;
    base_free(&get->out->memory); /* of an attempt that libcurl has repeated */
    if (status == SHOAL_OK && !range->buffer)
        status = store_blob_room(get->store, NULL, get->out, (size_t)get->wanted);
    if (status < 0)
        return status;
    get->out->size = (size_t)get->wanted;
    http->buffer = range->buffer ? range->buffer : get->out->data;
    http->room = first_range(get->wanted);
    return SHOAL_OK;
}

/* Checks what came, and gets what is missing. */
static int take_bytes(s3_store *self, s3_request *request, getting *get, store_attempt *attempt)
{
    size_t got = request->http.size;
    int status = SHOAL_OK;
    if (get->wanted < 0 && (status = place_bytes(&request->http, get)) < 0) /* nothing came: it may be empty */
        return store_fail(&self->store, request->key, status, "%s", shoal_error());
    if (got != first_range(get->wanted))
        return store_fail(&self->store, request->key, SHOAL_BROKEN, "the server sent %zu of %lld bytes", got,
                          (long long)get->wanted);
    if (got == (size_t)get->wanted)
        return SHOAL_OK;
    char *to = get->range->buffer ? get->range->buffer : get->out->data;
    status = s3_get_parts(self, request->key, get->range->offset + (int64_t)got, to + got, (size_t)get->wanted - got,
                          &get->out->etag, attempt);
    if (status == SHOAL_CONFLICT && !get->range->expected) {
        attempt->cause = SHOAL_CAUSE_RACE;
        status = SHOAL_AGAIN; /* whatever version is there now will do, as long as it is one */
    }
    return status;
}

static int get_s3(shoal_store *store, const char *key, const store_range *range, shoal_blob *out,
                  store_attempt *attempt)
{
    s3_store *self = (s3_store *)store;
    getting get = {store, range, out, -1};
    s3_request request = {
        .key = key, .http = {.method = "GET", .kind = SHOAL_REQUEST_GET, .place = place_bytes, .place_context = &get}};
    if (range->length == 0 || range->offset > blob_most)
        return get_nothing(self, key, range, out, attempt);
    s3_add_range(&request, range->offset, (int64_t)first_range(range->length < 0 ? S3_RANGE : range->length));
    s3_add_condition(self, &request, range->expected);
    int status = s3_perform(self, &request, attempt);
    if (status < 0)
        goto done;
    if (request.http.status == 416) {
        status = get_nothing(self, key, range, out, attempt);
    } else if (request.http.status != 206 && request.http.status != 200) {
        status = fail_get(self, &request, range, attempt);
    } else if (request.http.status == 200 && range->offset > 0) {
        status = store_fail(store, key, SHOAL_INVALID, "the server can't send part of a blob");
    } else {
        status = read_version(self, &request, out);
        if (status == SHOAL_OK)
            status = take_bytes(self, &request, &get, attempt);
    }
done:
    s3_request_release(&request);
    return status;
}

/* ---- putting and removing ---------------------------------------------------------------------------------------- */

static int put_s3(shoal_store *store, const char *key, const store_body *body, const shoal_etag *expected,
                  shoal_etag *etag, store_attempt *attempt)
{
    s3_store *self = (s3_store *)store;
    int64_t size = (int64_t)store_body_size(body);
    s3_request request = {.key = key,
                          .http = {.method = "PUT", .kind = SHOAL_REQUEST_PUT, .body = *body, .sends_body = true}};
    if (size > (expected ? put_most : blob_most))
        return store_fail(store, key, SHOAL_INVALID, "S3 accepts at most %s in a %sput, and this is %lld bytes",
                          expected ? "5 GiB" : "5 TiB", expected ? "conditional " : "", (long long)size);
    if (!expected && size > S3_SINGLE_MOST)
        return s3_put_parts(self, key, body, etag, attempt);
    s3_add_condition(self, &request, expected);
    int status = s3_perform(self, &request, attempt);
    if (status == SHOAL_OK && request.http.status == 200)
        status = s3_read_etag(self, &request, etag);
    else if (status == SHOAL_OK)
        status = s3_fail(self, &request, attempt);
    /* A version that is expected where nothing is: AWS says so by 404, others by 412. */
    if (status == SHOAL_ABSENT && expected && expected->text[0] && s3_is_about_key(&request))
        status = store_fail(store, key, SHOAL_CONFLICT, "there is no such key, though a version of it was expected");
    s3_request_release(&request);
    return status;
}

static int remove_s3(shoal_store *store, const char *key, store_attempt *attempt)
{
    s3_store *self = (s3_store *)store;
    s3_request request = {.key = key, .http = {.method = "DELETE", .kind = SHOAL_REQUEST_REMOVE}};
    int status = s3_perform(self, &request, attempt);
    if (status == SHOAL_OK && request.http.status != 204 && request.http.status != 200)
        status = s3_fail(self, &request, attempt);
    s3_request_release(&request);
    return status;
}

/* ---- listing ----------------------------------------------------------------------------------------------------- */

/* Keeps what was asked for, whatever the server sent: the layer above cuts the prefix off every key. */
static void keep_asked(shoal_listing *page, const char *prefix, const char *after)
{
    size_t kept = 0, length = strlen(prefix);
    for (size_t i = 0; i < page->count; i++) {
        shoal_entry *entry = &page->entries[i];
        if (strncmp(entry->key, prefix, length) == 0 && (!after || strcmp(entry->key, after) > 0))
            page->entries[kept++] = *entry;
        else
            base_free(&entry->key);
    }
    page->count = kept;
}

static int list_s3(shoal_store *store, const char *prefix, const char *after, shoal_listing *page,
                   store_attempt *attempt)
{
    s3_store *self = (s3_store *)store;
    char *token = NULL;
    s3_request request = {.http = {.method = "GET", .kind = SHOAL_REQUEST_LIST}};
    char most[16];
    snprintf(most, sizeof most, "%d", store->page_keys);
    s3_add_query(&request, "list-type", "2");
    s3_add_query(&request, "max-keys", most);
    s3_add_query(&request, "encoding-type", "url");
    if (*prefix)
        s3_add_query(&request, "prefix", prefix);
    if (page->marker)
        s3_add_query(&request, "continuation-token", page->marker);
    else if (after && *after)
        s3_add_query(&request, "start-after", after);
    int status = s3_perform(self, &request, attempt);
    if (status == SHOAL_OK && request.http.status != 200) {
        status = s3_fail(self, &request, attempt);
    } else if (status == SHOAL_OK) {
        status = s3_list_parse(page, &token, request.http.answer, request.http.size, http_now(&request.http));
        if (status == SHOAL_BROKEN || status == SHOAL_INVALID)
            store_fail(store, prefix, status, "%s", shoal_error());
    }
    if (status == SHOAL_OK) {
        keep_asked(page, prefix, after);
        page->more = token != NULL;
        base_free(&page->marker);
        page->marker = token;
        token = NULL;
    }
    base_free(&token);
    s3_request_release(&request);
    return status;
}

static const char *const options[] = {"profile", "region", "style", NULL};

const struct store_class store_s3 = {
    .scheme = "s3",
    .far = true,
    .size = sizeof(s3_store),
    .counts_itself = true,
    .forgets = 60, /* the service forgets nothing, its emulators lose seconds when they are killed */
    .options = options,
    .open = s3_open,
    .close = close_s3,
    .get = get_s3,
    .put = put_s3,
    .remove = remove_s3,
    .list = list_s3,
    .lend = s3_lend,
};
