/* Blobs in Azure: reading in parallel ranges, writing, removing, listing.
 *
 * The first range of a read tells how large the blob is and which version it is; the others ask for that very version,
 * so that the parts belong together. */
#include "azure_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/memory.h"
#include "store/store_parallel.h"
#include "store/xml.h"

enum {
    RANGE = 8 << 20,       /* bytes requested at once */
    SINGLE_PUT = 64 << 20, /* larger blobs are put in blocks */
};

int azure_answer_etag(azure_store *store, const char *key, const http_request *request, shoal_etag *etag)
{
    char text[SHOAL_ETAG_BYTES];
    if (!http_header(request, "etag", text, sizeof text))
        return store_fail(&store->base, key, SHOAL_INVALID, "the server's answer has no ETag");
    return store_etag_set(etag, text, strlen(text));
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

typedef struct getting {
    azure_store *store;
    const char *key, *name;
    const store_range *range;
    shoal_blob *out;
    store_attempt *attempt;
    int64_t wanted; /* bytes of the range that are there; known with the first answer */
    char *into;
} getting;

/* "bytes 0-8388607/16777216" and "bytes *<slash>0": the number after the slash; -1 if it is missing. */
static int64_t whole_size(const http_request *request)
{
    char text[96], *end = NULL;
    const char *slash = http_header(request, "content-range", text, sizeof text) ? strchr(text, '/') : NULL;
    if (!slash || slash[1] < '0' || slash[1] > '9')
        return -1;
    long long size = strtoll(slash + 1, &end, 10);
    return *end == 0 && size >= 0 && size < INT64_MAX / 2 ? size : -1;
}

static int64_t content_length(const http_request *request)
{
    char text[32], *end = NULL;
    if (!http_header(request, "content-length", text, sizeof text) || text[0] < '0' || text[0] > '9')
        return -1;
    long long size = strtoll(text, &end, 10);
    return *end == 0 && size < INT64_MAX / 2 ? size : -1;
}

/* The headers of the first range have arrived: allocates room for the whole blob, so that the bytes go straight into
 * place. */
static int place_first(http_request *request, void *context)
{
    getting *get = context;
    const store_range *range = get->range;
    get->out->whole = request->status == 206 || request->status == 0 ? whole_size(request) : -1;
    if (get->out->whole < 0)
        get->out->whole = range->offset == 0 ? content_length(request) : -1;
    if (get->out->whole < range->offset)
        return shoal_fail(SHOAL_BROKEN, "the server's answer does not give the blob's size");
    get->wanted = get->out->whole - range->offset;
    if (range->length >= 0 && range->length < get->wanted)
        get->wanted = range->length;
    int status = SHOAL_OK;
    if (range->buffer)
        get->out->size = (size_t)get->wanted;
    else
        status = store_blob_room(&get->store->base, NULL, get->out, (size_t)get->wanted);
    get->into = range->buffer ? range->buffer : get->out->data;
    request->buffer = get->into;
    request->room = (size_t)(get->wanted < RANGE ? get->wanted : RANGE);
    return status;
}

/* What is known of a blob of which no byte is wanted, or which is empty. */
static int get_nothing(getting *get, store_attempt *attempt)
{
    const azure_call call = {.method = "HEAD",
                             .first = get->store->container,
                             .second = get->name,
                             .if_match = get->range->expected ? get->range->expected->text : NULL,
                             .kind = SHOAL_REQUEST_GET};
    http_request request = {0};
    int status = azure_perform(get->store, &call, &request, attempt);
    if (status == SHOAL_OK && !azure_succeeded(&request))
        status = azure_refusal(get->store, get->key, &request, attempt);
    if (status == SHOAL_OK)
        status = azure_answer_etag(get->store, get->key, &request, &get->out->etag);
    if (status == SHOAL_OK) {
        get->out->whole = content_length(&request);
        get->out->age = http_age(&request);
        if (get->out->whole < 0) {
            status = store_fail(&get->store->base, get->key, SHOAL_BROKEN,
                                "the server's answer does not give the blob's size");
        } else if (get->range->length != 0 && get->out->whole > get->range->offset) {
            attempt->cause = SHOAL_CAUSE_RACE;
            status = store_fail(&get->store->base, get->key, SHOAL_AGAIN, "it was replaced while being read");
        } else if (!get->range->buffer) {
            status = store_blob_room(&get->store->base, get->key, get->out, 0);
        }
    }
    azure_request_release(&request);
    return status;
}

static void range_text(char out[64], int64_t offset, int64_t length)
{
    snprintf(out, 64, "bytes=%lld-%lld", (long long)offset, (long long)(offset + length - 1));
}

/* The first range; *there is false when the blob ends before it. */
static int get_first(getting *get, bool *there, store_attempt *attempt)
{
    const store_range *range = get->range;
    char text[64];
    int64_t length = range->length < 0 || range->length > RANGE ? RANGE : range->length;
    range_text(text, range->offset, length);
    const azure_call call = {.method = "GET",
                             .first = get->store->container,
                             .second = get->name,
                             .headers = {{"x-ms-range", text}},
                             .if_match = range->expected ? range->expected->text : NULL,
                             .kind = SHOAL_REQUEST_GET};
    http_request request = {0};
    int status = azure_prepare(get->store, &call, &request, attempt);
    request.place = place_first;
    request.place_context = get;
    if (status == SHOAL_OK) {
        status = http_perform(get->store->pool, &request, 1, attempt->deadline);
        if (status < 0)
            store_fail(&get->store->base, get->key, status, "%s", shoal_error());
    }
    *there = status == SHOAL_OK && azure_succeeded(&request) && request.size > 0;
    bool nothing = status == SHOAL_OK && (request.status == 416 || (azure_succeeded(&request) && !*there));
    if (status == SHOAL_OK && !azure_succeeded(&request) && !nothing)
        status = azure_refusal(get->store, get->key, &request, attempt);
    if (*there) {
        int64_t expected = get->wanted < RANGE ? get->wanted : RANGE;
        get->out->age = http_age(&request);
        status = azure_answer_etag(get->store, get->key, &request, &get->out->etag);
        if (status == SHOAL_OK && (int64_t)request.size != expected)
            status = store_fail(&get->store->base, get->key, SHOAL_BROKEN, "received %zu bytes instead of %lld",
                                request.size, (long long)expected);
    }
    azure_request_release(&request);
    return status;
}

/* The later ranges, of which item 0 is the second of all. */
static int ask_range(void *context, size_t item, http_request *out)
{
    getting *get = context;
    char text[64];
    int64_t at = ((int64_t)item + 1) * RANGE, left = get->wanted - at, length = left < RANGE ? left : RANGE;
    range_text(text, get->range->offset + at, length);
    const azure_call call = {.method = "GET",
                             .first = get->store->container,
                             .second = get->name,
                             .headers = {{"x-ms-range", text}},
                             .if_match = get->out->etag.text,
                             .kind = SHOAL_REQUEST_GET,
                             .buffer = get->into + at,
                             .room = (size_t)length};
    return azure_prepare(get->store, &call, out, get->attempt);
}

static int take_range(void *context, size_t item, http_request *request, bool asked, store_attempt *attempt)
{
    getting *get = context;
    int status = SHOAL_OK;
    (void)item;
    if (asked && (request->status == 412 || request->status == 404 || request->status == 416))
        status = store_fail(&get->store->base, get->key, SHOAL_CONFLICT, "it was replaced while being read");
    else if (asked && !azure_succeeded(request))
        status = azure_refusal(get->store, get->key, request, attempt);
    else if (asked && request->size != request->room)
        status = store_fail(&get->store->base, get->key, SHOAL_BROKEN, "received %zu bytes instead of %zu",
                            request->size, request->room);
    azure_request_release(request);
    return status;
}

static int get_rest(getting *get, store_attempt *attempt)
{
    const store_parallel work = {
        .store = &get->store->base, .pool = get->store->pool, .context = get, .ask = ask_range, .take = take_range};
    int status = store_parallel_run(&work, (size_t)((get->wanted - 1) / RANGE), attempt);
    if (status == SHOAL_CONFLICT && !get->range->expected) { /* a caller that accepts any version gets the new one */
        attempt->cause = SHOAL_CAUSE_RACE;
        status = SHOAL_AGAIN;
    }
    return status;
}

int get_azure(shoal_store *self, const char *key, const store_range *range, shoal_blob *out, store_attempt *attempt)
{
    getting get = {.store = (azure_store *)self, .key = key, .range = range, .out = out, .attempt = attempt};
    bool there = false;
    char *name = NULL;
    int status = azure_blob_name(&name, key);
    get.name = name;
    if (status == SHOAL_OK && range->length != 0)
        status = get_first(&get, &there, attempt);
    if (status == SHOAL_OK && !there)
        status = get_nothing(&get, attempt);
    if (status == SHOAL_OK && there && get.wanted > RANGE)
        status = get_rest(&get, attempt);
    base_free(&name);
    return status;
}

/* ---- writing and removing ---------------------------------------------------------------------------------------- */

int put_azure(shoal_store *self, const char *key, const store_body *body, const shoal_etag *expected, shoal_etag *etag,
              store_attempt *attempt)
{
    azure_store *store = (azure_store *)self;
    if (store_body_size(body) > SINGLE_PUT)
        return put_azure_blocks(store, key, body, expected, etag, attempt);
    http_request request = {0};
    char *name = NULL;
    int status = azure_blob_name(&name, key);
    if (status == SHOAL_OK) {
        const azure_call call = {.method = "PUT",
                                 .first = store->container,
                                 .second = name,
                                 .headers = {{"x-ms-blob-type", "BlockBlob"}},
                                 .if_match = expected && expected->text[0] ? expected->text : NULL,
                                 .if_none_match = expected && !expected->text[0] ? "*" : NULL,
                                 .content_type = "application/octet-stream",
                                 .body = *body,
                                 .sends_body = true,
                                 .kind = SHOAL_REQUEST_PUT};
        status = azure_perform(store, &call, &request, attempt);
    }
    if (status == SHOAL_OK && !azure_succeeded(&request))
        status = azure_refusal(store, key, &request, attempt);
    else if (status == SHOAL_OK)
        status = azure_answer_etag(store, key, &request, etag);
    if (status == SHOAL_ABSENT && expected) /* a version was expected, but the blob does not exist */
        status = store_fail(self, key, SHOAL_CONFLICT, "it no longer exists");
    azure_request_release(&request);
    base_free(&name);
    return status;
}

int remove_azure(shoal_store *self, const char *key, store_attempt *attempt)
{
    azure_store *store = (azure_store *)self;
    http_request request = {0};
    char *name = NULL;
    int status = azure_blob_name(&name, key);
    if (status == SHOAL_OK) {
        const azure_call call = {.method = "DELETE",
                                 .first = store->container,
                                 .second = name,
                                 .headers = {{"x-ms-delete-snapshots", "include"}},
                                 .kind = SHOAL_REQUEST_REMOVE};
        status = azure_perform(store, &call, &request, attempt);
    }
    if (status == SHOAL_OK && !azure_succeeded(&request))
        status = azure_refusal(store, key, &request, attempt);
    azure_request_release(&request);
    base_free(&name);
    return status;
}

/* ---- listing ----------------------------------------------------------------------------------------------------- */

typedef struct listing {
    const char *prefix, *after;
    shoal_listing *page;
    char **marker;
    char *key; /* of the row that is being read, or NULL */
    char etag[SHOAL_ETAG_BYTES];
    int64_t size, now;
    double age;
    bool high; /* the last row's key has a character that servers may sort otherwise */
} listing;

/* Takes %XX away, in place. */
static size_t decode_percent(char *text, size_t length)
{
    size_t out = 0;
    for (size_t i = 0; i < length; i++, out++) {
        int byte = text[i] == '%' && length - i > 2 ? base_hex_byte(text + i + 1) : -1;
        text[out] = byte >= 0 ? (char)byte : text[i];
        i += byte >= 0 ? 2 : 0;
    }
    return out;
}

static int read_name(listing *list, const char *text, size_t length, bool encoded)
{
    char *name = NULL;
    int status = base_copy_text_n(&name, text, length);
    if (status == SHOAL_OK && encoded)
        length = decode_percent(name, length);
    base_free(&list->key);
    if (status == SHOAL_OK)
        status = azure_blob_key(&list->key, name, length);
    list->etag[0] = 0;
    list->size = 0;
    list->age = -1;
    base_free(&name);
    return status;
}

/* Etags are written here without the quotes that they have everywhere else. */
static int read_etag(listing *list, const char *text, size_t length)
{
    const char *quote = length > 0 && text[0] == '"' ? "" : "\"";
    if (length + 3 > sizeof list->etag)
        return shoal_fail(SHOAL_BROKEN, "a listing has an ETag of %zu characters", length);
    snprintf(list->etag, sizeof list->etag, "%s%s%s", quote, text, quote);
    return SHOAL_OK;
}

static int end_row(listing *list)
{
    int status = SHOAL_OK;
    if (!list->key)
        return shoal_fail(SHOAL_BROKEN, "a listing has an entry without a name");
    list->high = false;
    for (const unsigned char *c = (const unsigned char *)list->key; *c; c++)
        list->high |= *c >= 0xee || *c == '\\';
    if (strncmp(list->key, list->prefix, strlen(list->prefix)) == 0 &&
        (!list->after || strcmp(list->key, list->after) > 0))
        status = store_listing_age(
            list->page,
            store_listing_add(list->page, list->key, strlen(list->key), list->size, list->etag[0] ? list->etag : NULL),
            list->age);
    base_free(&list->key);
    return status;
}

static int read_row(void *context, const char *path, const char *text, size_t length)
{
    listing *list = context;
    static const char row[] = "EnumerationResults/Blobs/Blob";
    if (strcmp(path, "EnumerationResults/NextMarker") == 0 && length > 0) {
        base_free(list->marker);
        return base_copy_text_n(list->marker, text, length);
    }
    if (strncmp(path, row, sizeof row - 1) != 0)
        return SHOAL_OK;
    path += sizeof row - 1;
    if (!*path && !text)
        return end_row(list);
    if (!text)
        return SHOAL_OK;
    if (strcmp(path, "/Name") == 0 || strcmp(path, "/Name@Encoded") == 0)
        return read_name(list, text, length, path[5] == '@');
    if (strcmp(path, "/Properties/Etag") == 0)
        return read_etag(list, text, length);
    if (strcmp(path, "/Properties/Last-Modified") == 0)
        list->age = http_age_at(list->now, text);
    if (strcmp(path, "/Properties/Content-Length") == 0) {
        char *end = NULL;
        list->size = strtoll(text, &end, 10);
        if (length == 0 || *end || list->size < 0)
            return shoal_fail(SHOAL_BROKEN, "a listing has a size that is not a number");
    }
    return SHOAL_OK;
}

int azure_list_read(const char *document, size_t size, int64_t now, const char *prefix, const char *after,
                    shoal_listing *page, char **marker, bool *last_is_high)
{
    listing list = {.prefix = prefix, .after = after, .page = page, .marker = marker, .now = now};
    base_free(marker);
    int status = xml_read(document, size, read_row, &list);
    *last_is_high = list.high;
    base_free(&list.key);
    return status;
}

static int list_once(azure_store *store, const char *prefix, const char *name, const char *after, shoal_listing *page,
                     char **marker, bool *last_is_high, store_attempt *attempt)
{
    char most[16];
    http_request request = {0};
    snprintf(most, sizeof most, "%d", store->base.page_keys);
    azure_call call = {.method = "GET",
                       .first = store->container,
                       .query = {{"restype", "container"}, {"comp", "list"}, {"maxresults", most}},
                       .kind = SHOAL_REQUEST_LIST};
    size_t count = 3;
    if (*name)
        call.query[count++] = (azure_pair){"prefix", name};
    if (*marker)
        call.query[count++] = (azure_pair){"marker", *marker};
    int status = azure_perform(store, &call, &request, attempt);
    if (status == SHOAL_OK && !azure_succeeded(&request))
        status = azure_refusal(store, prefix, &request, attempt);
    else if (status == SHOAL_OK && (status = azure_list_read(request.answer, request.size, http_now(&request), prefix,
                                                             after, page, marker, last_is_high)) < 0)
        store_fail(&store->base, prefix, status, "%s", shoal_error());
    azure_request_release(&request);
    return status;
}

static int compare_entries(const void *left, const void *right)
{
    return strcmp(((const shoal_entry *)left)->key, ((const shoal_entry *)right)->key);
}

/* Servers sort by UTF-16, where characters beyond U+FFFF come before U+E000 to U+FFFF; keys are in the order of UTF-8.
 * The two differ only between keys that have such a character at the same place after the same start, and such keys are
 * neighbours: when a page ends with one, the next page belongs to it, and what was read is sorted. */
int list_azure(shoal_store *self, const char *prefix, const char *after, shoal_listing *page, store_attempt *attempt)
{
    azure_store *store = (azure_store *)self;
    bool high = false;
    char *name = NULL;
    int status = azure_blob_name(&name, prefix);
    do {
        if (status == SHOAL_OK)
            status = list_once(store, prefix, name, after, page, &page->marker, &high, attempt);
    } while (status == SHOAL_OK && high && page->marker);
    if (status == SHOAL_OK && page->count > 1)
        qsort(page->entries, page->count, sizeof *page->entries, compare_entries);
    page->more = status == SHOAL_OK && page->marker;
    base_free(&name);
    return status;
}
