/* Files of images.  See image_list.h. */
#include "image_list.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include <shoal/error.h>

#include "base/memory.h"

/* Takes the path. */
static int append(data_image_list *list, char *path)
{
    int status = SHOAL_OK;
    if (list->count == list->room) {
        int64_t room = list->room ? 2 * list->room : 64;
        status = base_grow(&list->paths, (size_t)list->room, (size_t)room, sizeof *list->paths, "a list of images");
        if (status == SHOAL_OK)
            list->room = room;
    }
    if (status == SHOAL_OK)
        list->paths[list->count++] = path;
    else
        base_free(&path);
    return status;
}

static bool ends_like(const char *name, const char *const *endings)
{
    const char *ending = strrchr(name, '.');
    for (; ending && *endings; endings++)
        if (strcasecmp(ending, *endings) == 0)
            return true;
    return false;
}

bool data_image_is_picture(const char *name)
{
    return ends_like(name, (const char *const[]){".png", ".jpg", ".jpeg", NULL});
}

static bool is_array(const char *name)
{
    const char *ending = strrchr(name, '.');
    return ending && strcmp(ending, ".npy") == 0;
}

static int add_folder(data_image_list *list, const char *folder, data_image_wanted *wanted);

/* One entry of a folder.  Files that vanish meanwhile are passed over, and unless `odd_too` links that lead nowhere. */
static int add_entry(data_image_list *list, const char *folder, const char *name, data_image_wanted *wanted)
{
    struct stat info, behind;
    char *path = NULL;
    const char *slash = folder[strlen(folder) - 1] == '/' ? "" : "/";
    int status = base_format(&path, "%s%s%s", folder, slash, name);
    if (status == SHOAL_OK && lstat(path, &info) == 0) {
        if (S_ISDIR(info.st_mode))
            status = add_folder(list, path, wanted);
        else if (wanted(name) && (list->odd_too || (stat(path, &behind) == 0 && S_ISREG(behind.st_mode)))) {
            status = append(list, path);
            path = NULL;
        }
    }
    base_free(&path);
    return status;
}

static int add_folder(data_image_list *list, const char *folder, data_image_wanted *wanted)
{
    DIR *stream = opendir(folder);
    int status = SHOAL_OK;
    if (!stream)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read the folder", folder);
    while (status == SHOAL_OK) {
        errno = 0;
        struct dirent *entry = readdir(stream);
        if (!entry) {
            status = errno ? shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read the folder", folder) : SHOAL_OK;
            break;
        }
        if (entry->d_name[0] != '.')
            status = add_entry(list, folder, entry->d_name, wanted);
    }
    closedir(stream);
    return status;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int data_image_list_folder(data_image_list *list, const char *folder, data_image_wanted *wanted)
{
    const int64_t before = list->count;
    int status = add_folder(list, folder, wanted);
    if (status == SHOAL_OK && list->count > before)
        qsort(list->paths + before, (size_t)(list->count - before), sizeof *list->paths, compare);
    return status;
}

int data_image_list_add(data_image_list *list, const char *path)
{
    struct stat info;
    char *copy = NULL;
    const int64_t before = list->count;
    if (stat(path, &info) < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", path);
    if (!S_ISDIR(info.st_mode)) {
        if (!S_ISREG(info.st_mode))
            return shoal_fail(SHOAL_USAGE, "%s: is neither a file nor a folder", path);
        int status = base_copy_text(&copy, path);
        return status < 0 ? status : append(list, copy);
    }
    int status = data_image_list_folder(list, path, data_image_is_picture);
    if (status == SHOAL_OK && list->count == before) /* arrays beside pictures may be results of earlier runs */
        status = data_image_list_folder(list, path, is_array);
    if (status == SHOAL_OK && list->count == before)
        return shoal_fail(SHOAL_INVALID, "%s: no file in this folder ends with .png, .jpg, .jpeg or .npy", path);
    return status;
}

void data_image_list_release(data_image_list *list)
{
    for (int64_t i = 0; i < list->count; i++)
        base_free(&list->paths[i]);
    base_free(&list->paths);
    list->count = list->room = 0;
}
