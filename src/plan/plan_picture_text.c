/* Text in SVG: what comes from tables and command lines can't break out of it. */
#include "plan_picture_internal.h"

#include <stddef.h>
#include <string.h>

/* The bytes of the character that starts here; 0 when it is no UTF-8, a control character, or one that XML lacks. */
static size_t character(const unsigned char *text)
{
    static const uint32_t least[] = {0, 0x20, 0x80, 0x800, 0x10000};
    uint32_t code = text[0];
    size_t length = code < 0x80 ? 1 : code < 0xe0 ? 2 : code < 0xf0 ? 3 : 4;
    if (code >= 0x80 && (code < 0xc2 || code > 0xf4))
        return 0;
    code &= length == 1 ? 0x7f : 0x7fu >> length;
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3f);
    }
    bool refused = code < least[length] || (code >= 0x7f && code < 0xa0) || code > 0x10ffff ||
                   (code >= 0xd800 && code < 0xe000) || (code & 0xfffe) == 0xfffe;
    return refused ? 0 : length;
}

static int characters(const char *text)
{
    int count = 0;
    for (size_t length; *text; text += length ? length : 1) {
        length = character((const unsigned char *)text);
        count++;
    }
    return count;
}

static void write_character(FILE *file, const char *at, size_t length)
{
    switch (length ? *at : '?') {
    case '&': fputs("&amp;", file); break;
    case '<': fputs("&lt;", file); break;
    case '>': fputs("&gt;", file); break;
    case '"': fputs("&quot;", file); break;
    case '\'': fputs("&#39;", file); break;
    default:
        if (length)
            fwrite(at, 1, length, file);
        else
            fputc('?', file);
    }
}

void plan_svg_text(FILE *file, const char *text, int most)
{
    bool cut = characters(text) > most;
    for (int i = 0; *text && i < most - cut; i++) {
        size_t length = character((const unsigned char *)text);
        write_character(file, text, length);
        text += length ? length : 1;
    }
    if (cut)
        fputs("…", file);
}

double plan_text_width(const char *text, double size)
{
    return characters(text) * size * 0.62;
}
