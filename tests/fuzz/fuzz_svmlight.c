/* Fuzzes opening of svmlight files, with and without a target.  Indices of six digits and more are left out: what they
 * cost is decided by sizes, which unit tests check. */
#include "fuzz_support.h"

static int has_great_index(const uint8_t *bytes, size_t size)
{
    int digits = 0;
    for (size_t i = 0; i < size; i++) {
        digits = bytes[i] >= '0' && bytes[i] <= '9' ? digits + 1 : 0;
        if (digits > 5)
            return 1;
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (has_great_index(bytes, size))
        return 0;
    open_bytes(bytes, size, &(shoal_data_options){.memory = size % 8 ? 1 << 20 : 1});
    open_bytes(bytes, size,
               &(shoal_data_options){.memory = 1 << 20,
                                     .target = size % 3 ? "" : "label",
                                     .features = (int64_t)(size % 5),
                                     .feature_zero = size % 2,
                                     .keep_columns = size % 4 ? NULL : "f1,-1",
                                     .keep_text = size % 7 == 0});
    return 0;
}
