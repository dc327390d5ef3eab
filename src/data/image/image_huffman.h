/* Huffman tables for photographs, which save counting the codes of each image. */
#ifndef DATA_IMAGE_HUFFMAN_H
#define DATA_IMAGE_HUFFMAN_H

/* How many codes there are of each length, and their values by growing length. */
typedef struct data_huffman_table {
    unsigned char counts[17]; /* [0] is not used */
    unsigned char values[256];
} data_huffman_table;

typedef struct data_huffman_set {
    data_huffman_table dc[2], ac[2]; /* of luminance and chrominance */
} data_huffman_set;

/* Trained at quality 95 and 70. */
extern const data_huffman_set data_huffman_fine, data_huffman_coarse;
enum { DATA_HUFFMAN_FINE_FROM = 86 /* the least quality at which the fine ones are shorter */ };

#endif
