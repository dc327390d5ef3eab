# The programs that are copied to other machines (`./dev build --portable`), made of the objects of the ordinary one:
#
#   portable/shoal          needs the C library and nothing else
#   portable/shoal-static   needs nothing: for machines with another C library, or an older one; loads no modules
#
# Stores of the cloud are left out, since libcurl and what it stands on have no static form, and so are HDF5 and the
# libraries of compressed files but zlib, so that the programs stay small.  Where static libraries are missing, so are
# these programs.
set(portable_libraries "")
foreach(name png16 jpeg z jansson sqlite3 crypto)
    find_library(portable_${name} lib${name}.a)
    mark_as_advanced(portable_${name})
    if(NOT portable_${name})
        set(without "no portable programs: lib${name}.a is not here")
        message(STATUS ${without})
        add_custom_target(portable COMMAND ${CMAKE_COMMAND} -E echo ${without} COMMAND ${CMAKE_COMMAND} -E false)
        return()
    endif()
    list(APPEND portable_libraries ${portable_${name}})
endforeach()

set(cloud "/src/(store/(azure/|s3/|http|xml|store_parallel)|launch/cloud/(ec2|notice))[a-z0-9_]*\\.c\\.o$")
set(codecs "/(src/data/codec/data_|src/portable/no_)(xz|bzip2|zstd)\\.c\\.o$")
set(hdf5 "/src/(data/format/hdf5/[a-z0-9_]*|portable/no_hdf5)\\.c\\.o$")
set(objects "$<FILTER:$<TARGET_OBJECTS:shoal_objects>,EXCLUDE,${cloud}|${codecs}|${hdf5}>" $<TARGET_OBJECTS:shoal>
    src/portable/no_cloud.c src/portable/no_hdf5.c src/portable/no_xz.c src/portable/no_bzip2.c
    src/portable/no_zstd.c)

add_executable(portable_shared ${objects})
set_target_properties(portable_shared PROPERTIES OUTPUT_NAME shoal ENABLE_EXPORTS ON)
target_link_options(portable_shared PRIVATE -static-libgcc LINKER:--exclude-libs,ALL)

add_executable(portable_static ${objects} src/portable/no_modules.c)
set_target_properties(portable_static PROPERTIES OUTPUT_NAME shoal-static)
target_link_options(portable_static PRIVATE -static-pie
                    LINKER:--wrap=dlopen,--wrap=dlsym,--wrap=dlclose,--wrap=dlerror,--wrap=dladdr)

add_custom_target(portable DEPENDS portable_shared portable_static)
foreach(program portable_shared portable_static)
    set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/portable)
    target_include_directories(${program} PRIVATE include src)
    target_link_options(${program} PRIVATE LINKER:--gc-sections LINKER:--strip-all)
    target_link_libraries(${program} PRIVATE ${portable_libraries} Threads::Threads m)
endforeach()
install(TARGETS portable_shared portable_static DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/shoal)
