/* Fuzzes "gen:" addresses; the input is what follows the colon. */
#include "fuzz_support.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char address[1024] = "gen:";
    shoal_data *data = NULL;
    if (size > sizeof address - 5 || memchr(bytes, 0, size))
        return 0;
    memcpy(address + 4, bytes, size);
    if (shoal_data_open(&data, address, NULL) == SHOAL_OK)
        read_all(data, 20000);
    else if (data || shoal_error()[0] == '\0')
        abort();
    return 0;
}
