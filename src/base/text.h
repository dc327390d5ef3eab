/* Text that came from a file, a store or another machine, on its way to a terminal: nothing in it may move the
 * cursor, ring the bell or turn the direction of writing round.  And numbers, as people read them. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the character that a text, which is not empty, begins with; *plain when people can be shown it.  What is
 * no UTF-8 counts as characters of one byte that can't. */
size_t base_text_next(bool *plain, const char *text);
/* Decodes the character that a text, which is not empty, begins with, and returns its bytes.  A byte that is not UTF-8
 * gives U+DC00 plus that byte (PEP 383). */
size_t base_text_letter(uint32_t *out, const char *text);
/* Replaces by '?' what people can't be shown. */
void base_text_clean(char *text);
/* Whether nothing would be replaced. */
bool base_text_is_clean(const char *text);
/* "1,204" */
void base_format_count(char *out, size_t size, int64_t count);
/* The ending of a noun after a count: "" for 1, otherwise "s", as in "%d row%s". */
const char *base_plural(int64_t count);
/* "17 bytes", "1.2 GB": three digits or so, in thousands. */
void base_format_bytes(char *out, size_t size, double bytes);

/* Whether a text ends so, and has more than that: ".npy" is the name of no file with this ending. */
bool base_text_ends(const char *text, const char *ending);

#endif
