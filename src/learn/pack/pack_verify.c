/* Packed images compared with their manifest.  See pack_verify.h.
 *
 * The manifest may come from anywhere: its names are checked by those who open them, its numbers here. */
#include "learn/pack/pack_verify.h"

#include <inttypes.h>
#include <string.h>

#include "base/hex.h"
#include "base/memory.h"

enum { PIECE = 4 << 20 };

/* SHA-256 of a file that has so many bytes.  SHOAL_ABSENT or SHOAL_INVALID when it has not. */
static int hash_file(unsigned char out[BASE_HASH_SIZE], const shoal_blobs *blobs, const char *name, int64_t bytes)
{
    base_hash hash = {0};
    void *piece = NULL;
    int status = base_alloc_unset(&piece, (size_t)(bytes < PIECE ? bytes : PIECE), 1, name);
    for (int64_t at = 0; at < bytes && status == SHOAL_OK; at += PIECE) {
        const size_t size = (size_t)(bytes - at < PIECE ? bytes - at : PIECE);
        status = blobs->get_part(blobs, name, at, piece, size);
        if (status == SHOAL_OK)
            base_hash_add(&hash, piece, size);
    }
    base_hash_end(&hash, out);
    base_free(&piece);
    return status;
}

int pack_compare(const char **why, const shoal_blobs *blobs, const char *name, int64_t bytes,
                 const unsigned char sha256[BASE_HASH_SIZE])
{
    unsigned char found[BASE_HASH_SIZE];
    int64_t size = 0;
    *why = NULL;
    int status = blobs->has(blobs, name, &size);
    if (status == SHOAL_OK && size == bytes)
        status = hash_file(found, blobs, name, bytes);
    if (status == SHOAL_ABSENT)
        *why = "is not there";
    else if (status < 0)
        return status;
    else if (size != bytes)
        *why = size < bytes ? "is shorter than it was" : "is longer than it was";
    else if (memcmp(found, sha256, sizeof found) != 0)
        *why = "has other bytes than it had";
    return SHOAL_OK;
}

int pack_verify_begin(pack_verifier *out, const shoal_blobs *blobs, const char *place)
{
    int64_t size = 0;
    *out = (pack_verifier){.blobs = blobs, .place = place};
    int status = blobs->has(blobs, "manifest.json", &size);
    if (status == SHOAL_ABSENT)
        return shoal_fail(SHOAL_INVALID, "%s: there is no manifest.json, which data pack writes last", place);
    if (status == SHOAL_OK)
        status = pack_manifest_get(&out->manifest, blobs);
    if (status < 0)
        return status;
    out->list = json_object_get(out->manifest, "shards");
    out->shards = (int64_t)json_array_size(out->list);
    return out->list ? SHOAL_OK : shoal_fail(SHOAL_INVALID, "%s: manifest.json is none of packed images", place);
}

static int verify_listed(const char **why, pack_verifier *self, const json_t *file)
{
    const char *hex = json_string_value(json_object_get(file, "sha256"));
    const int64_t bytes = json_integer_value(json_object_get(file, "bytes"));
    unsigned char expected[BASE_HASH_SIZE];
    self->name = json_string_value(json_object_get(file, "name"));
    if (!self->name || bytes < 0 || !hex || !base_hex_read(expected, sizeof expected, hex))
        return shoal_fail(SHOAL_INVALID, "%s: manifest.json: shard %" PRId64 " lacks its name, size or SHA-256",
                          self->place, self->next);
    return pack_compare(why, self->blobs, self->name, bytes, expected);
}

int pack_verify_next(const char **why, pack_verifier *self)
{
    const json_t *shard = json_array_get(self->list, (size_t)self->next++), *beside = json_object_get(shard, "beside");
    const int64_t bytes = json_integer_value(json_object_get(shard, "bytes")),
                  written = json_integer_value(json_object_get(shard, "written"));
    int status = verify_listed(why, self, shard);
    if (status == SHOAL_OK && !*why && beside)
        status = verify_listed(why, self, beside);
    if (status == SHOAL_OK && !*why && written > 0) {
        self->images = base_add_wrapping(self->images, written);
        self->bytes = base_add_wrapping(self->bytes, bytes);
    }
    return status;
}

void pack_verify_end(pack_verifier *self)
{
    json_decref(self->manifest);
    self->manifest = NULL;
}
