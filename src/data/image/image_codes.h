/* The shortest Huffman tables for a JPEG that was written with others: its codes are counted, which is faster than what
 * libjpeg does for them. */
#ifndef DATA_IMAGE_CODES_H
#define DATA_IMAGE_CODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image_huffman.h"

typedef struct data_huffman_tallies {
    int64_t dc[2][256], ac[2][256]; /* of luminance and chrominance */
} data_huffman_tallies;

/* Adds the codes of a baseline JPEG of one scan, which was written with these tables: `units` units of so many blocks
 * of luminance and two of chrominance.  Changes its bytes.  False when there are not as many codes. */
bool data_huffman_count(data_huffman_tallies *tallies, const data_huffman_set *tables, unsigned char *bytes,
                        size_t size, int64_t units, int luminance);

/* The tables for such tallies, as ITU T.81, K.2 has them: of equal counts the greatest symbol's is the least. */
void data_huffman_shortest(data_huffman_set *out, const data_huffman_tallies *tallies);

#endif
