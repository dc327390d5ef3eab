/* Blobs of more than 64 MiB are put as blocks, several at once, and a list of them at the end, which creates the blob
 * and carries the condition.  A block that fails temporarily is sent again by itself.
 *
 * A block is named by the MD5 of its bytes, which the server checks, and by its place.  So an interrupted put can
 * continue: the server is asked which blocks of this blob are there without a list, and those whose names match the
 * bytes to be put are not sent again.  Blocks of other bytes never match, whoever left them.  Azure forgets blocks that
 * are in no list with the next write of the blob, or after a week. */
#include "azure_internal.h"

#include <endian.h>
#include <openssl/evp.h>
#include <string.h>

#include "base/memory.h"
#include "base/option.h"
#include "base/world.h"
#include "store/store_parallel.h"
#include "store/xml.h"

enum {
    BLOCK = 8 << 20,
    BLOCKS_MOST = 50000,
    MD5_BYTES = 16,
    ID_BYTES = MD5_BYTES + 2, /* and a number; Base64 of it needs no padding */
    ID_TEXT = 25,
};

typedef struct block {
    unsigned char md5[MD5_BYTES];
    bool named; /* md5 is set */
    bool there; /* the server has it */
} block;

typedef struct putting {
    azure_store *store;
    const char *key, *name;
    const store_body *body;
    store_attempt *attempt;
    size_t block, count;
    block *blocks;
    size_t *missing; /* numbers of those that are to be sent */
    bool no_md5;     /* OpenSSL does not allow it; then names are random, and no block is found again */
} putting;

static size_t block_size(const putting *put, size_t number)
{
    size_t left = store_body_size(put->body) - number * put->block;
    return left < put->block ? left : put->block;
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

/* Names a block by what it holds now: the bytes may lie in a file that someone writes to. */
static void name_block(putting *put, size_t number)
{
    const store_body body = slice(put->body, number * put->block, block_size(put, number));
    block *block = &put->blocks[number];
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool good = context && EVP_DigestInit_ex(context, EVP_md5(), NULL) == 1;
    for (int i = 0; i < 2 && good; i++)
        good = EVP_DigestUpdate(context, body.part[i].iov_base, body.part[i].iov_len) == 1;
    good = good && EVP_DigestFinal_ex(context, block->md5, NULL) == 1;
    EVP_MD_CTX_free(context);
    if (!good) {
        put->no_md5 = true;
        base_entropy(block->md5, sizeof block->md5);
    }
    block->named = true;
}

/* The same length for every block of a blob, as Azure wants it. */
static int block_id(const putting *put, size_t number, char **out)
{
    unsigned char bytes[ID_BYTES];
    uint16_t big = htobe16((uint16_t)number);
    memcpy(bytes, put->blocks[number].md5, MD5_BYTES);
    memcpy(bytes + MD5_BYTES, &big, sizeof big);
    return azure_base64(out, bytes, sizeof bytes);
}

/* ---- blocks that are there --------------------------------------------------------------------------------------- */

typedef struct reading {
    azure_found_block *found;
    void *context;
    unsigned char *id;
    size_t id_size;
    int64_t size;
} reading;

static int read_block(void *context, const char *path, const char *text, size_t length)
{
    static const char row[] = "BlockList/UncommittedBlocks/Block";
    reading *self = context;
    if (strncmp(path, row, sizeof row - 1) != 0)
        return SHOAL_OK;
    const char *field = path + sizeof row - 1;
    if (text && strcmp(field, "/Name") == 0) {
        base_free(&self->id);
        return azure_unbase64(&self->id, &self->id_size, text, length);
    }
    if (text && strcmp(field, "/Size") == 0)
        self->size = base_parse_count(&self->size, text) ? self->size : -1;
    if (!text && *field == '\0' && self->id) {
        self->found(self->context, self->id, self->id_size, self->size);
        base_free(&self->id);
        self->size = -1;
    }
    return SHOAL_OK;
}

int azure_blocks_read(const char *document, size_t size, azure_found_block *found, void *context)
{
    reading self = {.found = found, .context = context, .size = -1};
    int status = xml_read(document, size, read_block, &self);
    base_free(&self.id);
    return status;
}

static void note_block(void *context, const unsigned char *id, size_t id_size, int64_t size)
{
    putting *put = context;
    uint16_t number;
    if (id_size != ID_BYTES)
        return;
    memcpy(&number, id + MD5_BYTES, sizeof number);
    number = be16toh(number);
    if (number >= put->count || size != (int64_t)block_size(put, number))
        return;
    if (!put->blocks[number].named)
        name_block(put, number);
    put->blocks[number].there |= memcmp(put->blocks[number].md5, id, MD5_BYTES) == 0;
}

/* Finds what an earlier put has left.  Without permission to ask, or without an answer, everything is sent. */
static void find_blocks(putting *put, store_attempt *attempt)
{
    http_request request = {0};
    store_attempt asking = {.deadline = attempt->deadline};
    const azure_call call = {.method = "GET",
                             .first = put->store->container,
                             .second = put->name,
                             .query = {{"comp", "blocklist"}, {"blocklisttype", "uncommitted"}},
                             .kind = SHOAL_REQUEST_LIST};
    if (azure_perform(put->store, &call, &request, &asking) == SHOAL_OK && azure_succeeded(&request) && request.answer)
        (void)azure_blocks_read(request.answer, request.size, note_block, put);
    azure_request_release(&request);
}

/* ---- putting ----------------------------------------------------------------------------------------------------- */

static int ask_block(void *context, size_t item, http_request *out)
{
    putting *put = context;
    size_t number = put->missing[item];
    char *id = NULL, *md5 = NULL;
    if (!put->blocks[number].named)
        name_block(put, number);
    int status = block_id(put, number, &id);
    if (status == SHOAL_OK)
        status = azure_base64(&md5, put->blocks[number].md5, MD5_BYTES);
    if (status == SHOAL_OK) {
        const azure_call call = {.method = "PUT",
                                 .first = put->store->container,
                                 .second = put->name,
                                 .query = {{"comp", "block"}, {"blockid", id}},
                                 .content_md5 = put->no_md5 ? NULL : md5,
                                 .body = slice(put->body, number * put->block, block_size(put, number)),
                                 .sends_body = true,
                                 .kind = SHOAL_REQUEST_PUT};
        status = azure_prepare(put->store, &call, out, put->attempt);
    }
    base_free(&md5);
    base_free(&id);
    return status;
}

static int take_block(void *context, size_t item, http_request *request, bool asked, store_attempt *attempt)
{
    putting *put = context;
    int status = SHOAL_OK;
    if (asked && !azure_succeeded(request)) {
        status = azure_refusal(put->store, put->key, request, attempt);
        put->blocks[put->missing[item]].named = false; /* its bytes may have changed */
    }
    azure_request_release(request);
    return status;
}

static int put_blocks(putting *put, store_attempt *attempt)
{
    const store_parallel work = {
        .store = &put->store->base, .pool = put->store->pool, .context = put, .ask = ask_block, .take = take_block};
    size_t missing = 0;
    for (size_t i = 0; i < put->count; i++)
        if (!put->blocks[i].there)
            put->missing[missing++] = i;
    int status = store_parallel_run(&work, missing, attempt);
    return status == SHOAL_UNKNOWN ? SHOAL_AGAIN : status; /* blocks alone are not a blob: nothing was done */
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
        status = store_fail(&put->store->base, put->key, SHOAL_CONFLICT, "it no longer exists");
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
    int status = azure_blob_name(&name, key);
    put.name = name;
    if (status == SHOAL_OK)
        status = base_alloc(&put.blocks, put.count, sizeof *put.blocks, "a list of blocks");
    if (status == SHOAL_OK)
        status = base_alloc(&put.missing, put.count, sizeof *put.missing, "a list of blocks");
    if (status == SHOAL_OK) {
        find_blocks(&put, attempt);
        for (size_t i = 0; i < put.count && attempt->number == 1; i++)
            store->base.counts.kept += put.blocks[i].there ? (int64_t)block_size(&put, i) : 0;
        status = put_blocks(&put, attempt);
    }
    if (status == SHOAL_OK)
        status = put_list(&put, expected, etag, attempt);
    base_free(&put.missing);
    base_free(&put.blocks);
    base_free(&name);
    return status;
}
