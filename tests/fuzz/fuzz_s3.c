/* Any bytes as what an S3 server, a metadata service or a file below ~/.aws may hold: read or refused, never more than
 * that.  The first byte says as which. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/s3/s3_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void read_list(const char *text, size_t size)
{
    shoal_listing page = {0};
    char *token = NULL;
    int status = s3_list_parse(&page, &token, text, size, 1800000000);
    if (status < 0 && (token || !shoal_error()[0]))
        abort();
    for (size_t i = 0; i < page.count; i++)
        if (!page.entries[i].key || page.entries[i].size < 0 || strlen(page.entries[i].key) > size)
            abort();
    base_free(&token);
    shoal_listing_release(&page);
}

static void see_part(void *context, int64_t number, int64_t size, const char *etag)
{
    (void)number;
    (void)size;
    if (strlen(etag) >= SHOAL_ETAG_BYTES)
        abort();
    (void)context;
}

static void read_uploads(const char *text, size_t size)
{
    char *upload = NULL;
    int64_t next = 0;
    if (s3_upload_parse(&upload, "a", text, size) < 0 && upload)
        abort();
    base_free(&upload);
    (void)s3_parts_parse(&next, see_part, NULL, text, size);
}

static void read_error(const char *text, size_t size)
{
    s3_error error;
    s3_error_parse(&error, text, size);
    if (strlen(error.code) >= sizeof error.code || strlen(error.message) >= sizeof error.message ||
        strlen(error.request_id) >= sizeof error.request_id || strlen(error.region) >= sizeof error.region)
        abort();
}

static void check_keys(const s3_keys *keys)
{
    if (!keys->id || strncmp(base_secret_text(keys->signing), "AWS4", 4) != 0 || strpbrk(keys->id, " \r\n\t") ||
        strpbrk(base_secret_text(keys->signing), " \r\n\t") || strpbrk(base_secret_text(keys->token), " \r\n\t"))
        abort();
}

static void read_profile(const char *text, size_t size, bool config)
{
    s3_profile profile = {0};
    int status = s3_profile_parse(&profile, text, size, "default", config);
    if (profile.keys && (status < 0 || !profile.found))
        abort();
    if (profile.keys)
        check_keys(profile.keys);
    s3_profile_release(&profile);
}

static void read_metadata(const char *text, size_t size)
{
    s3_keys *keys = NULL;
    if (s3_keys_new(&keys) < 0)
        return;
    if (s3_metadata_parse(keys, text, size) == SHOAL_OK)
        check_keys(keys);
    s3_keys_free(&keys);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size == 0)
        return 0;
    /* A copy without a NUL behind it, so that the address sanitizer sees who reads on. */
    char *text = malloc(size - 1);
    memcpy(text, bytes + 1, size - 1);
    switch (bytes[0]) {
    case 'L': read_list(text, size - 1); break;
    case 'U': read_uploads(text, size - 1); break;
    case 'E': read_error(text, size - 1); break;
    case 'P': read_profile(text, size - 1, false); break;
    case 'C': read_profile(text, size - 1, true); break;
    default: read_metadata(text, size - 1);
    }
    free(text);
    return 0;
}
