/* Fuzzes opening of IDX files, plain and gzip, and of raw files whose shape the first bytes choose. */
#include "fuzz_support.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char *const types[] = {"u1", ">i2", "float32", "<f8", "b1", ">u8", "nonsense"};
    open_bytes(bytes, size, &(shoal_data_options){.memory = size % 8 ? 1 << 26 : 1});
    if (size >= 4)
        open_bytes(bytes, size,
                   &(shoal_data_options){.rows = bytes[2], .columns = bytes[3], .type = types[bytes[1] % 7]});
    return 0;
}
