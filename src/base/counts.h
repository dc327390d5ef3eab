/* Several whole numbers in one text: "2..20", "2..20..3" in steps of 3, "2,4,8", and both: "2..8,12,16". */
#ifndef BASE_COUNTS_H
#define BASE_COUNTS_H

#include <stdint.h>

/* More are refused: what is done for each of them would take forever. */
enum { BASE_COUNTS_MOST = 60 };

typedef struct base_counts {
    int64_t count;
    int64_t value[BASE_COUNTS_MOST]; /* increasing */
} base_counts;

/* Reads them; `called` is the option that they were given to.  SHOAL_USAGE, with a sentence, for anything else, for
 * numbers below `least` or above `most`, and for more than BASE_COUNTS_MOST of them. */
int base_counts_read(base_counts *out, const char *called, const char *text, int64_t least, int64_t most);

#endif
