/* Fuzzes opening of raw files.  The first four bytes choose the type, the rows and the columns, the rest is the
 * file. */
#include "fuzz_support.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char *const types[] = {"u1", ">i2", "float32", "<f8", "b1", ">u8", "int64", ">f4", "nonsense", NULL};
    static const int64_t many[] = {INT64_MAX, INT64_MAX / 8, (int64_t)1 << 32, -1};
    if (size < 4)
        return 0;
    shoal_data_options options = {.rows = bytes[1], .columns = bytes[2], .type = types[bytes[0] % 10]};
    if (bytes[3] & 1)
        options.rows = many[bytes[1] % 4];
    if (bytes[3] & 2)
        options.columns = many[bytes[2] % 4];
    options.memory = bytes[3] & 4 ? 1 : 1 << 26;
    open_bytes(bytes + 4, size - 4, &options);
    return 0;
}
