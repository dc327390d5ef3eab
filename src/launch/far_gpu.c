/* Which GPU a machine has, as NVIDIA's driver reports it in /proc: no library is needed. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "launch/far_host.h"

void far_find_gpu(char *out, size_t size)
{
    static const char folder[] = "/proc/driver/nvidia/gpus";
    char path[512], line[256];
    struct dirent *entry;
    DIR *gpus = opendir(folder);
    int count = 0;
    snprintf(out, size, "%s", access("/dev/nvidia0", F_OK) == 0 ? "NVIDIA" : "");
    while (gpus && (entry = readdir(gpus)) != NULL) {
        if (entry->d_name[0] == '.' || count++ > 0)
            continue;
        snprintf(path, sizeof path, "%s/%s/information", folder, entry->d_name);
        FILE *file = fopen(path, "re");
        while (file && fgets(line, sizeof line, file))
            if (strncmp(line, "Model:", 6) == 0) {
                line[strcspn(line, "\n")] = '\0';
                snprintf(out, size, "%s", line + 6 + strspn(line + 6, " \t"));
            }
        if (file)
            fclose(file);
    }
    if (gpus)
        closedir(gpus);
    size_t length = strlen(out);
    if (count > 1)
        snprintf(out + length, size - length, " x%d", count);
}
