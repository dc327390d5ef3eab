/* Fuzzes what is read of the headers of an answer: values, dates, ages, how long to wait. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char *const names[] = {"etag", "date", "content-range", "x-ms-error-code", "retry-after", ""};
    char *text = NULL, *encoded = NULL, buffer[40];
    store_attempt attempt = {0};
    if (base_copy_text_n(&text, (const char *)bytes, size) < 0)
        return 0;
    const http_request request = {.status = 503, .headers = text};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t room = 1 + size % sizeof buffer;
        const char *value = http_header(&request, names[i], buffer, room);
        if (value && (strlen(value) >= room || strpbrk(value, "\r\n")))
            abort();
    }
    double age = http_age(&request), wait = http_retry_after(&request);
    if (!(age >= 0 || age == -1) || !(wait >= 0 && wait <= 3600) || http_date(text) < -1)
        abort();
    if (http_passing(&request, &attempt) != SHOAL_UNKNOWN || attempt.cause != SHOAL_CAUSE_THROTTLED)
        abort();
    if (http_encode(&encoded, text, size % 2) == SHOAL_OK && strspn(encoded, "abcdefghijklmnopqrstuvwxyz"
                                                                             "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                                                             "-._~%/") != strlen(encoded))
        abort();
    base_free(&encoded);
    base_free(&text);
    return 0;
}
