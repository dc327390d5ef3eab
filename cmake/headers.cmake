# The public headers as bytes in the library, for the modules that `shoal run` compiles: module_headers.c in the build
# folder.
file(GLOB public_headers CONFIGURE_DEPENDS include/shoal/*.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${public_headers})
set(arrays "")
set(rows "")
foreach(header IN LISTS public_headers)
    get_filename_component(name ${header} NAME_WE)
    file(READ ${header} bytes HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(APPEND arrays "static const unsigned char ${name}[] = {${bytes}};\n")
    string(APPEND rows "    {\"shoal/${name}.h\", ${name}, sizeof ${name}},\n")
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/module_headers.c @ONLY CONTENT
"/* Made by cmake/headers.cmake. */
#include \"run/compile.h\"

@arrays@
const run_header run_headers[] = {
@rows@    {0},
};
")
