/* Huffman tables for photographs: how many codes there are of each length, and their values by growing length. */
#ifndef DATA_IMAGE_HUFFMAN_H
#define DATA_IMAGE_HUFFMAN_H

typedef struct data_huffman_table {
    unsigned char counts[17]; /* [0] is not used */
    unsigned char values[256];
} data_huffman_table;

/* Luminance and chrominance. */
extern const data_huffman_table data_huffman_dc[2], data_huffman_ac[2];

#endif
