/* In place of src/data/codec/data_xz.c in programs that are built without liblzma. */
#include "data/codec/data_codec.h"

const struct data_coder *const data_coder_xz = (void *)0;
