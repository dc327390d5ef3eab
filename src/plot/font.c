/* Letters for PNG files, as lines and curves that a round pen draws: small enough to be part of every program, and of
 * any size.
 *
 * A glyph is lines separated by spaces.  A line is points of two digits, x and y, from 0 to G (16): capitals stand
 * between y = 0 and the base line at y = C, small letters begin at y = 4, and what hangs ends at y = G.  A point after
 * '~' is the control point of a quadratic curve; between two of them the curve goes through their middle, as in
 * TrueType. */
#include <stddef.h>
#include <string.h>

#include "canvas.h"

enum { CAPITAL = 12, BETWEEN = 3, CURVE_STEPS = 6 };

typedef struct glyph {
    int width;
    const char *lines;
} glyph;

static const glyph glyphs[] = {
    [' '] = {1, ""},
    ['!'] = {0, "0008 0C0C"},
    ['"'] = {3, "0003 3033"},
    ['#'] = {8, "301C 705C 0484 0888"},
    ['$'] = {7, "72~6040~0003~0536~7779~7C3C~1C0A 404C"},
    ['%'] = {10, "901C 02~00~4042~44~0402 6A~68~A8AA~AC~6C6A"},
    ['&'] = {9, "9C25~1312~1030~5052~5426~0709~0C3C~7C86"},
    ['\''] = {0, "0003"},
    ['('] = {3, "30~0407~0A3E"},
    [')'] = {3, "00~3437~3A0E"},
    ['*'] = {6, "3036 0165 6105"},
    ['+'] = {8, "0888 444C"},
    [','] = {1, "1B0E"},
    ['-'] = {5, "0858"},
    ['.'] = {0, "0C0C"},
    ['/'] = {6, "600E"},
    ['0'] = {7, "06~00~7076~7C~0C06"},
    ['1'] = {7, "12404C 1C7C"},
    ['2'] = {7, "03~00~7073~760C7C"},
    ['3'] = {7, "02~00~6063~6626 26~7679~7C3C~0C0A"},
    ['4'] = {7, "5C500878"},
    ['5'] = {7, "601005~1434~7478~7C3C~0C0A"},
    ['6'] = {7, "61~5040~0008 08~04~7478~7C~0C08"},
    ['7'] = {7, "00702C"},
    ['8'] = {7, "13~10~6063~66~1613 09~06~7679~7C~0C09"},
    ['9'] = {7, "1B~2C3C~7C74 74~70~0004~08~7874"},
    [':'] = {0, "0606 0C0C"},
    [';'] = {1, "1616 1B0E"},
    ['<'] = {7, "73077B"},
    ['='] = {8, "0686 0A8A"},
    ['>'] = {7, "03770B"},
    ['?'] = {6, "02~00~6063~663638 3C3C"},
    ['@'] = {12, "AD~8E6E~0E07~0060~C0C6~CAAA~9A97 37~34~9497~9A~3A37"},
    ['A'] = {8, "0C408C 1979"},
    ['B'] = {7, "000C4C~7C79~764606 46~6663~604000"},
    ['C'] = {8, "82~7040~0006~0C4C~7C8A"},
    ['D'] = {8, "000C3C~8C86~803000"},
    ['E'] = {7, "70000C7C 0656"},
    ['F'] = {7, "70000C 0656"},
    ['G'] = {8, "82~7040~0006~0C4C~8C8757"},
    ['H'] = {8, "000C 808C 0686"},
    ['I'] = {0, "000C"},
    ['J'] = {5, "5058~5C2C~0C09"},
    ['K'] = {7, "000C 7007 347C"},
    ['L'] = {6, "000C6C"},
    ['M'] = {10, "0C0058A0AC"},
    ['N'] = {8, "0C008C80"},
    ['O'] = {9, "06~00~9096~9C~0C06"},
    ['P'] = {7, "0C0040~7073~764606"},
    ['Q'] = {9, "06~00~9096~9C~0C06 699D"},
    ['R'] = {7, "0C0040~7073~764606 467C"},
    ['S'] = {7, "72~6040~0003~0536~7779~7C3C~1C0A"},
    ['T'] = {8, "0080 404C"},
    ['U'] = {8, "0007~0C4C~8C8780"},
    ['V'] = {8, "004C80"},
    ['W'] = {12, "003C639CC0"},
    ['X'] = {8, "008C 800C"},
    ['Y'] = {8, "004680 464C"},
    ['Z'] = {8, "00800C8C"},
    ['['] = {3, "30000E3E"},
    ['\\'] = {6, "006E"},
    [']'] = {3, "00303E0E"},
    ['^'] = {6, "033063"},
    ['_'] = {8, "0E8E"},
    ['`'] = {2, "0022"},
    ['a'] = {7, "08~04~7478~7C~0C08 747C"},
    ['b'] = {7, "000C 08~04~7478~7C~0C08"},
    ['c'] = {6, "65~5434~0408~0C3C~5C6B"},
    ['d'] = {7, "707C 08~04~7478~7C~0C08"},
    ['e'] = {7, "0878~74~0408~0C4C~6C7A"},
    ['f'] = {5, "50~20232C 0454"},
    ['g'] = {7, "08~04~7478~7C~0C08 747D~7G4G~1G0E"},
    ['h'] = {7, "000C 08~0444~74777C"},
    ['i'] = {0, "040C 0101"},
    ['j'] = {2, "242D~2G0G 2121"},
    ['k'] = {6, "000C 6409 276C"},
    ['l'] = {2, "0009~0C2C"},
    ['m'] = {10, "040C 07~0434~54575C 57~5484~A4A7AC"},
    ['n'] = {7, "040C 08~0444~74777C"},
    ['o'] = {7, "08~04~7478~7C~0C08"},
    ['p'] = {7, "040G 08~04~7478~7C~0C08"},
    ['q'] = {7, "747G 08~04~7478~7C~0C08"},
    ['r'] = {4, "040C 08~0444"},
    ['s'] = {6, "65~5434~0406~0838~686A~6C3C~1C0B"},
    ['t'] = {5, "2129~2C5C 0454"},
    ['u'] = {7, "0408~0C3C~7C78 747C"},
    ['v'] = {6, "043C64"},
    ['w'] = {10, "043C567CA4"},
    ['x'] = {6, "046C 640C"},
    ['y'] = {6, "043C 643C~2G0G"},
    ['z'] = {6, "04640C6C"},
    ['{'] = {4, "40~2024~2707~272A~2E4E"},
    ['|'] = {0, "000E"},
    ['}'] = {4, "00~2024~2747~272A~2E0E"},
    ['~'] = {8, "08~2547~6986"},
};
static const glyph unknown = {8, "00808C0C00"}, ellipsis = {8, "0C0C 4C4C 8C8C"}, dash = {8, "0888"},
                   times = {8, "157B 751B"}, micro = {7, "040G 08~0C3C~7C78 747C"}, left = {8, "0888 35083B"},
                   right = {8, "0888 55885B"}, up = {6, "303C 033063"}, down = {6, "303C 093C69"},
                   sharp_s = {7, "0C03~0030~6063~6636~7679~7C2C"};

/* What U+00C0 and on are made of: a letter, and a mark over or through it. */
static const char latin_letters[] = "AAAAAA?CEEEEIIII?NOOOOO?OUUUUY??aaaaaa?ceeeeiiii?nooooo?ouuuuy?y",
                  latin_marks[] = "`'^~:o ,`'^:`'^: ~`'^~: /`'^:'  `'^~:o ,`'^:`'^: ~`'^~: /`'^:' :";

/* Round the middle at x = 4, over a small letter. */
static const char *lines_of_mark(char mark)
{
    switch (mark) {
    case '`': return "2042";
    case '\'': return "6042";
    case '^': return "224062";
    case '~': return "22~3041~5260";
    case ':': return "2121 6161";
    case 'o': return "31~30~5051~52~3231";
    case ',': return "4C~6E3F";
    case '/': return "1D73";
    }
    return "";
}

/* ---- drawing ----------------------------------------------------------------------------------------------------- */

typedef struct pen {
    plot_stroke *line;
    void *context;
    double right, down; /* where the glyph's origin lies, in its own units */
} pen;

static int digit(char c)
{
    return c <= '9' ? c - '0' : c - 'A' + 10;
}

/* To the height of a capital, from the base line. */
static plot_xy place(const pen *pen, plot_xy at)
{
    return (plot_xy){(at.x + pen->right) / CAPITAL, (at.y + pen->down - CAPITAL) / CAPITAL};
}

static void draw_line(const pen *pen, plot_xy from, plot_xy to)
{
    pen->line(pen->context, place(pen, from), place(pen, to));
}

static void draw_curve(const pen *pen, plot_xy from, plot_xy control, plot_xy to)
{
    plot_xy last = from;
    for (int i = 1; i <= CURVE_STEPS; i++) {
        const double t = (double)i / CURVE_STEPS, a = (1 - t) * (1 - t), b = 2 * t * (1 - t), c = t * t;
        const plot_xy next = {a * from.x + b * control.x + c * to.x, a * from.y + b * control.y + c * to.y};
        draw_line(pen, last, next);
        last = next;
    }
}

static void draw_lines(const pen *pen, const char *lines)
{
    plot_xy last = {0}, control = {0};
    bool begun = false, curved = false;
    while (*lines) {
        if (*lines == ' ') {
            begun = curved = false;
            lines++;
            continue;
        }
        const bool is_control = *lines == '~';
        lines += is_control;
        const plot_xy at = {digit(lines[0]), digit(lines[1])};
        const plot_xy middle = {(control.x + at.x) / 2, (control.y + at.y) / 2};
        lines += 2;
        if (curved)
            draw_curve(pen, last, control, is_control ? middle : at);
        else if (begun && !is_control)
            draw_line(pen, last, at);
        last = curved && is_control ? middle : is_control ? last : at;
        control = at;
        curved = is_control;
        begun = true;
    }
}

static const glyph *find_glyph(uint32_t letter)
{
    switch (letter) {
    case 0xa0: return &glyphs[' '];
    case 0xb5: return &micro;
    case 0xd7: return &times;
    case 0xdf: return &sharp_s;
    case 0x2026: return &ellipsis;
    case 0x2190: return &left;
    case 0x2191: return &up;
    case 0x2192: return &right;
    case 0x2193: return &down;
    case 0x2013:
    case 0x2212: return &dash;
    }
    return letter < sizeof glyphs / sizeof *glyphs && glyphs[letter].lines ? &glyphs[letter] : &unknown;
}

double plot_letter(uint32_t letter, plot_stroke *line, void *context)
{
    pen pen = {line, context, 0, 0};
    char mark = ' ';
    if (letter >= 0xc0 && letter <= 0xff && latin_letters[letter - 0xc0] != '?') {
        mark = latin_marks[letter - 0xc0];
        letter = (unsigned char)latin_letters[letter - 0xc0];
    }
    const glyph *drawn = find_glyph(letter);
    draw_lines(&pen, drawn->lines);
    pen.right = drawn->width / 2.0 - 4;
    pen.down = letter <= 'Z' && mark != ',' && mark != '/' ? -4 : 0;
    draw_lines(&pen, lines_of_mark(mark));
    return (double)(drawn->width + BETWEEN) / CAPITAL;
}
