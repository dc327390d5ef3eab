/* Colours of groups. */
#include "plot.h"

/* The first six are Okabe and Ito's (Color Universal Design, 2008) without the two that white paper swallows or that
 * text has; each of the others is the farthest from those before it, of the schemes of Paul Tol and of Tableau, by the
 * least CIELAB distance that normal, protan, deutan and tritan sight has (Machado et al. 2009). */
plot_rgb plot_colour(int64_t group)
{
    static const plot_rgb colours[PLOT_COLOURS] = {
        0x0072b2, 0xe69f00, 0x009e73, 0xd55e00, 0xcc79a7, 0x56b4e9, 0x42150a, 0x8cd17d, 0x332288, 0xa5170e,
        0x882255, 0x117733, 0xd1bbd7, 0x59a14f, 0x999933, 0x994455, 0x004488, 0xaa3377, 0xee6677, 0x661100,
    };
    return colours[group % PLOT_COLOURS];
}
