/* Any bytes as a picture that is decoded as a whole: a PNG, or a JPEG that EXIF says to turn. */
#include "fuzz_prepare.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size == 0)
        return 0;
    data_image_recipe recipe = recipe_of(bytes[0]);
    recipe.orient = true;
    prepare_input(&recipe, bytes + 1, size - 1);
    return 0;
}
