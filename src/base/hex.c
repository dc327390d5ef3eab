/* Hexadecimal digits.  See hex.h. */
#include "base/hex.h"

#include <string.h>

void base_hex_write(char *out, const void *bytes, size_t size)
{
    const unsigned char *from = bytes;
    for (size_t i = 0; i < size; i++) {
        *out++ = "0123456789abcdef"[from[i] >> 4];
        *out++ = "0123456789abcdef"[from[i] & 15];
    }
    *out = '\0';
}

static int lower_digit(char letter)
{
    if (letter >= '0' && letter <= '9')
        return letter - '0';
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

bool base_hex_read(void *out, size_t size, const char *text)
{
    unsigned char *to = out;
    for (size_t i = 0; i < size; i++) {
        int high = lower_digit(text[2 * i]), low = high < 0 ? -1 : lower_digit(text[2 * i + 1]);
        if (low < 0)
            return false;
        to[i] = (unsigned char)(high * 16 + low);
    }
    return true;
}

bool base_hex_is(const char *text, size_t digits)
{
    return strspn(text, "0123456789abcdef") == digits && text[digits] == '\0';
}

static int digit(char letter)
{
    return lower_digit(letter >= 'A' && letter <= 'F' ? (char)(letter + ('a' - 'A')) : letter);
}

int base_hex_byte(const char *digits)
{
    int high = digit(digits[0]), low = high < 0 ? -1 : digit(digits[1]);
    return low < 0 ? -1 : high * 16 + low;
}
