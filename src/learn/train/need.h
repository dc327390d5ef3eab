/* How much memory a net takes beside its rows.  See learn_face.need. */
#ifndef TRAIN_NEED_H
#define TRAIN_NEED_H

struct learn_rows;

int train_need(double *all, double *each, const void *config, const struct learn_rows *rows);

#endif
