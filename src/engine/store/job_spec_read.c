/* Reading specs, which come from a store that others write to: nothing in them is trusted.
 *
 * A field that is not known is refused like one that is missing: its writer meant something by it, and a worker that
 * does not know what may compute something else.  So versions that add a field increase the format's number. */
#include "engine/store/job_spec_internal.h"

#include <math.h>
#include <string.h>

#include <jansson.h>

#include "base/bytes.h"
#include "base/hex.h"
#include "base/memory.h"
#include "engine/store/job_code.h"
#include "learn/pick.h"
#include "learn/wire.h"

/* That of 65536 slices with all hashes has 9 MB, and one comma per slice.  Every comma may become a value of forty
 * bytes when it is read. */
enum { TEXT_MOST = 1 << 20, FIELDS_MOST = 20, JSON_MOST = 16 << 20, COMMAS_MOST = SHOAL_JOB_SLICES_MOST + (1 << 18) };

/* One JSON object whose fields are taken one by one.  The first failure stays; after it all fields read as zero. */
typedef struct fields {
    const char *id;    /* of the job, for messages */
    const char *where; /* "" or "shape.": the prefix of field names in messages */
    json_t *object;
    const char *taken[FIELDS_MOST]; /* names of those that were there */
    size_t count;
    int status;
} fields;

static void fail_field(fields *in, const char *name, const char *what)
{
    if (in->status == SHOAL_OK)
        in->status = shoal_fail(SHOAL_BROKEN, "job %s: the spec's field %s%s %s", in->id, in->where, name, what);
}

static json_t *take_member(fields *in, const char *name)
{
    json_t *value = in->status == SHOAL_OK ? json_object_get(in->object, name) : NULL;
    if (value && in->count == FIELDS_MOST)
        SHOAL_BUG("a spec with more than %d fields", FIELDS_MOST);
    if (value)
        in->taken[in->count++] = name;
    else
        fail_field(in, name, "is missing");
    return value;
}

static int64_t take_integer(fields *in, const char *name, int64_t least, int64_t most)
{
    json_t *value = take_member(in, name);
    char range[96];
    if (value && json_is_integer(value) && json_integer_value(value) >= least && json_integer_value(value) <= most)
        return json_integer_value(value);
    snprintf(range, sizeof range, "is not a whole number from %lld to %lld", (long long)least, (long long)most);
    fail_field(in, name, range);
    return least;
}

static double take_real(fields *in, const char *name, double least, double most)
{
    json_t *value = take_member(in, name);
    char range[96];
    if (value && json_is_number(value) && json_number_value(value) >= least && json_number_value(value) <= most)
        return json_number_value(value);
    snprintf(range, sizeof range, "is not a number from %g to %g", least, most);
    fail_field(in, name, range);
    return least;
}

static bool take_truth(fields *in, const char *name)
{
    json_t *value = take_member(in, name);
    if (value && !json_is_boolean(value))
        fail_field(in, name, "is neither true nor false");
    return json_is_true(value);
}

/* A text of 1 to `most` bytes that belongs to the object, or "". */
static const char *take_text(fields *in, const char *name, size_t most)
{
    json_t *value = take_member(in, name);
    if (json_is_string(value) && json_string_length(value) > 0 && json_string_length(value) <= most)
        return json_string_value(value);
    fail_field(in, name, "is not a text, is empty, or is too long");
    return "";
}

static void take_copy(fields *in, char **out, const char *name)
{
    const char *text = take_text(in, name, TEXT_MOST);
    if (in->status == SHOAL_OK)
        in->status = base_copy_text(out, text);
}

static void take_short(fields *in, char *out, size_t room, const char *name)
{
    snprintf(out, room, "%s", take_text(in, name, room - 1));
}

static fields take_object(fields *in, const char *name, const char *where)
{
    json_t *object = take_member(in, name);
    if (object && !json_is_object(object))
        fail_field(in, name, "is not an object");
    return (fields){.id = in->id, .where = where, .object = object, .status = in->status};
}

static bool was_taken(const fields *in, const char *name)
{
    for (size_t i = 0; i < in->count; i++)
        if (strcmp(in->taken[i], name) == 0)
            return true;
    return false;
}

/* No field may be left.  Passes the status of an inner object to the outer one. */
static void end_object(fields *in, fields *around)
{
    const char *name;
    json_t *value;
    json_object_foreach(in->object, name, value) if (!was_taken(in, name)) fail_field(in, name, "is not known");
    if (around && around->status == SHOAL_OK)
        around->status = in->status;
}

/* ---- parts of a spec --------------------------------------------------------------------------------------------- */

static void read_shape(job_spec *spec, fields *all)
{
    shoal_shape *shape = &spec->shape;
    fields in = take_object(all, "shape", "shape.");
    size_t bytes;
    shape->rows = take_integer(&in, "rows", 1, INT64_MAX);
    shape->columns = take_integer(&in, "columns", 1, INT64_MAX);
    const char *type = take_text(&in, "type", 16);
    shape->weighted = take_truth(&in, "weighted");
    int64_t most = shape->rows < SHOAL_GRAIN_ROWS_MOST ? shape->rows : SHOAL_GRAIN_ROWS_MOST;
    shape->rows_per_grain = take_integer(&in, "rows_per_grain", 1, most);
    shape->grains = take_integer(&in, "grains", 1, UINT32_MAX);
    shape->strata =
        take_integer(&in, "strata", 0, shape->grains < SHOAL_STRATA_MOST ? shape->grains : SHOAL_STRATA_MOST);
    shape->held = take_integer(&in, "held", 0, shape->strata ? shape->rows - 1 : 0);
    while (shape->type < SHOAL_TYPES && strcmp(type, shoal_type_name(shape->type)) != 0)
        shape->type++;
    if (shape->type == SHOAL_TYPES) {
        fail_field(&in, "type", "is not known");
        shape->type = SHOAL_FLOAT32;
    }
    if (!base_multiply(&bytes, (size_t)shape->rows, (size_t)shape->columns) ||
        !base_multiply(&bytes, bytes, sizeof(double)) || bytes > INT64_MAX)
        fail_field(&in, "rows", "makes more bytes than 63 bits can count");
    if ((shape->rows - 1) / shape->rows_per_grain + 1 != shape->grains)
        fail_field(&in, "grains", "does not go with the rows");
    end_object(&in, all);
}

static void read_data(job_spec *spec, fields *all)
{
    fields in = take_object(all, "data", "data.");
    int kind = 0;
    take_copy(&in, &spec->data_name, "name");
    take_copy(&in, &spec->place, "place");
    const char *name = take_text(&in, "kind", 16);
    while (kind < 4 && strcmp(name, job_source_names[kind]) != 0)
        kind++;
    if (kind == 4)
        fail_field(&in, "kind", "is not known");
    spec->source = kind < 4 ? (job_source_kind)kind : JOB_UPLOADED;
    if (in.status == SHOAL_OK && spec->source == JOB_RANGES) {
        take_short(&in, spec->etag.text, sizeof spec->etag.text, "etag");
        if (json_object_get(in.object, "store"))
            take_copy(&in, &spec->store_url, "store");
    }
    if (in.status == SHOAL_OK && (spec->source == JOB_RANGES || spec->source == JOB_FILE)) {
        int64_t bytes = spec->shape.rows * spec->shape.columns * (int64_t)shoal_type_size(spec->shape.type);
        spec->offset = take_integer(&in, "offset", 0, INT64_MAX);
        spec->size = take_integer(&in, "size", 1, INT64_MAX);
        if (spec->offset > spec->size || bytes > spec->size - spec->offset)
            fail_field(&in, "size", "is too small for the rows");
    }
    if (in.status == SHOAL_OK && spec->source == JOB_FILE && spec->place[0] != '/')
        fail_field(&in, "place", "is not an absolute path");
    /* Nothing else must be opened as if it were an address of generated rows. */
    if (in.status == SHOAL_OK && spec->source == JOB_GENERATED && strncmp(spec->place, "gen:", 4) != 0)
        fail_field(&in, "place", "is not a gen: address");
    end_object(&in, all);
}

static void read_hashes(job_spec *spec, fields *in, const char *name, size_t offset)
{
    json_t *value = take_member(in, name);
    const char *text = json_string_value(value);
    if (!text || json_string_length(value) != (size_t)spec->slices * 2 * BASE_HASH_SIZE) {
        fail_field(in, name, "does not have 64 digits per slice");
        return;
    }
    for (int64_t i = 0; i < spec->slices; i++)
        if (!base_hex_read((char *)&spec->slice[i] + offset, BASE_HASH_SIZE, text + i * 2 * BASE_HASH_SIZE)) {
            fail_field(in, name, "contains a non-hex character");
            return;
        }
}

static void read_grains(job_spec *spec, fields *in)
{
    json_t *grains = take_member(in, "grains");
    size_t count = json_array_size(grains);
    int64_t first = 0;
    if (count < 1 || count > SHOAL_JOB_SLICES_MOST) {
        fail_field(in, "grains", "is not a list of 1 to 65536 numbers");
        return;
    }
    in->status = base_alloc(&spec->slice, count, sizeof *spec->slice, "the slices of a job");
    for (size_t i = 0; i < count && in->status == SHOAL_OK; i++) {
        json_t *value = json_array_get(grains, i);
        int64_t number = json_is_integer(value) ? json_integer_value(value) : 0;
        if (number < 1 || number > spec->shape.grains - first)
            fail_field(in, "grains", "has a slice without grains, or with more than there are");
        else if (spec->shape.strata && learn_stratum_from(&spec->shape, first + number) < 0)
            fail_field(in, "grains", "has a slice that ends within a stratum");
        spec->slice[i] = (job_slice){.first_grain = first, .grains = number};
        first += number;
    }
    spec->slices = (int64_t)count;
    if (first != spec->shape.grains)
        fail_field(in, "grains", "does not cover all grains");
}

static void read_code(job_spec *spec, fields *all)
{
    json_t *list = take_member(all, "code");
    size_t count = json_array_size(list);
    if (count < 1 || count > SHOAL_CODE_MOST) {
        fail_field(all, "code", "is not a list of 1 to 64 files");
        return;
    }
    all->status = base_alloc(&spec->code, count, sizeof *spec->code, "the code of a job");
    for (size_t i = 0; i < count && all->status == SHOAL_OK; i++) {
        job_code *code = &spec->code[spec->codes++];
        fields in = {.id = all->id, .where = "code.", .object = json_array_get(list, i), .status = all->status};
        take_copy(&in, &code->name, "name");
        code->size = take_integer(&in, "size", 0, JOB_CODE_BYTES_MOST);
        const char *hex = take_text(&in, "sha256", 2 * BASE_HASH_SIZE);
        if (in.status == SHOAL_OK && !job_code_name_is_good(code->name))
            fail_field(&in, "name", "is not the name of a file that a job may bring");
        if (in.status == SHOAL_OK &&
            (strlen(hex) != 2 * BASE_HASH_SIZE || !base_hex_read(code->hash, BASE_HASH_SIZE, hex)))
            fail_field(&in, "sha256", "is not a SHA-256");
        end_object(&in, all);
    }
}

/* Folders are absolute, so that they mean the same to every worker. */
static void read_blobs(job_spec *spec, fields *all)
{
    fields in = take_object(all, "blobs", "blobs.");
    json_t *from = take_member(&in, "from");
    const char *text = json_string_value(from);
    spec->puts = take_truth(&in, "puts");
    if (in.status == SHOAL_OK && !json_is_null(from) && (!text || json_string_length(from) > TEXT_MOST))
        fail_field(&in, "from", "is not a text, or is too long");
    if (in.status == SHOAL_OK && text && *text && *text != '/' && shoal_store_url_check(text) < 0)
        fail_field(&in, "from", "is neither an absolute path nor the URL of a store");
    if (in.status == SHOAL_OK && text)
        in.status = base_copy_text(&spec->from, text);
    end_object(&in, all);
}

static void read_slices(job_spec *spec, fields *all)
{
    fields in = take_object(all, "slices", "slices.");
    read_grains(spec, &in);
    if (in.status == SHOAL_OK && job_source_is_hashed(spec->source))
        read_hashes(spec, &in, "hashes", offsetof(job_slice, hash));
    if (in.status == SHOAL_OK && spec->shape.weighted)
        read_hashes(spec, &in, "weights", offsetof(job_slice, weights_hash));
    end_object(&in, all);
}

static void read_reduce(job_spec *spec, fields *all)
{
    json_t *list = take_member(all, "reduce");
    size_t count = json_array_size(list);
    int64_t fan[JOB_LEVELS_MOST];
    bool good = count >= 1 && count < JOB_LEVELS_MOST;
    for (size_t i = 0; i < count && good; i++) {
        json_t *value = json_array_get(list, i);
        fan[i] = json_is_integer(value) ? json_integer_value(value) : 0;
    }
    if (!good || !job_tree_make(&spec->tree, spec->slices, (int)count + 1, fan))
        fail_field(all, "reduce", "does not make a tree of the slices");
}

static void read_ranges(job_spec *spec, fields *all)
{
    json_int_t ranges = 0, bytes = 0;
    json_t *pair = take_member(all, "ranges");
    if (!json_is_array(pair) || json_unpack(pair, "[I, I!]", &ranges, &bytes) < 0 || bytes < 1 ||
        !job_tree_cut(&spec->ranged, &spec->tree, ranges))
        fail_field(all, "ranges", "does not cut the tree");
    spec->range_bytes = bytes;
}

static void read_fingerprint(job_spec *spec, fields *all)
{
    unsigned char bytes[8];
    const char *text = take_text(all, "fingerprint", 16);
    if (strlen(text) != 16 || !base_hex_read(bytes, sizeof bytes, text)) {
        fail_field(all, "fingerprint", "does not have 16 digits");
        return;
    }
    for (size_t i = 0; i < sizeof bytes; i++)
        spec->fingerprint = spec->fingerprint << 8 | bytes[i];
}

/* Checked first: only this is the same in newer versions. */
static void read_format(job_spec *spec, fields *all)
{
    json_t *format = json_object_get(all->object, "format");
    take_short(all, spec->version, sizeof spec->version, "version");
    if (all->status == SHOAL_OK && json_is_integer(format) && json_integer_value(format) > JOB_FORMAT)
        all->status =
            shoal_fail(SHOAL_INVALID, "job %s was written by a newer shoal (format %lld, version %s): update this one",
                       all->id, (long long)json_integer_value(format), spec->version);
    take_integer(all, "format", JOB_FORMAT, JOB_FORMAT);
}

static int read_json(job_spec *spec, const char *id, json_t *json)
{
    fields all = {.id = id, .where = "", .object = json};
    read_format(spec, &all);
    take_short(&all, spec->id, sizeof spec->id, "id");
    if (all.status == SHOAL_OK && strcmp(spec->id, id) != 0)
        all.status = shoal_fail(SHOAL_BROKEN, "job %s: the spec belongs to job %s", id, spec->id);
    take_short(&all, spec->algorithm, sizeof spec->algorithm, "algorithm");
    read_fingerprint(spec, &all);
    if (all.status == SHOAL_OK)
        read_shape(spec, &all);
    if (all.status == SHOAL_OK)
        read_data(spec, &all);
    if (all.status == SHOAL_OK)
        read_slices(spec, &all);
    if (all.status == SHOAL_OK)
        read_reduce(spec, &all);
    if (all.status == SHOAL_OK && json_object_get(json, "ranges"))
        read_ranges(spec, &all);
    if (all.status == SHOAL_OK && json_object_get(all.object, "code"))
        read_code(spec, &all);
    if (all.status == SHOAL_OK && json_object_get(all.object, "blobs"))
        read_blobs(spec, &all);
    spec->lease = take_real(&all, "lease", SHOAL_JOB_LEASE_LEAST, SHOAL_JOB_LEASE_MOST);
    spec->keep_rounds = take_integer(&all, "keep_rounds", 0, SHOAL_JOB_KEEP_ROUNDS_MOST);
    spec->workers = take_integer(&all, "workers", 0, SHOAL_JOB_SLOTS_MOST);
    spec->created = take_real(&all, "created", 0, 1e15);
    json_t *settings = take_member(&all, "settings");
    if (settings && !json_is_null(settings) && !json_is_string(settings))
        fail_field(&all, "settings", "is not a text");
    if (all.status == SHOAL_OK && json_is_string(settings))
        all.status = base_copy_text(&spec->settings, json_string_value(settings));
    end_object(&all, NULL);
    return all.status;
}

static int read_first(job_spec *spec, base_reader *reader)
{
    int status = learn_round_read(&spec->first, reader);
    if (status == SHOAL_MEMORY)
        return status;
    if (status < 0)
        return shoal_fail(status, "job %s: the spec's round 0: %s", spec->id, shoal_error());
    if (spec->first->number != 0)
        return shoal_fail(SHOAL_BROKEN, "job %s: the spec's first round has number %lld", spec->id,
                          (long long)spec->first->number);
    if (!base_reader_done(reader))
        return shoal_fail(SHOAL_BROKEN, "job %s: the spec has extra bytes at its end", spec->id);
    return SHOAL_OK;
}

static size_t count_commas(const char *text, size_t length)
{
    size_t commas = 0;
    for (size_t i = 0; i < length; i++)
        commas += text[i] == ',';
    return commas;
}

int job_spec_decode(job_spec **out, const char *id, const void *bytes, size_t size)
{
    job_spec *spec = NULL;
    base_reader reader = base_reader_of(bytes, size);
    size_t length = base_read_u32(&reader);
    const char *text = base_read_bytes(&reader, length);
    *out = NULL;
    if (reader.bad)
        return shoal_fail(SHOAL_BROKEN, "job %s: the spec is cut short", id);
    if (length > JSON_MOST || count_commas(text, length) > COMMAS_MOST)
        return shoal_fail(SHOAL_BROKEN, "job %s: the spec's JSON is too large", id);
    json_error_t error;
    json_t *json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    int status = SHOAL_OK;
    if (!json && json_error_code(&error) == json_error_out_of_memory)
        status = shoal_fail(SHOAL_MEMORY, "job %s: out of memory for its spec", id);
    else if (!json_is_object(json))
        status = shoal_fail(SHOAL_BROKEN, "job %s: the spec is not a JSON object", id);
    if (status == SHOAL_OK)
        status = base_alloc(&spec, 1, sizeof *spec, "a job's spec");
    if (status == SHOAL_OK)
        status = read_json(spec, id, json);
    if (status == SHOAL_OK)
        status = read_first(spec, &reader);
    if (status == SHOAL_OK) {
        base_hash_of(spec->sha256, bytes, size);
        *out = spec;
        spec = NULL;
    }
    json_decref(json);
    job_spec_free(&spec);
    return status;
}
