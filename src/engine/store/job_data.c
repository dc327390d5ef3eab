/* Rows that are in a store already: opened so that a job can refer to them.  See shoal/job.h. */
#include <shoal/job.h>

#include <string.h>

#include "base/memory.h"
#include "data/data_place.h"

enum { HEAD_BYTES = 4096 };

/* The first bytes, as many as the format's description needs, all of one version. */
static int get_head(shoal_blob *out, shoal_store *store, const char *key, int64_t deadline)
{
    int status = shoal_store_get_range(store, key, 0, HEAD_BYTES, NULL, NULL, out, deadline);
    size_t needed = status == SHOAL_OK ? data_describe_bytes(out->data, out->size) : 0;
    if (needed <= HEAD_BYTES)
        return status;
    shoal_etag etag = out->etag;
    shoal_blob_release(out);
    *out = (shoal_blob){0};
    return shoal_store_get_range(store, key, 0, (int64_t)needed, &etag, NULL, out, deadline);
}

/* An address that means the same in any working directory.  A bare path is taken literally, unlike a URL. */
static int address_of(char **out, const shoal_store *store, const char *url, const char *key)
{
    shoal_store_traits traits = shoal_store_describe(store);
    if (strcmp(traits.scheme, "dir") != 0)
        return base_copy_text(out, url);
    return base_format(out, "%s/%s", traits.name + strcspn(traits.name, "/"), key);
}

int shoal_job_data_open(shoal_data **out, const char *url, const shoal_data_options *options, int64_t deadline)
{
    shoal_store *store = NULL;
    shoal_blob head = {0};
    char *key = NULL, *address = NULL;
    *out = NULL;
    int status = shoal_store_open_at(&store, &key, url, &(shoal_store_options){.read_only = true}, deadline);
    if (status == SHOAL_OK && !*key)
        status = shoal_fail(SHOAL_USAGE,
                            "%s: names a store, but no blob in it; rows lie in one, as .npy or raw, and a folder of "
                            "files is fetched first: shoal store get -r",
                            url);
    if (status == SHOAL_OK)
        status = get_head(&head, store, key, deadline);
    if (status == SHOAL_OK)
        status = address_of(&address, store, url, key);
    if (status == SHOAL_OK) {
        const data_blob blob = {.url = address, .key = key, .etag = head.etag.text, .size = head.whole};
        status = data_describe(out, &blob, head.data, head.size, options);
    }
    shoal_blob_release(&head);
    base_free(&address);
    shoal_text_free(&key);
    shoal_store_close(&store);
    return status;
}
