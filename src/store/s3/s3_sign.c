/* Signature Version 4, by which AWS and compatible servers authenticate requests.
 *
 * What is signed and what is sent must be the same bytes.  So the caller passes path and query as they are, not
 * encoded, and sends what comes back: only the signer encodes and sorts.  Everything here is a function of its
 * arguments, the time included; docs.aws.amazon.com calls the steps "canonical request", "string to sign" and
 * "signature". */
#include "s3_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/hex.h"
#include "base/memory.h"
#include "base/secret.h"

/* ---- text that grows --------------------------------------------------------------------------------------------- */

typedef struct text {
    char *bytes;
    size_t size, room;
} text;

static int append_n(text *out, const char *bytes, size_t size)
{
    size_t needed;
    if (!base_add(&needed, out->size, size) || !base_add(&needed, needed, 1))
        return shoal_fail(SHOAL_MEMORY, "a request is too long to sign");
    if (needed > out->room) {
        size_t room = needed < 512 ? 1024 : needed * 2;
        int status = base_grow(&out->bytes, out->room, room, 1, "a request to sign");
        if (status < 0)
            return status;
        out->room = room;
    }
    memcpy(out->bytes + out->size, bytes, size);
    out->size += size;
    return SHOAL_OK;
}

/* Appends the texts that follow, up to a NULL. */
static int append_texts(text *out, ...)
{
    int status = SHOAL_OK;
    va_list parts;
    va_start(parts, out);
    for (const char *part; status == SHOAL_OK && (part = va_arg(parts, const char *));)
        status = append_n(out, part, strlen(part));
    va_end(parts);
    return status;
}

/* ---- hashes ------------------------------------------------------------------------------------------------------ */

int s3_hash(char out[S3_HASH_TEXT], const store_body *body)
{
    unsigned char hash[32];
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool good = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1;
    for (int i = 0; i < 2; i++)
        good = good && EVP_DigestUpdate(context, body->part[i].iov_base, body->part[i].iov_len) == 1;
    good = good && EVP_DigestFinal_ex(context, hash, NULL) == 1;
    EVP_MD_CTX_free(context);
    if (!good)
        return shoal_fail(SHOAL_SYSTEM, "OpenSSL can't compute SHA-256");
    base_hex_write(out, hash, sizeof hash);
    return SHOAL_OK;
}

static bool hmac(unsigned char out[32], const void *key, size_t key_size, const char *message)
{
    unsigned int size = 32;
    return HMAC(EVP_sha256(), key, (int)key_size, (const unsigned char *)message, strlen(message), out, &size) != NULL;
}

/* The key of a day, a region and a service, so that a leaked one opens no other, and then the text. */
static int sign_text(char out[S3_HASH_TEXT], const s3_signing *signing, const char *to_sign)
{
    unsigned char key[32];
    char day[9];
    snprintf(day, sizeof day, "%.8s", signing->time);
    bool good = hmac(key, signing->key, strlen(signing->key), day) && hmac(key, key, sizeof key, signing->region) &&
                hmac(key, key, sizeof key, signing->service) && hmac(key, key, sizeof key, "aws4_request") &&
                hmac(key, key, sizeof key, to_sign);
    if (!good)
        return shoal_fail(SHOAL_SYSTEM, "OpenSSL can't compute an HMAC");
    base_hex_write(out, key, sizeof key);
    base_wipe(key, sizeof key);
    return SHOAL_OK;
}

/* ---- the canonical request --------------------------------------------------------------------------------------- */

/* A parameter or a header as it is signed. */
typedef struct line {
    char *name, *value;
} line;

static void free_lines(line **lines, size_t count)
{
    for (size_t i = 0; *lines && i < count; i++) {
        base_free(&(*lines)[i].name);
        base_free(&(*lines)[i].value);
    }
    base_free(lines);
}

/* Few lines, and those of one name stay in their order unless their values count too: insertion does both. */
static void sort_lines(line *lines, size_t count, bool by_value)
{
    for (size_t i = 1; i < count; i++)
        for (size_t j = i; j > 0; j--) {
            int order = strcmp(lines[j - 1].name, lines[j].name);
            if (order == 0 && by_value)
                order = strcmp(lines[j - 1].value, lines[j].value);
            if (order <= 0)
                break;
            line swapped = lines[j];
            lines[j] = lines[j - 1];
            lines[j - 1] = swapped;
        }
}

static int write_query(char **out, const s3_signing *signing)
{
    line *lines = NULL;
    text query = {0};
    int status = base_alloc(&lines, signing->query_count + 1, sizeof *lines, "parameters");
    for (size_t i = 0; status == SHOAL_OK && i < signing->query_count; i++) {
        status = http_encode(&lines[i].name, signing->query[i].name, false);
        if (status == SHOAL_OK)
            status = http_encode(&lines[i].value, signing->query[i].value, false);
    }
    if (status == SHOAL_OK) {
        sort_lines(lines, signing->query_count, true);
        status = append_n(&query, "", 0);
    }
    for (size_t i = 0; status == SHOAL_OK && i < signing->query_count; i++)
        status = append_texts(&query, i ? "&" : "", lines[i].name, "=", lines[i].value, NULL);
    free_lines(&lines, signing->query_count);
    *out = query.bytes;
    return status;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* A name in small letters, and a value without spaces at its ends and with single ones inside. */
static int copy_header(line *out, const s3_pair *header)
{
    int status = base_copy_text(&out->name, header->name);
    if (status == SHOAL_OK)
        status = base_copy_text(&out->value, header->value);
    if (status < 0)
        return status;
    for (char *c = out->name; *c; c++)
        *c += *c >= 'A' && *c <= 'Z' ? 'a' - 'A' : 0;
    char *to = out->value;
    for (const char *from = out->value; *from; from++)
        if (!is_space(*from))
            *to++ = *from;
        else if (to > out->value && to[-1] != ' ')
            *to++ = ' ';
    to -= to > out->value && to[-1] == ' ';
    *to = '\0';
    return SHOAL_OK;
}

/* The lines of the headers, and their names.  Headers of one name become one, their values separated by commas. */
static int write_headers(text *out, char **names, const s3_signing *signing)
{
    line *lines = NULL;
    text list = {0};
    size_t count = signing->header_count;
    int status = base_alloc(&lines, count + 1, sizeof *lines, "headers");
    for (size_t i = 0; status == SHOAL_OK && i < count; i++)
        status = copy_header(&lines[i], &signing->headers[i]);
    if (status == SHOAL_OK) {
        sort_lines(lines, count, false);
        status = append_n(&list, "", 0);
    }
    for (size_t i = 0; status == SHOAL_OK && i < count; i++) {
        if (i && strcmp(lines[i - 1].name, lines[i].name) == 0) {
            status = append_texts(out, ",", lines[i].value, NULL);
            continue;
        }
        status = append_texts(out, i ? "\n" : "", lines[i].name, ":", lines[i].value, NULL);
        if (status == SHOAL_OK)
            status = append_texts(&list, i ? ";" : "", lines[i].name, NULL);
    }
    if (status == SHOAL_OK && count)
        status = append_texts(out, "\n", NULL);
    free_lines(&lines, count);
    *names = list.bytes;
    return status;
}

/* "/a/./b//../c/" becomes "/a/c/", in place. */
static void normalise(char *path)
{
    char *to = path;
    bool open_ended = true;
    for (const char *from = path; *from;) {
        size_t length = strcspn(from, "/");
        bool up = length == 2 && memcmp(from, "..", 2) == 0;
        bool here = length == 0 || (length == 1 && *from == '.');
        open_ended = up || here;
        if (up)
            while (to > path && *--to != '/')
                ;
        if (!up && !here) {
            *to++ = '/';
            memmove(to, from, length);
            to += length;
        }
        from += length;
        if (*from == '/') {
            from++;
            open_ended = true;
        }
    }
    if (open_ended || to == path)
        *to++ = '/';
    *to = '\0';
}

/* Normalising may need one byte more than there was, since a path need not start with a slash. */
static int write_path(char **out, const s3_signing *signing)
{
    char *path = NULL;
    int status = base_format(&path, "%s ", *signing->path ? signing->path : "/");
    if (status == SHOAL_OK) {
        path[strlen(path) - 1] = '\0';
        if (signing->normalise && *path == '/')
            normalise(path);
        status = http_encode(out, path, true);
    }
    base_free(&path);
    return status;
}

int s3_sign(s3_signature *out, const s3_signing *signing)
{
    text canonical = {0};
    char hash[S3_HASH_TEXT];
    int status = write_path(&out->path, signing);
    if (status == SHOAL_OK)
        status = write_query(&out->query, signing);
    if (status == SHOAL_OK)
        status = append_texts(&canonical, signing->method, "\n", out->path, "\n", out->query, "\n", NULL);
    if (status == SHOAL_OK)
        status = write_headers(&canonical, &out->names, signing);
    if (status == SHOAL_OK)
        status = append_texts(&canonical, "\n", out->names, "\n", signing->payload, NULL);
    out->canonical = canonical.bytes;
    if (status == SHOAL_OK)
        status = s3_hash(hash, &(store_body){{{canonical.bytes, canonical.size}}});
    if (status == SHOAL_OK)
        status = base_format(&out->scope, "%.8s/%s/%s/aws4_request", signing->time, signing->region, signing->service);
    if (status == SHOAL_OK)
        status = base_format(&out->to_sign, "AWS4-HMAC-SHA256\n%s\n%s\n%s", signing->time, out->scope, hash);
    if (status == SHOAL_OK)
        status = sign_text(out->hex, signing, out->to_sign);
    return status;
}

void s3_signature_release(s3_signature *signature)
{
    base_free(&signature->path);
    base_free(&signature->query);
    base_free(&signature->names);
    base_free(&signature->scope);
    base_free(&signature->canonical);
    base_free(&signature->to_sign);
}
