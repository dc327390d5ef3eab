/* Data made from an address instead of a file:
 *
 *     gen:uniform?rows=500000&cols=1000&seed=1&low=0&high=1&type=float32
 *     gen:blobs?rows=200000&cols=128&centres=50&spread=1&seed=1&low=-10&high=10&type=float32
 *
 * Value c of row r is a function of (seed, r, c) alone, from the counter-based generator of base/random.h
 * and arithmetic that is exact or rounded as IEEE 754 says, so any part can be made alone, in any order, by
 * any thread, on any machine, with the same bits.  The meaning of an address never changes. */
#include "data/data_internal.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/option.h"
#include "base/random.h"

static const char scheme[] = "gen:";

/* Draws of a row below this are for its values, those from it on choose its blob. */
static const uint32_t choice_draw = 0x80000000u;
static const uint64_t greatest_columns = (uint64_t)1 << 32;

struct generator {
    const struct recipe *recipe;
    uint64_t rows, columns, seed, centres;
    double low, high, spread;
    shoal_type type;
    uint32_t keys_given; /* one bit for each row of `keys` */
};

/* One kind of generated data. */
struct recipe {
    const char *name;
    double low, high; /* unless the address says otherwise */
    bool has_blobs;   /* whether `centres` and `spread` apply */
    /* Makes values of one row, `count` of them from column `first`, which is a multiple of 4. */
    void (*make)(double *out, const struct generator *generator, uint64_t row, uint64_t first, size_t count);
};

static double scale(const struct generator *generator, double unit)
{
    return generator->low + (generator->high - generator->low) * unit;
}

/* 53 bits a value: two values a draw. */
static void make_fine(double *out, const struct generator *generator, uint64_t row, uint64_t first, size_t count)
{
    for (size_t i = 0; i < count; i += 2) {
        uint32_t bits[4];
        base_random(bits, generator->seed, BASE_FOR_DATA, row, (uint32_t)((first + i) / 2));
        for (size_t j = 0; j < 2 && i + j < count; j++) {
            uint64_t word = bits[2 * j] | (uint64_t)bits[2 * j + 1] << 32;
            out[i + j] = scale(generator, (double)(word >> 11) * 0x1p-53);
        }
    }
}

/* 24 bits a value, as many as a float32 has: four values a draw. */
static void make_coarse(double *out, const struct generator *generator, uint64_t row, uint64_t first, size_t count)
{
    for (size_t i = 0; i < count; i += 4) {
        uint32_t bits[4];
        base_random(bits, generator->seed, BASE_FOR_DATA, row, (uint32_t)((first + i) / 4));
        for (size_t j = 0; j < 4 && i + j < count; j++)
            out[i + j] = scale(generator, (double)(bits[j] >> 8) * 0x1p-24);
    }
}

static void make_uniform(double *out, const struct generator *generator, uint64_t row, uint64_t first, size_t count)
{
    bool fine = generator->type == SHOAL_FLOAT64 || generator->type == SHOAL_INT32 || generator->type == SHOAL_UINT32;
    (fine ? make_fine : make_coarse)(out, generator, row, first, count);
}

static void make_blobs(double *out, const struct generator *generator, uint64_t row, uint64_t first, size_t count)
{
    uint64_t blob = base_random_below(generator->centres, generator->seed, BASE_FOR_DATA, row, choice_draw);
    for (size_t i = 0; i < count; i += 4) {
        uint32_t centre[4], noise[4], draw = (uint32_t)((first + i) / 4);
        base_random(centre, generator->seed, BASE_FOR_CENTRES, blob, draw);
        base_random(noise, generator->seed, BASE_FOR_DATA, row, draw);
        for (size_t j = 0; j < 4 && i + j < count; j++)
            out[i + j] = scale(generator, (double)centre[j] * 0x1p-32) + generator->spread * data_normal(noise[j]);
    }
}

static const struct recipe recipes[] = {
    {.name = "uniform", .low = 0, .high = 1, .make = make_uniform},
    {.name = "blobs", .low = -10, .high = 10, .has_blobs = true, .make = make_blobs},
};

/* Integers are rounded down and held within their type. */
static double to_integer(double value, double least, double greatest)
{
    value = floor(value);
    return value < least ? least : value > greatest ? greatest : value;
}

#define STORE(c_type, least, greatest)                                                                                 \
    for (size_t i = 0; i < count; i++)                                                                                 \
        ((c_type *)out)[i] = (c_type)to_integer(values[i], least, greatest);                                           \
    break

static void store(void *out, shoal_type type, const double *values, size_t count)
{
    switch (type) {
    case SHOAL_FLOAT32:
        for (size_t i = 0; i < count; i++)
            ((float *)out)[i] = (float)values[i];
        break;
    case SHOAL_FLOAT64: memcpy(out, values, count * sizeof *values); break;
    case SHOAL_INT8: STORE(int8_t, INT8_MIN, INT8_MAX);
    case SHOAL_INT16: STORE(int16_t, INT16_MIN, INT16_MAX);
    case SHOAL_INT32: STORE(int32_t, INT32_MIN, INT32_MAX);
    case SHOAL_UINT8: STORE(uint8_t, 0, UINT8_MAX);
    case SHOAL_UINT16: STORE(uint16_t, 0, UINT16_MAX);
    case SHOAL_UINT32: STORE(uint32_t, 0, UINT32_MAX);
    default: SHOAL_BUG("generated %s", shoal_type_name(type));
    }
}

static void make_rows_generated(const shoal_data *data, int64_t first, int64_t count, void *out)
{
    enum { BLOCK = 512 };
    const struct generator *generator = data->state;
    size_t size = shoal_type_size(data->type);
    unsigned char *to = out;
    for (int64_t row = first; row < first + count; row++)
        for (uint64_t column = 0; column < generator->columns; column += BLOCK) {
            double values[BLOCK];
            size_t width = generator->columns - column < BLOCK ? (size_t)(generator->columns - column) : BLOCK;
            generator->recipe->make(values, generator, (uint64_t)row, column, width);
            store(to, data->type, values, width);
            to += width * size;
        }
}

/* Whole numbers may be written with an exponent: rows=5e5. */
static bool parse_whole(uint64_t *out, const char *text)
{
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
            return false;
    if (at > text && *at == '\0') {
        *out = value;
        return true;
    }
    double real;
    const char *end = data_number_parse(&real, text);
    if (!end || *end || !(real >= 0 && real <= 0x1p53) || real != floor(real))
        return false;
    *out = (uint64_t)real;
    return true;
}

static bool parse_real(double *out, const char *text)
{
    const char *end = data_number_parse(out, text);
    return end && *end == '\0' && isfinite(*out);
}

static bool parse_generated_type(shoal_type *out, const char *text)
{
    bool swapped;
    return data_type_parse(out, &swapped, text, strlen(text)) && !swapped && *out != SHOAL_INT64 &&
           *out != SHOAL_UINT64 && *out != SHOAL_BOOL;
}

enum value_kind { WHOLE, REAL, TYPE };
static const struct key {
    const char *name;
    enum value_kind kind;
    size_t offset; /* in struct generator */
    bool for_blobs;
} keys[] = {
    {"rows", WHOLE, offsetof(struct generator, rows), false},
    {"cols", WHOLE, offsetof(struct generator, columns), false},
    {"seed", WHOLE, offsetof(struct generator, seed), false},
    {"low", REAL, offsetof(struct generator, low), false},
    {"high", REAL, offsetof(struct generator, high), false},
    {"type", TYPE, offsetof(struct generator, type), false},
    {"centres", WHOLE, offsetof(struct generator, centres), true},
    {"spread", REAL, offsetof(struct generator, spread), true},
};

static bool set_key(struct generator *generator, const struct key *key, const char *value)
{
    void *field = (char *)generator + key->offset;
    switch (key->kind) {
    case WHOLE: return parse_whole(field, value);
    case REAL: return parse_real(field, value);
    case TYPE: return parse_generated_type(field, value);
    }
    return false;
}

/* Takes one KEY=VALUE, with a NUL in place of what followed it. */
static int take_pair(struct generator *generator, char *pair, const char *path)
{
    static const char *const expected[] = {
        [WHOLE] = "a whole number", [REAL] = "a number", [TYPE] = "float32, float64 or an integer type up to 32 bits"};
    char *equals = strchr(pair, '=');
    if (!equals)
        return shoal_fail(SHOAL_USAGE, "%s: \"%s\" is not key=value", path, pair);
    *equals = '\0';
    const char *name = strcmp(pair, "centers") == 0 ? "centres" : pair;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strcmp(name, keys[i].name) != 0 || (keys[i].for_blobs && !generator->recipe->has_blobs))
            continue;
        if (generator->keys_given & 1u << i)
            return shoal_fail(SHOAL_USAGE, "%s: \"%s\" is given twice", path, pair);
        generator->keys_given |= 1u << i;
        double number = 0;
        if (keys[i].kind == WHOLE && base_parse_real(&number, equals + 1) && number < 0)
            return shoal_fail(SHOAL_USAGE, "%s: %s= must be at least %d, not %s", path, pair,
                              strcmp(pair, "seed") == 0 ? 0 : 1, equals + 1);
        if (!set_key(generator, &keys[i], equals + 1))
            return shoal_fail(SHOAL_USAGE, "%s: %s=%s is not %s", path, pair, equals + 1, expected[keys[i].kind]);
        return SHOAL_OK;
    }
    return shoal_fail(SHOAL_USAGE, "%s: gen:%s has no key \"%s\", only rows, cols, seed, low, high, type%s", path,
                      generator->recipe->name, pair, generator->recipe->has_blobs ? ", centres, spread" : "");
}

static int check_generator(const struct generator *generator, const char *path)
{
    if (generator->rows == 0 || generator->columns == 0)
        return shoal_fail(SHOAL_USAGE, "%s: needs %s=, at least 1", path, generator->rows == 0 ? "rows" : "cols");
    if (generator->columns > greatest_columns)
        return shoal_fail(SHOAL_USAGE, "%s: cols= is at most %llu", path, (unsigned long long)greatest_columns);
    if (generator->low > generator->high || !isfinite(generator->high - generator->low))
        return shoal_fail(SHOAL_USAGE, "%s: low= must not be above high=", path);
    if (generator->centres == 0)
        return shoal_fail(SHOAL_USAGE, "%s: centres= is at least 1", path);
    if (generator->spread < 0)
        return shoal_fail(SHOAL_USAGE, "%s: spread= can't be negative", path);
    return SHOAL_OK;
}

/* `address` is a copy of the path that may be cut into pieces. */
static int parse_address(struct generator *generator, char *address, const char *path)
{
    char *name = address + sizeof scheme - 1, *query = strchr(name, '?');
    int status = SHOAL_OK;
    if (query)
        *query++ = '\0';
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
        if (strcmp(name, recipes[i].name) == 0)
            generator->recipe = &recipes[i];
    if (!generator->recipe)
        return shoal_fail(SHOAL_USAGE, "%s: \"%s\" can't be generated; uniform and blobs can", path, name);
    generator->low = generator->recipe->low;
    generator->high = generator->recipe->high;
    while (status == SHOAL_OK && query && *query) {
        char *next = strchr(query, '&');
        if (next)
            *next++ = '\0';
        status = take_pair(generator, query, path);
        query = next;
    }
    return status < 0 ? status : check_generator(generator, path);
}

static bool recognise_generated(const data_hint *hint)
{
    return strncmp(hint->path, scheme, sizeof scheme - 1) == 0;
}

static int open_generated(shoal_data *data, data_source *source, const shoal_data_options *options)
{
    struct generator *generator = NULL;
    char *address = NULL;
    (void)source, (void)options;
    int status = base_alloc(&generator, 1, sizeof *generator, "a generator");
    if (status < 0)
        return status;
    data->state = generator;
    generator->centres = 3; /* and spread 1, as scikit-learn's make_blobs */
    generator->spread = 1;
    generator->type = SHOAL_FLOAT32;
    status = base_copy_text(&address, data->path);
    if (status == SHOAL_OK)
        status = parse_address(generator, address, data->path);
    if (status == SHOAL_OK)
        status = data_set_shape(data, generator->rows, generator->columns, generator->type);
    if (status == SHOAL_OK)
        status = base_format(&data->detail, "%s values, each made when it is read", generator->recipe->name);
    base_free(&address);
    return status;
}

const struct data_format data_generated = {.name = "generated",
                                           .without_file = true,
                                           .recognise = recognise_generated,
                                           .open = open_generated,
                                           .make_rows = make_rows_generated};
