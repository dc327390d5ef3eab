/* The files that a command line of images means: files as they are named, and all PNG and JPEG files of folders.
 *
 * In a folder the name counts (.png, .jpg or .jpeg in any case; none that starts with a dot), in folders below too;
 * arrays (.npy) are taken only where there are no pictures, since beside these the results of earlier runs may lie.  A
 * folder's files come in the order of the bytes of their paths, whatever the file system says.  Links to files are
 * followed, links to folders are not. */
#ifndef DATA_IMAGE_LIST_H
#define DATA_IMAGE_LIST_H

#include <stdint.h>

typedef struct data_image_list {
    char **paths;
    int64_t count, room;
} data_image_list;

/* Adds a file or what is in a folder.  Fails for what is not there, for a pipe, and for a folder without images. */
int data_image_list_add(data_image_list *list, const char *path);
void data_image_list_release(data_image_list *list);

#endif
