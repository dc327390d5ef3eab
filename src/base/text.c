/* What of a text can be shown.  See text.h.
 *
 * Besides the control characters of ASCII these are refused: C1, which some terminals obey as they do ESC (U+009B
 * begins a command), the separators of lines and paragraphs, the marks that turn the direction of what follows, and
 * U+FFFE and U+FFFF, which no text has and XML refuses. */
#include "base/text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the UTF-8 character at the start, 0 when there is none; RFC 3629: no surrogates, nothing longer than need
 * be. */
static size_t decode(uint32_t *out, const unsigned char *text)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    size_t more = text[0] < 0x80 ? 0 : text[0] >> 5 == 6 ? 1 : text[0] >> 4 == 14 ? 2 : text[0] >> 3 == 30 ? 3 : 4;
    if (more == 4)
        return 0;
    *out = more == 0 ? text[0] : text[0] & (0x3fu >> more);
    for (size_t i = 1; i <= more; i++) {
        if (text[i] >> 6 != 2)
            return 0;
        *out = *out << 6 | (text[i] & 0x3f);
    }
    return *out < least[more] || *out > 0x10ffff || (*out >= 0xd800 && *out < 0xe000) ? 0 : more + 1;
}

size_t base_text_next(bool *plain, const char *text)
{
    uint32_t letter = 0;
    size_t length = decode(&letter, (const unsigned char *)text);
    bool control = letter < 0x20 || (letter >= 0x7f && letter < 0xa0);
    bool turns = letter == 0x61c || letter == 0x200e || letter == 0x200f || (letter >= 0x2028 && letter <= 0x202e) ||
                 (letter >= 0x2066 && letter <= 0x2069);
    *plain = length > 0 && !control && !turns && (letter & 0xfffe) != 0xfffe;
    return length > 0 ? length : 1;
}

size_t base_text_letter(uint32_t *out, const char *text)
{
    size_t length = decode(out, (const unsigned char *)text);
    if (length > 0)
        return length;
    *out = 0xdc00u + (unsigned char)*text;
    return 1;
}

void base_text_clean(char *text)
{
    char *to = text;
    while (*text) {
        bool plain = false;
        size_t length = base_text_next(&plain, text);
        if (plain)
            memmove(to, text, length);
        else
            *to = '?';
        to += plain ? length : 1;
        text += length;
    }
    *to = '\0';
}

bool base_text_is_clean(const char *text)
{
    bool plain = true;
    while (*text && plain)
        text += base_text_next(&plain, text);
    return plain;
}

void base_format_count(char *out, size_t size, int64_t count)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)count), at = 0;
    for (int i = 0; i < length && (size_t)at + 2 < size; i++) {
        if (i > 0 && digits[i - 1] != '-' && (length - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
}

bool base_text_ends(const char *text, const char *ending)
{
    size_t length = strlen(text), end = strlen(ending);
    return length > end && strcmp(text + length - end, ending) == 0;
}

const char *base_plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

void base_format_bytes(char *out, size_t size, double bytes)
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    int unit = -1;
    for (; bytes >= 999.5 && unit < 5; unit++)
        bytes /= 1000;
    if (unit < 0)
        snprintf(out, size, "%.0f byte%s", bytes, bytes == 1 ? "" : "s");
    else
        snprintf(out, size, bytes < 99.95 ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}
