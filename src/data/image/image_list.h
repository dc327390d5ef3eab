/* The files that a command line of images means: files as they are named, and all PNG and JPEG files of folders.
 *
 * In a folder the name counts (.png, .jpg or .jpeg in any case; none that starts with a dot), in folders below too;
 * arrays (.npy) are taken only where there are no pictures, since beside these the results of earlier runs may lie.  A
 * folder's files come in the order of the bytes of their paths, whatever the file system says.  Links to files are
 * followed, links to folders are not. */
#ifndef DATA_IMAGE_LIST_H
#define DATA_IMAGE_LIST_H

#include <stdbool.h>
#include <stdint.h>

typedef struct data_image_list {
    char **paths;
    int64_t count, room;
    bool odd_too; /* of folders also links that lead nowhere and devices, if they have an image's name */
} data_image_list;

/* Adds a file or what is in a folder.  Fails for what is not there, for a pipe, and for a folder without images. */
int data_image_list_add(data_image_list *list, const char *path);
/* Adds the files of a folder, and of those below it, whose names are wanted; there may be none. */
typedef bool data_image_wanted(const char *name);
int data_image_list_folder(data_image_list *list, const char *folder, data_image_wanted *wanted);
/* A data_image_wanted: PNG and JPEG. */
bool data_image_is_picture(const char *name);
void data_image_list_release(data_image_list *list);

#endif
