/* The documents that list keys (ListObjectsV2).
 *
 * Keys are asked for in percent-encoding, since some that others wrote can't be in XML; the document says whether a
 * server complied, perhaps after the keys, so they are decoded at the end. */
#include "s3_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/memory.h"
#include "store/xml.h"

/* A page as it is read. */
typedef struct reading {
    shoal_listing *page;
    char *token, *key;
    int64_t size, now;
    double age;
    shoal_etag etag;
    bool is_list, encoded, truncated;
} reading;

static int keep_listed(char **out, const char *text, size_t length)
{
    base_free(out);
    return base_copy_text_n(out, text, length);
}

/* Two thirds of an int64_t are more than any server has. */
static int read_size(int64_t *out, const char *text)
{
    char *end;
    unsigned long long size = strtoull(text, &end, 10);
    if (end == text || *end || *text == '-' || size > INT64_MAX / 3 * 2)
        return shoal_fail(SHOAL_BROKEN, "the server lists a blob whose size is not a number");
    *out = (int64_t)size;
    return SHOAL_OK;
}

static int read_etag(shoal_etag *out, const char *text, size_t length)
{
    if (length == 0)
        return SHOAL_OK;
    if (length >= 2 && text[0] == '"' && text[length - 1] == '"')
        return store_etag_set(out, text + 1, length - 2);
    return store_etag_set(out, text, length);
}

/* The end of a row. */
static int add_row(reading *self)
{
    if (!self->key || self->size < 0)
        return shoal_fail(SHOAL_BROKEN, "the server lists a blob without its key or size");
    int status = store_listing_add(self->page, self->key, strlen(self->key), self->size,
                                   self->etag.text[0] ? self->etag.text : NULL);
    status = store_listing_age(self->page, status, self->age);
    base_free(&self->key);
    self->size = -1;
    self->age = -1;
    self->etag = (shoal_etag){""};
    return status;
}

static int read_element(void *context, const char *path, const char *text, size_t length)
{
    static const char root[] = "ListBucketResult";
    reading *self = context;
    if (strncmp(path, root, sizeof root - 1) != 0)
        return SHOAL_OK;
    self->is_list = true;
    const char *name = path + sizeof root - 1;
    name += *name == '/';
    if (!text)
        return strcmp(name, "Contents") == 0 ? add_row(self) : SHOAL_OK;
    if (strcmp(name, "Contents/Key") == 0)
        return keep_listed(&self->key, text, length);
    if (strcmp(name, "Contents/Size") == 0)
        return read_size(&self->size, text);
    if (strcmp(name, "Contents/LastModified") == 0)
        self->age = http_age_at(self->now, text);
    if (strcmp(name, "Contents/ETag") == 0)
        return read_etag(&self->etag, text, length);
    if (strcmp(name, "NextContinuationToken") == 0)
        return keep_listed(&self->token, text, length);
    if (strcmp(name, "IsTruncated") == 0)
        self->truncated = strcmp(text, "true") == 0;
    if (strcmp(name, "EncodingType") == 0)
        self->encoded = strcmp(text, "url") == 0;
    return SHOAL_OK;
}

/* Decodes in place: "%2F", and '+' for a space, as AWS writes it; a plus is %2B. */
static int decode_listed(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        if (*from != '%') {
            *to++ = *from == '+' ? ' ' : *from;
            continue;
        }
        int byte = base_hex_byte(from + 1);
        if (byte <= 0)
            return shoal_fail(SHOAL_BROKEN, "the server lists a key that is not encoded as announced");
        *to++ = (char)byte;
        from += 2;
    }
    *to = '\0';
    return SHOAL_OK;
}

int s3_list_parse(shoal_listing *page, char **token, const char *text, size_t size, int64_t now)
{
    reading self = {.page = page, .size = -1, .age = -1, .now = now};
    int status = xml_read(text, size, read_element, &self);
    if (status == SHOAL_OK && !self.is_list)
        status = shoal_fail(SHOAL_BROKEN, "the server's answer is not a list of keys");
    for (size_t i = 0; i < page->count && status == SHOAL_OK && self.encoded; i++)
        status = decode_listed(page->entries[i].key);
    if (status == SHOAL_OK && self.truncated && !self.token)
        status = shoal_fail(SHOAL_BROKEN, "the server has more keys but does not say how to continue the listing");
    if (status == SHOAL_OK && self.truncated) {
        *token = self.token;
        self.token = NULL;
    }
    base_free(&self.key);
    base_free(&self.token);
    return status;
}
