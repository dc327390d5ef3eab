/* Specs: freeing, writing and fetching them.  Reading is in job_spec_read.c.
 *
 * A spec is the length of a JSON text in 32 bits, the text, and round 0.  The JSON is there for people and for other
 * versions, which must be able to say what they can't read. */
#include "engine/store/job_spec.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/bytes.h"
#include "base/hex.h"
#include "base/memory.h"
#include "engine/store/job_keys.h"
#include "engine/store/job_spec_internal.h"
#include "learn/partial.h"
#include "learn/wire.h"

const char *const job_source_words[4] = {"uploaded", "stored", "file", "generated"};
const char *const job_source_names[4] = {"uploaded", "ranges", "file", "generated"};

void job_spec_free(job_spec **inout)
{
    job_spec *spec = *inout;
    if (!spec)
        return;
    shoal_round_free(&spec->first);
    for (int i = 0; i < spec->codes; i++)
        base_free(&spec->code[i].name);
    base_free(&spec->code);
    base_free(&spec->from);
    base_free(&spec->slice);
    base_free(&spec->store_url);
    base_free(&spec->place);
    base_free(&spec->settings);
    base_free(&spec->data_name);
    base_free(inout);
}

int64_t job_slice_first_row(const job_spec *spec, int64_t slice)
{
    return spec->slice[slice].first_grain * spec->shape.rows_per_grain;
}

const job_tree *job_spec_tree(const job_spec *spec, const shoal_layout *layout)
{
    int64_t values = 0;
    for (int i = 0; i < layout->cells; i++) {
        const shoal_cell *cell = &layout->cell[i];
        if (cell->kind == SHOAL_CELL_ROW || cell->kind == SHOAL_CELL_RECORD ||
            __builtin_add_overflow(values, learn_cell_values(cell), &values))
            return &spec->tree;
    }
    bool enough = spec->ranged.ranges > 0 && values / spec->ranged.ranges >= (spec->range_bytes + 7) / 8;
    return enough ? &spec->ranged : &spec->tree;
}

int64_t job_slice_rows(const job_spec *spec, int64_t slice)
{
    const job_slice *of = &spec->slice[slice];
    int64_t last = spec->shape.rows - of->first_grain * spec->shape.rows_per_grain;
    return of->first_grain + of->grains == spec->shape.grains ? last : of->grains * spec->shape.rows_per_grain;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static json_t *shape_json(const shoal_shape *shape)
{
    return json_pack("{s:I, s:I, s:s, s:b, s:I, s:I, s:I, s:I}", "rows", (json_int_t)shape->rows, "columns",
                     (json_int_t)shape->columns, "type", shoal_type_name(shape->type), "weighted", (int)shape->weighted,
                     "rows_per_grain", (json_int_t)shape->rows_per_grain, "grains", (json_int_t)shape->grains, "strata",
                     (json_int_t)shape->strata, "held", (json_int_t)shape->held);
}

/* Only what the kind of source has. */
static json_t *data_json(const job_spec *spec)
{
    json_t *data = json_pack("{s:s, s:s, s:s}", "name", spec->data_name, "kind", job_source_names[spec->source],
                             "place", spec->place);
    bool good = data != NULL;
    if (good && spec->source == JOB_RANGES)
        good = json_object_set_new(data, "etag", json_string(spec->etag.text)) == 0;
    if (good && spec->source == JOB_RANGES && spec->store_url)
        good = json_object_set_new(data, "store", json_string(spec->store_url)) == 0;
    if (good && (spec->source == JOB_RANGES || spec->source == JOB_FILE))
        good = json_object_set_new(data, "offset", json_integer(spec->offset)) == 0 &&
               json_object_set_new(data, "size", json_integer(spec->size)) == 0;
    if (!good) {
        json_decref(data);
        data = NULL;
    }
    return data;
}

/* All hashes in one text, since tens of thousands of short texts would be much longer. */
static json_t *hashes_json(const job_spec *spec, size_t offset)
{
    size_t length = (size_t)spec->slices * 2 * BASE_HASH_SIZE;
    char *text = NULL;
    if (base_alloc_unset(&text, length + 1, 1, "the hashes of slices") < 0)
        return NULL;
    for (int64_t i = 0; i < spec->slices; i++)
        base_hex_write(text + i * 2 * BASE_HASH_SIZE, (const char *)&spec->slice[i] + offset, BASE_HASH_SIZE);
    json_t *hashes = json_stringn(text, length);
    base_free(&text);
    return hashes;
}

/* Slices are contiguous, so that their grains say where each is. */
static json_t *slices_json(const job_spec *spec)
{
    json_t *slices = json_object(), *grains = json_array();
    bool good = slices && grains;
    for (int64_t i = 0; i < spec->slices && good; i++)
        good = json_array_append_new(grains, json_integer(spec->slice[i].grains)) == 0;
    good = good && json_object_set(slices, "grains", grains) == 0;
    if (good && job_source_is_hashed(spec->source))
        good = json_object_set_new(slices, "hashes", hashes_json(spec, offsetof(job_slice, hash))) == 0;
    if (good && spec->shape.weighted)
        good = json_object_set_new(slices, "weights", hashes_json(spec, offsetof(job_slice, weights_hash))) == 0;
    json_decref(grains);
    if (!good) {
        json_decref(slices);
        slices = NULL;
    }
    return slices;
}

static json_t *reduce_json(const job_tree *tree)
{
    json_t *fans = json_array();
    for (int i = 0; i + 1 < tree->levels && fans; i++)
        if (json_array_append_new(fans, json_integer(tree->fan[i])) < 0) {
            json_decref(fans);
            fans = NULL;
        }
    return fans;
}

/* How many ranges, and the bytes that each has at least. */
static json_t *ranges_json(const job_spec *spec)
{
    return json_pack("[I, I]", (json_int_t)spec->ranged.ranges, (json_int_t)spec->range_bytes);
}

static json_t *code_json(const job_spec *spec)
{
    json_t *list = json_array();
    for (int i = 0; i < spec->codes && list; i++) {
        char hex[BASE_HASH_HEX];
        base_hex_write(hex, spec->code[i].hash, BASE_HASH_SIZE);
        if (json_array_append_new(list, json_pack("{s:s, s:I, s:s}", "name", spec->code[i].name, "size",
                                                  (json_int_t)spec->code[i].size, "sha256", hex)) < 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}

static json_t *spec_json(const job_spec *spec)
{
    char fingerprint[17];
    snprintf(fingerprint, sizeof fingerprint, "%016llx", (unsigned long long)spec->fingerprint);
    /* "o" takes ownership, even if something else fails; a NULL fails. */
    json_t *json =
        json_pack("{s:i, s:s, s:s, s:s, s:o, s:s, s:o, s:o, s:o, s:f, s:I, s:I, s:f, s:s?}", "format", JOB_FORMAT, "id",
                  spec->id, "version", spec->version, "algorithm", spec->algorithm, "shape", shape_json(&spec->shape),
                  "fingerprint", fingerprint, "data", data_json(spec), "slices", slices_json(spec), "reduce",
                  reduce_json(&spec->tree), "lease", spec->lease, "keep_rounds", (json_int_t)spec->keep_rounds,
                  "workers", (json_int_t)spec->workers, "created", spec->created, "settings", spec->settings);
    bool good = json != NULL;
    if (good && spec->ranged.ranges > 0)
        good = json_object_set_new(json, "ranges", ranges_json(spec)) == 0;
    if (good && spec->codes > 0)
        good = json_object_set_new(json, "code", code_json(spec)) == 0;
    if (good && (spec->from || spec->puts))
        good =
            json_object_set_new(json, "blobs", json_pack("{s:s?, s:b}", "from", spec->from, "puts", spec->puts)) == 0;
    if (!good) {
        json_decref(json);
        json = NULL;
    }
    return json;
}

int job_spec_encode(void **out, size_t *size, job_spec *spec)
{
    base_writer writer = {0};
    json_t *json = spec_json(spec);
    char *text = json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(json);
    *out = NULL;
    if (!text) /* texts are UTF-8 and numbers finite: set-up ensures it */
        return shoal_fail(SHOAL_MEMORY, "job %s: out of memory for its spec", spec->id);
    base_write_text(&writer, text);
    learn_round_write(&writer, spec->first);
    free(text);
    int status = base_writer_take(&writer, out, size);
    if (status == SHOAL_OK)
        base_hash_of(spec->sha256, *out, *size);
    else
        base_free(out);
    return status;
}

/* ---- fetching ---------------------------------------------------------------------------------------------------- */

int job_spec_get(job_spec **out, shoal_store *store, const char *id, int64_t deadline)
{
    shoal_blob blob = {0};
    *out = NULL;
    int status = job_id_check(id);
    if (status == SHOAL_OK)
        status = shoal_store_get_framed(store, job_key_of(id, "spec").text, JOB_KIND_SPEC, &blob, deadline);
    if (status == SHOAL_ABSENT)
        return shoal_fail(SHOAL_ABSENT, "there is no job %s in %s", id, shoal_store_describe(store).name);
    if (status == SHOAL_OK)
        status = job_spec_decode(out, id, blob.data, blob.size);
    shoal_blob_release(&blob);
    return status;
}
