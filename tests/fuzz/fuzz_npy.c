/* Fuzzes opening of .npy files, decoded into memory and into a temporary file, and headers of arrays in a stream. */
#include "fuzz_support.h"

#include "data/data_internal.h"

/* A header that is whole is as long as its first bytes said. */
static void parse_header(const uint8_t *bytes, size_t size)
{
    data_npy_header header;
    size_t needed = data_npy_header_next(bytes, size);
    if (needed == 0 || needed > size)
        return;
    if (data_npy_header_next(bytes, needed) != needed)
        abort();
    if (data_npy_parse(&header, bytes, needed, "input") == SHOAL_OK && header.rank > DATA_NPY_RANK_MOST)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    parse_header(bytes, size);
    open_bytes(bytes, size, &(shoal_data_options){.memory = size % 8 ? 1 << 26 : 1});
    return 0;
}
