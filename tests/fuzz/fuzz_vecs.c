/* Fuzzes rows as FAISS keeps them, of each kind, decoded into memory and into a temporary file. */
#include "fuzz_support.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char *const types[] = {"fvecs", "bvecs", "ivecs"};
    open_bytes(bytes, size, &(shoal_data_options){.type = types[size % 3], .memory = size % 8 ? 1 << 26 : 1});
    return 0;
}
