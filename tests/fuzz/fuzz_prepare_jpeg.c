/* Any bytes as a JPEG that is resized while it is decoded. */
#include "fuzz_prepare.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size == 0)
        return 0;
    data_image_recipe recipe = recipe_of(bytes[0]);
    recipe.orient = false;
    prepare_input(&recipe, bytes + 1, size - 1);
    return 0;
}
