/* The version that CMakeLists.txt states, compiled in.  See include/shoal/version.h. */
#include <shoal/version.h>

const char *shoal_version(void)
{
    return SHOAL_VERSION;
}
