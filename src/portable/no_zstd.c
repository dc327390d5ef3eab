/* In place of src/data/codec/data_zstd.c in programs that are built without libzstd. */
#include "data/codec/data_codec.h"

const struct data_coder *const data_coder_zstd = (void *)0;
