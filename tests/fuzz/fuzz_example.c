/* Any bytes as a tf.train.Example: read or refused with a reason, its features in order, and no value outside. */
#include <stdlib.h>
#include <string.h>

#include "data/format/example_read.h"
#include <shoal/error.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void read_values(const data_feature *feature)
{
    enum { MOST = 16 };
    double numbers[MOST];
    int64_t integers[MOST];
    const unsigned char *first;
    size_t size;
    data_feature_numbers(numbers, MOST, feature);
    data_feature_integers(integers, MOST, feature);
    data_feature_bytes(&first, &size, feature);
    volatile unsigned char sum = 0;
    for (size_t i = 0; i < size; i++)
        sum = (unsigned char)(sum ^ first[i]);
    if (feature->kind != DATA_FEATURE_BYTES && first)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    data_features features = {0};
    const char *wrong = NULL;
    int status = data_example_read(&features, bytes, size, &wrong);
    if (status != SHOAL_OK && !(status == SHOAL_INVALID && wrong))
        abort();
    for (int64_t i = 0; i < features.count && status == SHOAL_OK; i++) {
        const data_feature *here = &features.feature[i];
        read_values(here);
        if (i > 0 && data_feature_compare(here[-1].name, here[-1].name_bytes, here->name, here->name_bytes) >= 0)
            abort();
    }
    data_features_release(&features);
    return 0;
}
