/* Parts: what became of a shard, kept beside it (".part") until the manifest is there, so that a run that was killed
 * need not make it again.  See pack_internal.h.
 *
 * A part counts only for the very same options and rows, whose hash it begins with, and only if the shard is there with
 * the size it says.  The shard is put before its part. */
#include "learn/pack/pack_internal.h"

#include <string.h>

#include "base/memory.h"

enum { PART_BYTES_MOST = 64 << 20 };

/* Of all that a shard's bytes depend on. */
static void hash_shard(unsigned char out[BASE_HASH_SIZE], const pack_model *model, const pack_ready *ready,
                       const shoal_grain *grain)
{
    base_hash hash = {0};
    pack_model head = *model;
    head.skip_broken = head.resume = 0; /* a shard that is whole is the same either way */
    base_hash_add(&hash, &head, sizeof head);
    base_hash_add(&hash, model->texts, (size_t)model->name_bytes + (size_t)model->classes_bytes);
    base_hash_add(&hash, &grain->index, sizeof grain->index);
    base_hash_add(&hash, grain->values, (size_t)grain->rows * (size_t)ready->shape->columns);
    base_hash_end(&hash, out);
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
                     const shoal_grain *grain, const char *name)
{
    unsigned char expected[BASE_HASH_SIZE];
    int64_t size = -1;
    const unsigned char *hash = base_read_bytes(in, BASE_HASH_SIZE);
    const pack_shard *there = base_read_bytes(in, sizeof *there);
    pack_shard shard;
    hash_shard(expected, model, ready, grain);
    if (in->bad || memcmp(hash, expected, sizeof expected) != 0)
        return SHOAL_ABSENT;
    memcpy(&shard, there, sizeof shard);
    int status = ready->to->has(ready->to, name, &size);
    if (status < 0 || size != shard.bytes)
        return status < 0 ? status : SHOAL_ABSENT;
    while (status == SHOAL_OK && in->left > 0)
        status = read_broken(partial, in, grain);
    if (status == SHOAL_OK)
        status = shoal_partial_record(partial, PACK_CELL_SHARDS, (shoal_key){(uint64_t)grain->index, 0}, &shard);
    return status;
}

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
        status = read_part(partial, &in, model, ready, grain, name);
        *there = status == SHOAL_OK;
    }
    ready->to->release(ready->to, &bytes);
    base_free(&part);
    base_free(&name);
    return status == SHOAL_ABSENT ? SHOAL_OK : status;
}

int pack_part_put(const pack_shard *shard, const base_writer *broken, const pack_model *model, const pack_ready *ready,
                  const shoal_grain *grain)
{
    unsigned char hash[BASE_HASH_SIZE];
    const pack_naming naming = pack_naming_of(model);
    base_writer out = {0};
    char *name = NULL;
    hash_shard(hash, model, ready, grain);
    base_write_bytes(&out, hash, sizeof hash);
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
