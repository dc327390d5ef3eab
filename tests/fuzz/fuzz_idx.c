/* Fuzzes opening of IDX files, plain and gzip, decoded into memory and into a temporary file. */
#include "fuzz_support.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    open_bytes(bytes, size, &(shoal_data_options){.memory = size % 8 ? 1 << 26 : 1});
    return 0;
}
