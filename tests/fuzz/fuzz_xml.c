/* Fuzzes the reader of XML: whatever comes, paths and texts are whole and the end of every row is told. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "store/xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static int check(void *context, const char *path, const char *text, size_t length)
{
    size_t *calls = context;
    if (!*path || strlen(path) >= 512 || (text && text[length]) || (!text && length))
        abort();
    /* Some readers stop. */
    return ++*calls == 100 ? shoal_fail(SHOAL_BROKEN, "enough") : SHOAL_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    size_t calls = 0;
    shoal_fail(SHOAL_OK, "%s", "");
    int status = xml_read((const char *)bytes, size, check, &calls);
    if (status == SHOAL_OK ? calls == 0 : status != SHOAL_BROKEN || !*shoal_error())
        abort();
    return 0;
}
