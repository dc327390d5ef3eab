/* Any bytes as a safetensors file: either refused with a message, or every tensor lies within the bytes. */
#include <stdlib.h>
#include <string.h>

#include "data/format/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    data_tensors *file = NULL;
    if (data_safetensors_parse(&file, bytes, size, "input") < 0) {
        if (file || strncmp(shoal_error(), "input", 5) != 0)
            abort();
        return 0;
    }
    uint8_t sum = 0;
    for (int i = 0; i < data_safetensors_count(file); i++) {
        const data_tensor *tensor = data_safetensors_at(file, i);
        const uint8_t *values = tensor->values;
        if (!data_safetensors_find(file, tensor->name) || tensor->bytes > size)
            abort();
        for (size_t j = 0; j < tensor->bytes; j++)
            sum ^= values[j]; /* the address sanitizer sees what lies outside */
    }
    volatile uint8_t keep = sum;
    (void)keep;
    (void)data_safetensors_metadata(file, "learner");
    data_safetensors_close(&file);
    return 0;
}
