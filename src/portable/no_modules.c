/* The static program has no dynamic loader: ld's --wrap makes it call these functions instead. */
#include <stddef.h>

void *__wrap_dlopen(const char *file, int mode);
void *__wrap_dlsym(void *handle, const char *name);
int __wrap_dlclose(void *handle);
int __wrap_dladdr(const void *address, void *info);
char *__wrap_dlerror(void);

void *__wrap_dlopen(const char *file, int mode)
{
    (void)file, (void)mode;
    return NULL;
}

void *__wrap_dlsym(void *handle, const char *name)
{
    (void)handle, (void)name;
    return NULL;
}

int __wrap_dlclose(void *handle)
{
    (void)handle;
    return -1;
}

int __wrap_dladdr(const void *address, void *info)
{
    (void)address, (void)info;
    return 0;
}

char *__wrap_dlerror(void)
{
    return "this is the static build of shoal, which cannot load modules or plug-ins: use the usual build";
}
