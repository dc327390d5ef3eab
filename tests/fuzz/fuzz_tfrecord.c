/* Fuzzes opening of TFRecord files.  The input is a row of records, each a length of two bytes and its bytes, which are
 * put into frames with the checksums they need; the last bytes of an input that ends within a record follow as they
 * are.  Every other input is a file as it is. */
#include "fuzz_support.h"

#include "base/bytes.h"
#include "data/format/tfrecord.h"

/* What does not begin as one is for other targets. */
static void open_all(const uint8_t *bytes, size_t size)
{
    if (!data_tfrecord_starts(bytes, size))
        return;
    open_bytes(bytes, size, &(shoal_data_options){.memory = size % 8 ? 1 << 20 : 1, .keep_text = true});
    open_bytes(bytes, size, &(shoal_data_options){.memory = 1 << 20, .keep_text = true, .skip_broken = true});
    open_bytes(bytes, size, &(shoal_data_options){.memory = 1 << 20, .target = size % 3 ? "" : "label"});
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    base_writer file = {0};
    size_t at = 0;
    if (size > 0 && bytes[0] & 1) {
        open_all(bytes + 1, size - 1);
        return 0;
    }
    for (at = 1; at + 2 <= size;) {
        const size_t length = bytes[at] | (size_t)bytes[at + 1] << 8;
        at += 2;
        if (length > size - at)
            break;
        data_tfrecord_write(&file, bytes + at, length);
        at += length;
    }
    if (at < size)
        base_write_bytes(&file, bytes + at, size - at);
    if (file.status == SHOAL_OK && file.size > 0)
        open_all(file.data, file.size);
    base_writer_release(&file);
    return 0;
}
