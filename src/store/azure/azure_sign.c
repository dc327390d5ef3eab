/* Signatures by the account's key, as "Authorize with Shared Key" describes them, and Base64. */
#include "azure_internal.h"

#include <limits.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

int azure_base64(char **out, const void *bytes, size_t size)
{
    if (size > INT_MAX / 2)
        return shoal_fail(SHOAL_INVALID, "%zu bytes are too many for Base64", size);
    int status = base_alloc(out, size / 3 * 4 + 5, 1, "Base64");
    if (status == SHOAL_OK)
        EVP_EncodeBlock((unsigned char *)*out, bytes, (int)size);
    return status;
}

int azure_unbase64(unsigned char **out, size_t *size, const char *text, size_t length)
{
    size_t padding = length > 0 && text[length - 1] == '=' ? 1 : 0;
    padding += length > 1 && padding && text[length - 2] == '=';
    bool whole = length % 4 == 0 && length < INT_MAX;
    for (size_t i = 0; i < length - padding && whole; i++)
        whole = strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", text[i]) && text[i];
    if (!whole)
        return shoal_fail(SHOAL_BROKEN, "a text of %zu characters is not Base64", length);
    int status = base_alloc(out, length / 4 * 3 + 1, 1, "Base64");
    if (status < 0)
        return status;
    if (length > 0 && EVP_DecodeBlock(*out, (const unsigned char *)text, (int)length) < 0) {
        base_free(out);
        return shoal_fail(SHOAL_BROKEN, "a text of %zu characters is not Base64", length);
    }
    *size = length / 4 * 3 - padding;
    return SHOAL_OK;
}

static int compare_pairs(const void *left, const void *right)
{
    return strcmp(((const azure_pair *)left)->name, ((const azure_pair *)right)->name);
}

/* Adds name:value for every pair, sorted, each between `before` and `behind`. */
static int add_pairs(char **inout, const azure_pair *pairs, size_t count, const char *before, const char *behind)
{
    azure_pair sorted[2 * AZURE_PAIRS + 4];
    if (count > sizeof sorted / sizeof *sorted)
        SHOAL_BUG("%zu headers", count);
    for (size_t i = 0; i < count; i++)
        sorted[i] = pairs[i];
    qsort(sorted, count, sizeof *sorted, compare_pairs);
    int status = SHOAL_OK;
    for (size_t i = 0; i < count && status == SHOAL_OK; i++) {
        char *longer = NULL;
        status = base_format(&longer, "%s%s%s:%s%s", *inout, before, sorted[i].name, sorted[i].value, behind);
        if (status == SHOAL_OK) {
            base_free(inout);
            *inout = longer;
        }
    }
    return status;
}

int azure_string_to_sign(char **out, const azure_signed *request)
{
    char *text = NULL, *longer = NULL, length[32] = "";
    if (request->content_length > 0)
        snprintf(length, sizeof length, "%zu", request->content_length);
    /* Verb, Content-Encoding, -Language, -Length, -MD5, -Type, Date, If-Modified-Since, If-Match, If-None-Match,
     * If-Unmodified-Since, Range. */
    int status = base_format(
        &text, "%s\n\n\n%s\n%s\n%s\n\n\n%s\n%s\n\n\n", request->method, length,
        request->content_md5 ? request->content_md5 : "", request->content_type ? request->content_type : "",
        request->if_match ? request->if_match : "", request->if_none_match ? request->if_none_match : "");
    if (status == SHOAL_OK)
        status = add_pairs(&text, request->headers, request->header_count, "", "\n");
    if (status == SHOAL_OK)
        status = base_format(&longer, "%s/%s%s", text, request->account, request->path);
    if (status == SHOAL_OK) {
        base_free(&text);
        text = longer;
        status = add_pairs(&text, request->query, request->query_count, "\n", "");
    }
    if (status == SHOAL_OK) {
        *out = text;
        text = NULL;
    }
    base_free(&text);
    return status;
}

int azure_sign(char out[64], const base_secret *key, const char *text)
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    if (!HMAC(EVP_sha256(), base_secret_text(key), (int)base_secret_size(key), (const unsigned char *)text,
              strlen(text), mac, &length))
        return shoal_fail(SHOAL_SYSTEM, "OpenSSL can't sign a request");
    EVP_EncodeBlock((unsigned char *)out, mac, (int)length);
    return SHOAL_OK;
}
