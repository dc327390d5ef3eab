/* Blobs of more than 64 MiB are put as blocks, several at once, and a list of them at the end, which is what makes the
 * blob and what carries the condition.  A block that fails for a while is sent again alone.  Blocks that are in no list
 * cost nothing for long: Azure forgets them with the next write of the blob, or after a week. */
#include "azure_internal.h"

#include <endian.h>
#include <string.h>

#include "base/memory.h"
#include "base/world.h"
#include "store/store_parallel.h"

enum {
    BLOCK = 8 << 20,
    BLOCKS_MOST = 50000,
    ID_BYTES = 18, /* random ones and a number; Base64 of it needs no padding */
    ID_TEXT = 25,
};

typedef struct putting {
    azure_store *store;
    const char *key, *name;
    const store_body *body;
    store_attempt *attempt;
    size_t block, count;
    unsigned char random[ID_BYTES - 4];
} putting;

/* The same length for every block of a blob, as Azure wants it, and never another upload's. */
static int block_id(const putting *put, size_t number, char **out)
{
    unsigned char bytes[ID_BYTES];
    uint32_t big = htobe32((uint32_t)number);
    memcpy(bytes, put->random, sizeof put->random);
    memcpy(bytes + sizeof put->random, &big, sizeof big);
    return azure_base64(out, bytes, sizeof bytes);
}

/* `length` bytes of the body from `offset`. */
static store_body slice(const store_body *body, size_t offset, size_t length)
{
    store_body out = {0};
    for (int i = 0; i < 2; i++) {
        size_t size = body->part[i].iov_len;
        size_t skip = offset < size ? offset : size;
        size_t take = length < size - skip ? length : size - skip;
        if (take > 0)
            out.part[i] = (struct iovec){(char *)body->part[i].iov_base + skip, take};
        offset -= skip;
        length -= take;
    }
    return out;
}

static int ask_block(void *context, size_t number, http_request *out)
{
    const putting *put = context;
    size_t offset = number * put->block, left = store_body_size(put->body) - offset;
    char *id = NULL;
    int status = block_id(put, number, &id);
    if (status == SHOAL_OK) {
        const azure_call call = {.method = "PUT",
                                 .first = put->store->container,
                                 .second = put->name,
                                 .query = {{"comp", "block"}, {"blockid", id}},
                                 .body = slice(put->body, offset, left < put->block ? left : put->block),
                                 .sends_body = true,
                                 .kind = SHOAL_REQUEST_PUT};
        status = azure_prepare(put->store, &call, out, put->attempt);
    }
    base_free(&id);
    return status;
}

static int take_block(void *context, size_t number, http_request *request, bool asked, store_attempt *attempt)
{
    const putting *put = context;
    int status = SHOAL_OK;
    (void)number;
    if (asked && !azure_succeeded(request))
        status = azure_refusal(put->store, put->key, request, attempt);
    azure_request_release(request);
    return status;
}

static int put_blocks(putting *put, store_attempt *attempt)
{
    const store_parallel work = {
        .store = &put->store->base, .pool = put->store->pool, .context = put, .ask = ask_block, .take = take_block};
    int status = store_parallel_run(&work, put->count, attempt);
    return status == SHOAL_UNKNOWN ? SHOAL_AGAIN : status; /* blocks alone are no blob: nothing was done */
}

static int write_list(const putting *put, char **out, size_t *size)
{
    static const char head[] = "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>", tail[] = "</BlockList>";
    static const char before[] = "<Latest>", behind[] = "</Latest>";
    enum { ROW = sizeof before - 1 + ID_TEXT - 1 + sizeof behind - 1 };
    int status = base_alloc(out, sizeof head + sizeof tail + put->count * ROW, 1, "a list of blocks");
    char *next = status == SHOAL_OK ? stpcpy(*out, head) : NULL;
    for (size_t i = 0; i < put->count && status == SHOAL_OK; i++) {
        char *id = NULL;
        status = block_id(put, i, &id);
        if (status == SHOAL_OK)
            next = stpcpy(stpcpy(stpcpy(next, before), id), behind);
        base_free(&id);
    }
    if (status == SHOAL_OK)
        *size = (size_t)(stpcpy(next, tail) - *out);
    return status;
}

static int put_list(const putting *put, const shoal_etag *expected, shoal_etag *etag, store_attempt *attempt)
{
    http_request request = {0};
    char *text = NULL;
    size_t size = 0;
    int status = write_list(put, &text, &size);
    if (status == SHOAL_OK) {
        const azure_call call = {.method = "PUT",
                                 .first = put->store->container,
                                 .second = put->name,
                                 .query = {{"comp", "blocklist"}},
                                 .headers = {{"x-ms-blob-content-type", "application/octet-stream"}},
                                 .if_match = expected && expected->text[0] ? expected->text : NULL,
                                 .if_none_match = expected && !expected->text[0] ? "*" : NULL,
                                 .content_type = "application/xml",
                                 .body.part[0] = {text, size},
                                 .sends_body = true,
                                 .kind = SHOAL_REQUEST_PUT};
        status = azure_perform(put->store, &call, &request, attempt);
    }
    if (status == SHOAL_OK && !azure_succeeded(&request))
        status = azure_refusal(put->store, put->key, &request, attempt);
    else if (status == SHOAL_OK)
        status = azure_answer_etag(put->store, put->key, &request, etag);
    if (status == SHOAL_ABSENT && expected)
        status = store_fail(&put->store->base, put->key, SHOAL_CONFLICT, "it is not there any more");
    azure_request_release(&request);
    base_free(&text);
    return status;
}

int put_azure_blocks(azure_store *store, const char *key, const store_body *body, const shoal_etag *expected,
                     shoal_etag *etag, store_attempt *attempt)
{
    putting put = {.store = store, .key = key, .body = body, .attempt = attempt, .block = BLOCK};
    size_t size = store_body_size(body);
    char *name = NULL;
    while ((size + put.block - 1) / put.block > BLOCKS_MOST)
        put.block *= 2;
    put.count = (size + put.block - 1) / put.block;
    base_entropy(put.random, sizeof put.random);
    int status = azure_blob_name(&name, key);
    put.name = name;
    if (status == SHOAL_OK)
        status = put_blocks(&put, attempt);
    if (status == SHOAL_OK)
        status = put_list(&put, expected, etag, attempt);
    base_free(&name);
    return status;
}
