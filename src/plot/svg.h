/* Text in SVG files. */
#ifndef PLOT_SVG_H
#define PLOT_SVG_H

#include <stdio.h>

/* Writes text as XML has to have it, at most `most` characters: the end of a longer one becomes an ellipsis, and what
 * can't be shown '?'. */
void plot_svg_escape(FILE *file, const char *text, int most);

#endif
