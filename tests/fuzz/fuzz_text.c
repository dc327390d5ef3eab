/* Fuzzes opening of text files, plain and gzip, with all columns, without some, and with words in one. */
#include "fuzz_support.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    open_bytes(bytes, size, &(shoal_data_options){.memory = size % 8 ? 1 << 26 : 1});
    open_bytes(bytes, size, &(shoal_data_options){.memory = 1 << 26, .drop_columns = size % 2 ? "a" : "2"});
    open_bytes(bytes, size,
               &(shoal_data_options){.memory = 1 << 26,
                                     .header = (int)(size % 3),
                                     .keep_columns = size % 5 ? NULL : "2,a,-1",
                                     .target = size % 7 ? "1" : "",
                                     .missing = (int)(size % 4)});
    return 0;
}
