/* The types of values: their names, sizes, spellings in files, and conversion to float64. */
#include "data_internal.h"

#include <fenv.h>
#include <string.h>

#include "base/pool.h"

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NATIVE_MARK "<"
#else
#define NATIVE_MARK ">"
#endif

static const struct type_row {
    const char *name;
    const char *descr; /* as .npy headers spell it */
    size_t size;
} types[SHOAL_TYPES] = {
    [SHOAL_FLOAT32] = {"float32", NATIVE_MARK "f4", 4},
    [SHOAL_FLOAT64] = {"float64", NATIVE_MARK "f8", 8},
    [SHOAL_INT8] = {"int8", "|i1", 1},
    [SHOAL_INT16] = {"int16", NATIVE_MARK "i2", 2},
    [SHOAL_INT32] = {"int32", NATIVE_MARK "i4", 4},
    [SHOAL_INT64] = {"int64", NATIVE_MARK "i8", 8},
    [SHOAL_UINT8] = {"uint8", "|u1", 1},
    [SHOAL_UINT16] = {"uint16", NATIVE_MARK "u2", 2},
    [SHOAL_UINT32] = {"uint32", NATIVE_MARK "u4", 4},
    [SHOAL_UINT64] = {"uint64", NATIVE_MARK "u8", 8},
    [SHOAL_BOOL] = {"bool", "|b1", 1},
};

static const struct type_row *type_row(shoal_type type)
{
    if ((unsigned)type >= SHOAL_TYPES)
        SHOAL_BUG("type %d", (int)type);
    return &types[type];
}

size_t shoal_type_size(shoal_type type)
{
    return type_row(type)->size;
}

const char *shoal_type_name(shoal_type type)
{
    return type_row(type)->name;
}

const char *data_type_descr(shoal_type type)
{
    return type_row(type)->descr;
}

static bool is_text(const char *text, size_t length, const char *expected)
{
    return strlen(expected) == length && memcmp(text, expected, length) == 0;
}

bool data_type_parse(shoal_type *type, bool *swapped, const char *text, size_t length)
{
    char mark = length > 0 && strchr("<>=|", text[0]) ? text[0] : '=';
    size_t marked = length > 0 && text[0] == mark;
    for (int i = 0; i < SHOAL_TYPES; i++) {
        bool short_name = is_text(text + marked, length - marked, types[i].descr + 1);
        if (!short_name && !(marked == 0 && is_text(text, length, types[i].name)))
            continue;
        if (mark == '|' && types[i].size > 1)
            return false; /* "no byte order" makes sense for single bytes only */
        *type = (shoal_type)i;
        *swapped = types[i].size > 1 && mark != '=' && mark != NATIVE_MARK[0];
        return true;
    }
    return false;
}

int shoal_type_parse(shoal_type *out, const char *name)
{
    bool swapped;
    shoal_type type;
    if (!data_type_parse(&type, &swapped, name, strlen(name)))
        return shoal_fail(SHOAL_USAGE,
                          "\"%s\" is not a type; use float32, float64, int8 to int64, uint8 to uint64 or bool", name);
    if (swapped)
        return shoal_fail(SHOAL_USAGE, "type \"%s\" does not have this machine's byte order", name);
    *out = type;
    return SHOAL_OK;
}

#define CONVERT(c_type)                                                                                                \
    for (int64_t i = 0; i < count; i++)                                                                                \
        out[i] = (double)((const c_type *)values)[i];                                                                  \
    break

void shoal_convert_float64(double *out, const void *values, shoal_type type, int64_t count)
{
    bool rounds = type == SHOAL_INT64 || type == SHOAL_UINT64;
    fenv_t callers;
    if (rounds) {
        fegetenv(&callers);
        base_default_arithmetic();
    }
    switch (type) {
    case SHOAL_FLOAT32: CONVERT(float);
    case SHOAL_FLOAT64: memcpy(out, values, (size_t)count * sizeof *out); break;
    case SHOAL_INT8: CONVERT(int8_t);
    case SHOAL_INT16: CONVERT(int16_t);
    case SHOAL_INT32: CONVERT(int32_t);
    case SHOAL_INT64: CONVERT(int64_t);
    case SHOAL_UINT8: CONVERT(uint8_t);
    case SHOAL_UINT16: CONVERT(uint16_t);
    case SHOAL_UINT32: CONVERT(uint32_t);
    case SHOAL_UINT64: CONVERT(uint64_t);
    case SHOAL_BOOL:
        for (int64_t i = 0; i < count; i++)
            out[i] = ((const uint8_t *)values)[i] != 0;
        break;
    case SHOAL_TYPES: SHOAL_BUG("no type");
    }
    if (rounds)
        fesetenv(&callers);
}
