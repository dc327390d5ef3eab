/* Several whole numbers in one text.  See counts.h. */
#include "counts.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <shoal/error.h>

#include "option.h"

/* The number in the first `length` characters. */
static bool read_count(int64_t *out, const char *text, size_t length)
{
    char copy[32];
    if (length == 0 || length >= sizeof copy)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return base_parse_count(out, copy);
}

/* "A", "A..B" or "A..B..STEP" in the first `length` characters. */
static bool read_part(int64_t *first, int64_t *last, int64_t *step, const char *text, size_t length)
{
    const char *end = text + length, *dots = strstr(text, "..");
    dots = dots && dots < end ? dots : end;
    *step = 1;
    if (!read_count(first, text, (size_t)(dots - text)))
        return false;
    *last = *first;
    if (dots == end)
        return true;
    const char *next = dots + 2, *more = strstr(next, "..");
    more = more && more < end ? more : end;
    return read_count(last, next, (size_t)(more - next)) &&
           (more == end || read_count(step, more + 2, (size_t)(end - more - 2)));
}

static int fail_downwards(const char *called, int length, const char *part, int64_t first, int64_t last)
{
    return shoal_fail(SHOAL_USAGE, "%s: %.*s runs downwards: write %" PRId64 "..%" PRId64, called, length, part, last,
                      first);
}

static int fail_many(const char *called, const char *text, int64_t first, int64_t last)
{
    const int64_t step = (last - first) / (BASE_COUNTS_MOST - 1) + 1;
    if (strchr(text, ',') || last == first)
        return shoal_fail(SHOAL_USAGE, "%s: %s has more than %d numbers: give fewer", called, text, BASE_COUNTS_MOST);
    return shoal_fail(SHOAL_USAGE,
                      "%s: %s has more than %d numbers: take larger steps, as in %" PRId64 "..%" PRId64 "..%" PRId64,
                      called, text, BASE_COUNTS_MOST, first, last, step);
}

int base_counts_read(base_counts *out, const char *called, const char *text, int64_t least, int64_t most)
{
    *out = (base_counts){0};
    for (const char *part = text;; part++) {
        const size_t length = strcspn(part, ",");
        int64_t first = 0, last = 0, step = 0;
        if (!read_part(&first, &last, &step, part, length))
            return shoal_fail(SHOAL_USAGE, "%s: '%s' is neither a number nor a range or list such as 2..20 or 2,4,8",
                              called, text);
        if (last < first)
            return fail_downwards(called, (int)length, part, first, last);
        if (first < least || last > most)
            return shoal_fail(SHOAL_USAGE, "%s must be at least %" PRId64 " and at most %" PRId64 ", not %s", called,
                              least, most, text);
        if (step < 1)
            return shoal_fail(SHOAL_USAGE, "%s: the step of %.*s must be at least 1", called, (int)length, part);
        if (out->count > 0 && first <= out->value[out->count - 1])
            return shoal_fail(SHOAL_USAGE, "%s: %s: each number must be greater than the one before", called, text);
        for (int64_t value = first; value <= last; value += step) {
            if (out->count == BASE_COUNTS_MOST)
                return fail_many(called, text, first, last);
            out->value[out->count++] = value;
            if (value > INT64_MAX - step)
                break;
        }
        part += length;
        if (!*part)
            return SHOAL_OK;
    }
}
