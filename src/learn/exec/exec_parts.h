/* Answers that are joined: records of one size each, in the order of the rows.
 *
 * An answer that is longer than a record takes several; the last is filled up with zeros. */
#ifndef EXEC_PARTS_H
#define EXEC_PARTS_H

#include <shoal/learn.h>

/* A piece of an answer; its bytes follow. */
typedef struct exec_part {
    int64_t length; /* of the whole answer, along its first axis */
    int64_t bytes;  /* of this piece */
} exec_part;

/* What a record should hold when answers are this long. */
int64_t exec_parts_choose(double answer_bytes);
/* Whether a model from elsewhere may say so. */
bool exec_parts_good(int64_t part_bytes);
/* The cell of such records, and the memory that a thread needs to make one. */
shoal_cell exec_parts_cell(int64_t part_bytes);
size_t exec_parts_scratch(int64_t part_bytes);

/* Adds the answer to a grain: `size` bytes that are `length` long along the first axis. */
int exec_parts_add(shoal_partial *partial, int cell, int64_t part_bytes, int64_t grain, int64_t length,
                   const void *bytes, size_t size, const shoal_scratch *scratch);
/* How long all answers are together; -1 for what can't be. */
int64_t exec_parts_length(const shoal_partial *merged, int cell, int64_t part_bytes);
/* Writes all of them, `size` bytes; SHOAL_BROKEN when they are more or fewer. */
int exec_parts_join(unsigned char *to, size_t size, const shoal_partial *merged, int cell);

#endif
