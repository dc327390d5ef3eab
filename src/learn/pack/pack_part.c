/* Parts: what became of a shard, kept beside it (".part") until the manifest is there, so that a run that was killed
 * need not make it again.  See pack_internal.h.
 *
 * A part counts only for the very same options and rows, whose hash it has, and only if the shard is there with
 * the SHA-256 it says.  The shard is put before its part.  Of a run that was done the manifest says the same. */
#include "learn/pack/pack_internal.h"

#include <string.h>

#include "base/hex.h"
#include "base/memory.h"

enum { PART_BYTES_MOST = 64 << 20 };

void pack_shard_inputs(unsigned char out[BASE_HASH_SIZE], const pack_model *model, const pack_ready *ready,
                       const shoal_grain *grain)
{
    base_hash hash = {0};
    pack_model head = *model;
    head.skip_broken = head.parts = head.resume = head.replace = 0; /* a shard that is whole is the same either way */
    base_hash_add(&hash, &head, sizeof head);
    base_hash_add(&hash, model->texts, (size_t)model->name_bytes + (size_t)model->classes_bytes);
    base_hash_add(&hash, &grain->index, sizeof grain->index);
    base_hash_add(&hash, grain->values, (size_t)grain->rows * (size_t)ready->shape->columns);
    base_hash_end(&hash, out);
}

/* SHOAL_ABSENT when a shard, or the file beside it, is not there or not as it was put. */
static int check_there(const pack_shard *shard, const pack_model *model, const pack_ready *ready,
                       const shoal_grain *grain)
{
    const pack_naming naming = pack_naming_of(model);
    const char *const more[] = {NULL, pack_beside(model->format, model->index, model->classes > 0)};
    const char *why = NULL;
    int status = SHOAL_OK;
    for (int i = 0; i < 2 && status == SHOAL_OK && !why; i++) {
        char *name = NULL;
        if (i == 1 && !more[i])
            break;
        status = pack_shard_name(&name, &naming, grain->index, grain->rows, more[i]);
        if (status == SHOAL_OK)
            status = i == 0 ? pack_compare(&why, ready->to, name, shard->bytes, shard->sha256)
                            : pack_compare(&why, ready->to, name, shard->beside_bytes, shard->beside);
        base_free(&name);
    }
    return status == SHOAL_OK && why ? SHOAL_ABSENT : status;
}

static int read_broken(shoal_partial *partial, base_reader *in, const shoal_grain *grain)
{
    static const size_t most = PACK_WHY_BYTES;
    char name[PACK_NAME_MOST + 1], why[PACK_WHY_BYTES];
    int64_t row = base_read_i64(in);
    base_read_text(in, name, sizeof name);
    base_read_text(in, why, most);
    if (in->bad || row < grain->first_row || row >= grain->first_row + grain->rows)
        return SHOAL_ABSENT;
    return pack_add_broken(partial, row, name, why);
}

static int read_part(shoal_partial *partial, base_reader *in, const pack_model *model, const pack_ready *ready,
                     const shoal_grain *grain)
{
    unsigned char expected[BASE_HASH_SIZE];
    const pack_shard *there = base_read_bytes(in, sizeof *there);
    pack_shard shard;
    pack_shard_inputs(expected, model, ready, grain);
    if (in->bad)
        return SHOAL_ABSENT;
    memcpy(&shard, there, sizeof shard);
    if (memcmp(shard.inputs, expected, sizeof expected) != 0)
        return SHOAL_ABSENT;
    int status = check_there(&shard, model, ready, grain);
    while (status == SHOAL_OK && in->left > 0)
        status = read_broken(partial, in, grain);
    if (status == SHOAL_OK)
        status = shoal_partial_record(partial, PACK_CELL_SHARDS, (shoal_key){(uint64_t)grain->index, 0}, &shard);
    return status;
}

/* ---- of a run that was done -------------------------------------------------------------------------------------- */

int pack_fail_packed(const char *why)
{
    return shoal_fail(SHOAL_USAGE,
                      "OUT already holds packed images (manifest.json)%s; choose another place, or replace them with "
                      "--force",
                      why);
}

static const json_t *find_listed(const json_t *manifest, const char *name)
{
    const json_t *shard;
    size_t i;
    json_array_foreach(json_object_get(manifest, "shards"), i, shard)
    {
        const char *listed = json_string_value(json_object_get(shard, "name"));
        if (listed && strcmp(listed, name) == 0)
            return shard;
    }
    return NULL;
}

static bool take_hash(unsigned char out[BASE_HASH_SIZE], const json_t *shard, const char *name)
{
    const char *hex = json_string_value(json_object_get(shard, name));
    return hex && base_hex_read(out, BASE_HASH_SIZE, hex);
}

/* Images that were left out of a shard. */
static int add_listed_broken(shoal_partial *partial, const json_t *manifest, const shoal_grain *grain)
{
    const json_t *image;
    size_t i;
    int status = SHOAL_OK;
    json_array_foreach(json_object_get(manifest, "skipped"), i, image)
    {
        const int64_t row = json_integer_value(json_object_get(image, "item"));
        const char *name = json_string_value(json_object_get(image, "name")),
                   *why = json_string_value(json_object_get(image, "why"));
        if (status == SHOAL_OK && name && why && row >= grain->first_row && row < grain->first_row + grain->rows)
            status = pack_add_broken(partial, row, name, why);
    }
    return status;
}

/* SHOAL_ABSENT when the shard is to be made again. */
static int take_listed(shoal_partial *partial, const char *name, const pack_model *model, const pack_ready *ready,
                       const shoal_grain *grain)
{
    const json_t *listed = find_listed(ready->old, name), *beside = json_object_get(listed, "beside");
    unsigned char expected[BASE_HASH_SIZE];
    pack_shard shard = {.bytes = json_integer_value(json_object_get(listed, "bytes")),
                        .items = json_integer_value(json_object_get(listed, "items")),
                        .written = json_integer_value(json_object_get(listed, "written")),
                        .beside_bytes = json_integer_value(json_object_get(beside, "bytes"))};
    pack_shard_inputs(expected, model, ready, grain);
    if (!take_hash(shard.inputs, listed, "inputs") || !take_hash(shard.sha256, listed, "sha256") ||
        memcmp(shard.inputs, expected, sizeof expected) != 0)
        return model->replace ? SHOAL_ABSENT : pack_fail_packed(", made of other images or with other options");
    int status = !beside || take_hash(shard.beside, beside, "sha256") ? SHOAL_OK : SHOAL_ABSENT;
    if (status == SHOAL_OK)
        status = check_there(&shard, model, ready, grain);
    if (status == SHOAL_OK)
        status = add_listed_broken(partial, ready->old, grain);
    if (status == SHOAL_OK)
        status = shoal_partial_record(partial, PACK_CELL_SHARDS, (shoal_key){(uint64_t)grain->index, 0}, &shard);
    return status;
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

int pack_part_take(bool *there, shoal_partial *partial, const pack_model *model, const pack_ready *ready,
                   const shoal_grain *grain)
{
    const pack_naming naming = pack_naming_of(model);
    char *name = NULL, *part = NULL;
    void *bytes = NULL;
    size_t size = 0;
    *there = false;
    int status = pack_shard_name(&name, &naming, grain->index, grain->rows, NULL);
    if (status == SHOAL_OK)
        status = pack_shard_name(&part, &naming, grain->index, grain->rows, ".part");
    if (status == SHOAL_OK)
        status = ready->to->get(ready->to, part, PART_BYTES_MOST, &bytes, &size);
    if (status == SHOAL_OK) {
        base_reader in = base_reader_of(bytes, size);
        status = read_part(partial, &in, model, ready, grain);
    }
    if (status == SHOAL_ABSENT && ready->old)
        status = take_listed(partial, name, model, ready, grain);
    *there = status == SHOAL_OK;
    ready->to->release(ready->to, &bytes);
    base_free(&part);
    base_free(&name);
    return status == SHOAL_ABSENT ? SHOAL_OK : status;
}

int pack_part_put(const pack_shard *shard, const base_writer *broken, const pack_model *model, const pack_ready *ready,
                  const shoal_grain *grain)
{
    const pack_naming naming = pack_naming_of(model);
    base_writer out = {0};
    char *name = NULL;
    base_write_bytes(&out, shard, sizeof *shard);
    base_write_bytes(&out, broken->data, broken->size);
    int status = broken->status < 0 ? broken->status : out.status;
    if (status == SHOAL_OK)
        status = pack_shard_name(&name, &naming, grain->index, grain->rows, ".part");
    if (status == SHOAL_OK)
        status = ready->to->put(ready->to, name, out.data, out.size);
    base_free(&name);
    base_writer_release(&out);
    return status;
}
