/* What the targets for pictures that are made ready share.  The first byte of an input is the recipe, the others are
 * the file.  A maker that has made (or refused) all inputs before must make of it what a fresh one makes. */
#ifndef FUZZ_PREPARE_H
#define FUZZ_PREPARE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "data/image/image_prepare.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static inline data_image_recipe recipe_of(uint8_t byte)
{
    static const int sides[4][2] = {{8, 8}, {24, 16}, {5, 33}, {40, 1}};
    data_image_recipe recipe = data_image_recipe_default;
    recipe.height = sides[byte & 3][0];
    recipe.width = sides[byte & 3][1];
    recipe.resize = byte & 4 ? DATA_IMAGE_ANTIALIAS : DATA_IMAGE_TF;
    recipe.encode = byte & 8 ? DATA_IMAGE_JPEG : DATA_IMAGE_RAW;
    recipe.huffman = byte & 16 ? DATA_IMAGE_BEST : DATA_IMAGE_FIXED;
    recipe.chroma = byte & 32 ? DATA_IMAGE_420 : DATA_IMAGE_444;
    recipe.orient = byte & 64;
    recipe.room = byte & 128 ? 1000 : 0;
    return recipe;
}

static inline void prepare_input(const data_image_recipe *recipe, const uint8_t *bytes, size_t size)
{
    static data_image_maker *kept;
    data_image_maker *fresh = NULL;
    data_image_item first, again;
    if ((!kept && data_image_maker_new(&kept) < 0) || data_image_maker_new(&fresh) < 0)
        abort();
    int status = data_image_prepare(&first, kept, recipe, bytes, size, "input");
    if (data_image_prepare(&again, fresh, recipe, bytes, size, "input") != status)
        abort();
    if (status < 0 && strncmp(shoal_error(), "input: ", 7) != 0)
        abort();
    if (status == SHOAL_OK && (first.size != again.size || memcmp(first.bytes, again.bytes, first.size) != 0))
        abort();
    data_image_maker_free(&fresh);
}

#endif
