/* What is left of images that were packed to the same place before: shards that the new manifest does not list are
 * removed once it is there, so that whoever reads all shards of a folder reads no image twice.  See pack_internal.h.
 *
 * The old manifest may come from anywhere: nothing is removed that could not be a shard or a file beside one. */
#include "learn/pack/pack_internal.h"

#include <string.h>

#include "base/json.h"
#include "base/memory.h"

enum { MANIFEST_BYTES_MOST = 512 << 20 };

int pack_manifest_get(json_t **out, const shoal_blobs *to)
{
    void *bytes = NULL;
    size_t size = 0;
    *out = NULL;
    int status = to->get(to, "manifest.json", MANIFEST_BYTES_MOST, &bytes, &size);
    if (status == SHOAL_OK)
        *out = json_loadb(bytes, size, 0, NULL); /* one of somebody else lists no shards */
    to->release(to, &bytes);
    return status == SHOAL_ABSENT ? SHOAL_OK : status;
}

/* Where the ending of a shard's name begins; NULL for what is no shard's name. */
static const char *find_ending(const char *name)
{
    const char *dot = name && !strchr(name, '/') ? strrchr(name, '.') : NULL;
    if (!dot || dot == name)
        return NULL;
    return strcmp(dot, ".tfrec") == 0 || strcmp(dot, ".tar") == 0 || strcmp(dot, ".npy") == 0 ? dot : NULL;
}

/* The names of all files that belong to shards, as the keys of an object. */
static json_t *names_of(const json_t *manifest, bool index, bool classes)
{
    json_t *names = json_object();
    const json_t *shard;
    size_t i;
    json_array_foreach(json_object_get(manifest, "shards"), i, shard)
    {
        const char *name = json_string_value(json_object_get(shard, "name")), *ending = find_ending(name);
        const char *const more[] = {index ? ".idx" : NULL, classes ? ".classes.npy" : NULL};
        if (!ending)
            continue;
        base_json_put(&names, name, json_true());
        for (int j = 0; j < 2; j++) {
            char *beside = NULL;
            if (more[j] && base_format(&beside, "%.*s%s", (int)(ending - name), name, more[j]) == SHOAL_OK)
                base_json_put(&names, beside, json_true());
            base_free(&beside);
        }
    }
    return names;
}

int pack_remove_replaced(const shoal_blobs *to, const json_t *old, const json_t *new, bool index, bool classes)
{
    json_t *before = names_of(old, true, true), *now = names_of(new, index, classes), *value;
    const char *name;
    int status =
        before && now ? SHOAL_OK : shoal_fail(SHOAL_MEMORY, "out of memory for the names of shards to be removed");
    json_object_foreach(before, name, value)
    {
        if (status == SHOAL_OK && !json_object_get(now, name))
            status = to->remove(to, name);
    }
    json_decref(before);
    json_decref(now);
    return status;
}
