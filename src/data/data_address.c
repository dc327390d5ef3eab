/* Addresses of arrays inside files.  See data_address.h. */
#include "data_address.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"

static bool is_split(const char *address)
{
    struct stat info;
    return strncmp(address, "gen:", 4) != 0 && strncmp(address, "dir:", 4) != 0 && !strstr(address, "://") &&
           stat(address, &info) < 0;
}

static bool is_plain_file(const char *path, size_t length)
{
    char file[PATH_MAX];
    struct stat info;
    if (length == 0 || length >= sizeof file)
        return false;
    memcpy(file, path, length);
    file[length] = '\0';
    return stat(file, &info) == 0 && S_ISREG(info.st_mode);
}

const char *data_address_name(const char *address)
{
    if (!strchr(address, ':') || !is_split(address))
        return NULL;
    for (size_t i = strlen(address); i-- > 0;)
        if (address[i] == ':' && is_plain_file(address, i))
            return address + i + 1;
    return NULL;
}

int data_address_file(char **out, const char *address)
{
    const char *name = data_address_name(address);
    return base_copy_text_n(out, address, name ? (size_t)(name - 1 - address) : strlen(address));
}

bool data_address_exists(const char *address)
{
    struct stat info;
    return stat(address, &info) == 0 || data_address_name(address);
}
