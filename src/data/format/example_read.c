/* Reading tf.train.Example.  See example_read.h.
 *
 * A message is a row of fields, each a tag, number * 8 + type, and its value: a varint (type 0), 8 bytes (1), a length
 * and as many bytes (2), a group (3 to 4), or 4 bytes (5).  An Example holds Features (1), which holds a map (1) from a
 * name (1) to a Feature (2), which holds a list of bytes (1), floats (2) or int64 (3), whose values are field 1. */
#include "example_read.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include <shoal/error.h>

enum { VARINT = 0, FIXED_8 = 1, BYTES = 2, GROUP = 3, GROUP_END = 4, FIXED_4 = 5 };

/* What is left of a message. */
typedef struct message {
    const unsigned char *at, *end;
} message;

typedef struct field {
    uint64_t number;
    int type;
    uint64_t value; /* of a varint */
    message bytes;  /* of all types but varints and groups */
} field;

static const char *const cut_off = "a length leads beyond its end", *const no_varint = "a number has no end",
                         *const no_type = "a field has a type that there is none of",
                         *const no_number = "a field has a number that there is none of",
                         *const deep = "groups lie within each other too deep", *const no_group = "a group has no end",
                         *const odd_floats = "a list of floats is not a whole number of them",
                         *const nul_name = "the name of a feature holds a NUL";

/* Seven bits a byte, the lowest first; bits beyond the 64th are nothing. */
static const char *take_varint(uint64_t *out, message *from)
{
    uint64_t value = 0;
    for (int i = 0; i < 10; i++) {
        if (from->at == from->end)
            return no_varint;
        const unsigned char byte = *from->at++;
        value |= (uint64_t)(byte & 127) << (7 * i);
        if (byte < 128) {
            *out = value;
            return NULL;
        }
    }
    return no_varint;
}

static const char *take_bytes(message *out, message *from, uint64_t size)
{
    if (size > (uint64_t)(from->end - from->at))
        return cut_off;
    *out = (message){from->at, from->at + size};
    from->at += size;
    return NULL;
}

static const char *take_tag(field *out, message *from)
{
    uint64_t tag = 0;
    const char *wrong = take_varint(&tag, from);
    *out = (field){.number = tag >> 3, .type = (int)(tag & 7)};
    return wrong ? wrong : tag > UINT32_MAX || out->number == 0 ? no_number : NULL;
}

/* All of a field but a group. */
static const char *take_plain_value(field *out, message *from)
{
    const char *wrong = NULL;
    switch (out->type) {
    case VARINT: return take_varint(&out->value, from);
    case FIXED_8: return take_bytes(&out->bytes, from, 8);
    case FIXED_4: return take_bytes(&out->bytes, from, 4);
    case BYTES:
        wrong = take_varint(&out->value, from);
        return wrong ? wrong : take_bytes(&out->bytes, from, out->value);
    default: return no_type;
    }
}

/* Nobody writes groups any more, but they may be in what is not known. */
static const char *skip_group(message *from, uint64_t number)
{
    enum { DEPTH_MOST = 100 };
    uint64_t open[DEPTH_MOST] = {number};
    const char *wrong = NULL;
    for (int depth = 1; depth > 0 && !wrong;) {
        field inner;
        if (from->at == from->end)
            return no_group;
        wrong = take_tag(&inner, from);
        if (wrong)
            break;
        if (inner.type == GROUP && depth == DEPTH_MOST)
            wrong = deep;
        else if (inner.type == GROUP)
            open[depth++] = inner.number;
        else if (inner.type == GROUP_END)
            wrong = inner.number == open[--depth] ? NULL : no_group;
        else
            wrong = take_plain_value(&inner, from);
    }
    return wrong;
}

/* The next field; `from` is not at its end. */
static const char *take_field(field *out, message *from)
{
    const char *wrong = take_tag(out, from);
    if (wrong)
        return wrong;
    return out->type == GROUP ? skip_group(from, out->number) : take_plain_value(out, from);
}

/* ---- the values of a feature ------------------------------------------------------------------------------------- */

/* Where they go; what is not asked for is only counted. */
typedef struct values {
    data_feature_kind kind;
    int64_t count, most;
    double *numbers;
    int64_t *integers;
    message *bytes; /* the first one */
} values;

static void put_float(values *out, const unsigned char *from)
{
    uint32_t bits;
    float value;
    memcpy(&bits, from, sizeof bits);
    bits = le32toh(bits);
    memcpy(&value, &bits, sizeof value);
    if (out->numbers && out->count < out->most)
        out->numbers[out->count] = (double)value;
    out->count++;
}

static void put_integer(values *out, uint64_t value)
{
    if (out->numbers && out->count < out->most)
        out->numbers[out->count] = (double)(int64_t)value;
    if (out->integers && out->count < out->most)
        out->integers[out->count] = (int64_t)value;
    out->count++;
}

static const char *walk_floats(values *out, const field *of)
{
    if (of->type == FIXED_4)
        put_float(out, of->bytes.at);
    if (of->type != BYTES)
        return NULL;
    if ((of->bytes.end - of->bytes.at) % 4 != 0)
        return odd_floats;
    for (const unsigned char *at = of->bytes.at; at < of->bytes.end; at += 4)
        put_float(out, at);
    return NULL;
}

static const char *walk_integers(values *out, const field *of)
{
    const char *wrong = NULL;
    message packed = of->bytes;
    if (of->type == VARINT)
        put_integer(out, of->value);
    while (of->type == BYTES && packed.at < packed.end && !wrong) {
        uint64_t value = 0;
        wrong = take_varint(&value, &packed);
        if (!wrong)
            put_integer(out, value);
    }
    return wrong;
}

static const char *walk_list(values *out, message list)
{
    const char *wrong = NULL;
    while (list.at < list.end && !wrong) {
        field value;
        wrong = take_field(&value, &list);
        if (wrong || value.number != 1)
            continue;
        if (out->kind == DATA_FEATURE_FLOATS)
            wrong = walk_floats(out, &value);
        else if (out->kind == DATA_FEATURE_INTEGERS)
            wrong = walk_integers(out, &value);
        else if (value.type == BYTES && out->count++ == 0 && out->bytes)
            *out->bytes = value.bytes;
    }
    return wrong;
}

static const char *walk_feature(values *out, message feature)
{
    const char *wrong = NULL;
    while (feature.at < feature.end && !wrong) {
        field list;
        wrong = take_field(&list, &feature);
        if (wrong || list.type != BYTES || list.number > DATA_FEATURE_INTEGERS)
            continue;
        if (out->kind != (data_feature_kind)list.number)
            out->count = 0;
        out->kind = (data_feature_kind)list.number;
        wrong = walk_list(out, list.bytes);
    }
    return wrong;
}

/* An entry of the map: its name, unless NULL, and the values that it stands for. */
static const char *walk_entry(message *name, values *out, message entry)
{
    const char *wrong = NULL;
    while (entry.at < entry.end && !wrong) {
        field part;
        wrong = take_field(&part, &entry);
        if (wrong || part.type != BYTES)
            continue;
        if (part.number == 1 && name)
            *name = part.bytes;
        else if (part.number == 2)
            wrong = walk_feature(out, part.bytes);
    }
    return wrong;
}

/* Values of an entry that was found to be right. */
static void walk_again(values *out, const data_feature *feature)
{
    (void)walk_entry(NULL, out, (message){feature->entry, feature->entry + feature->entry_bytes});
}

void data_feature_numbers(double *out, int64_t most, const data_feature *feature)
{
    walk_again(&(values){.numbers = out, .most = most}, feature);
}

void data_feature_integers(int64_t *out, int64_t most, const data_feature *feature)
{
    walk_again(&(values){.integers = out, .most = most}, feature);
}

void data_feature_bytes(const unsigned char **out, size_t *size, const data_feature *feature)
{
    message first = {0};
    if (feature->kind == DATA_FEATURE_BYTES) /* lists of another kind may stand before those that count */
        walk_again(&(values){.bytes = &first}, feature);
    *out = first.at;
    *size = (size_t)(first.end - first.at);
}

/* ---- all features ------------------------------------------------------------------------------------------------ */

static int add_feature(data_features *features, message entry, const char **wrong)
{
    if (features->count == features->room) {
        const int64_t room = features->room ? 2 * features->room : 16;
        int status = base_grow(&features->feature, (size_t)features->room, (size_t)room, sizeof *features->feature,
                               "the features of a record");
        if (status < 0)
            return status;
        features->room = room;
    }
    message name = {entry.at, entry.at};
    values found = {0};
    *wrong = walk_entry(&name, &found, entry);
    if (!*wrong && memchr(name.at, 0, (size_t)(name.end - name.at)))
        *wrong = nul_name;
    if (*wrong)
        return SHOAL_INVALID;
    features->feature[features->count++] = (data_feature){.name = (const char *)name.at,
                                                          .name_bytes = (size_t)(name.end - name.at),
                                                          .kind = found.kind,
                                                          .count = found.count,
                                                          .entry = entry.at,
                                                          .entry_bytes = (size_t)(entry.end - entry.at)};
    return SHOAL_OK;
}

int data_feature_compare(const char *name, size_t name_bytes, const char *other, size_t other_bytes)
{
    const int order = memcmp(name, other, name_bytes < other_bytes ? name_bytes : other_bytes);
    return order ? order : (name_bytes > other_bytes) - (name_bytes < other_bytes);
}

/* Entries of one name in the order in which they came. */
static int compare_features(const void *a, const void *b)
{
    const data_feature *x = a, *y = b;
    const int order = data_feature_compare(x->name, x->name_bytes, y->name, y->name_bytes);
    return order ? order : (x->entry > y->entry) - (x->entry < y->entry);
}

static bool same_name(const data_feature *a, const data_feature *b)
{
    return data_feature_compare(a->name, a->name_bytes, b->name, b->name_bytes) == 0;
}

static void sort_features(data_features *features)
{
    int64_t kept = 0;
    if (features->count > 0)
        qsort(features->feature, (size_t)features->count, sizeof *features->feature, compare_features);
    for (int64_t i = 0; i < features->count; i++) {
        const bool again = i + 1 < features->count && same_name(&features->feature[i], &features->feature[i + 1]);
        if (!again)
            features->feature[kept++] = features->feature[i];
    }
    features->count = kept;
}

int data_example_read(data_features *features, const void *bytes, size_t size, const char **wrong)
{
    message example = {bytes, (const unsigned char *)bytes + size};
    int status = SHOAL_OK;
    *wrong = NULL;
    features->count = 0;
    features->has_lists = false;
    while (example.at < example.end && status == SHOAL_OK && !*wrong) {
        field part;
        *wrong = take_field(&part, &example);
        if (*wrong || part.type != BYTES)
            continue;
        features->has_lists |= part.number == 2;
        while (part.number == 1 && part.bytes.at < part.bytes.end && status == SHOAL_OK && !*wrong) {
            field entry;
            *wrong = take_field(&entry, &part.bytes);
            if (!*wrong && entry.number == 1 && entry.type == BYTES)
                status = add_feature(features, entry.bytes, wrong);
        }
    }
    if (status == SHOAL_OK && *wrong)
        status = SHOAL_INVALID;
    if (status == SHOAL_OK)
        sort_features(features);
    return status;
}

void data_features_release(data_features *features)
{
    base_free(&features->feature);
    *features = (data_features){0};
}

const data_feature *data_feature_find(const data_features *features, const char *name)
{
    int64_t low = 0, high = features->count;
    const size_t bytes = strlen(name);
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const data_feature *here = &features->feature[middle];
        const int order = data_feature_compare(here->name, here->name_bytes, name, bytes);
        if (order == 0)
            return here;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
