/* Fuzzes opening of text files, plain and gzip, with all columns and without some. */
#include "fuzz_support.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    open_bytes(bytes, size, &(shoal_data_options){.memory = size % 8 ? 1 << 26 : 1});
    open_bytes(bytes, size, &(shoal_data_options){.memory = 1 << 26, .drop_columns = size % 2 ? "a" : "2"});
    return 0;
}
