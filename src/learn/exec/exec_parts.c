/* Answers that are joined.  See exec_parts.h. */
#include "learn/exec/exec_parts.h"

#include <math.h>
#include <string.h>

#include <shoal/error.h>

enum { PART_MOST = 1 << 20, PART_LEAST = 64 };

/* Records lie one after another: a multiple of what is aligned. */
int64_t exec_parts_choose(double answer_bytes)
{
    int64_t bytes = (int64_t)fmin(fmax(answer_bytes, PART_LEAST), PART_MOST), unit = sizeof(exec_part);
    return (bytes + unit - 1) / unit * unit;
}

bool exec_parts_good(int64_t part_bytes)
{
    return part_bytes > 0 && part_bytes <= PART_MOST && part_bytes % (int64_t)sizeof(exec_part) == 0;
}

size_t exec_parts_scratch(int64_t part_bytes)
{
    return sizeof(exec_part) + (size_t)part_bytes;
}

shoal_cell exec_parts_cell(int64_t part_bytes)
{
    return (shoal_cell){.name = "parts", .kind = SHOAL_CELL_RECORD, .bytes = exec_parts_scratch(part_bytes)};
}

int exec_parts_add(shoal_partial *partial, int cell, int64_t part_bytes, int64_t grain, int64_t length,
                   const void *bytes, size_t size, const shoal_scratch *scratch)
{
    exec_part *part = scratch->memory;
    size_t most = (size_t)part_bytes;
    const unsigned char *from = bytes;
    shoal_key key = {.high = (uint64_t)grain};
    int status;
    do { /* also when it is empty */
        size_t some = size < most ? size : most;
        *part = (exec_part){.length = length, .bytes = (int64_t)some};
        memcpy(part + 1, from, some);
        memset((unsigned char *)(part + 1) + some, 0, most - some);
        status = shoal_partial_record(partial, cell, key, part);
        key.low++;
        from += some;
        size -= some;
    } while (status == SHOAL_OK && size > 0);
    return status;
}

int64_t exec_parts_length(const shoal_partial *merged, int cell, int64_t part_bytes)
{
    int64_t length = 0;
    for (int64_t i = 0; i < shoal_partial_records(merged, cell); i++) {
        shoal_key key;
        const exec_part *part = shoal_partial_record_at(merged, cell, i, &key);
        if (part->bytes < 0 || part->bytes > part_bytes || part->length < 0 ||
            (key.low == 0 && __builtin_add_overflow(length, part->length, &length)))
            return -1;
    }
    return length;
}

int exec_parts_join(unsigned char *to, size_t size, const shoal_partial *merged, int cell)
{
    for (int64_t i = 0; i < shoal_partial_records(merged, cell); i++) {
        const exec_part *part = shoal_partial_record_at(merged, cell, i, NULL);
        size_t some = (size_t)part->bytes < size ? (size_t)part->bytes : size;
        memcpy(to, part + 1, some);
        to += some;
        size -= some;
    }
    return size == 0 ? SHOAL_OK : shoal_fail(SHOAL_BROKEN, "the answers of exec are not what was written");
}
