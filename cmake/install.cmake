# What `cmake --install` puts where, and the Debian package.
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/shoal)

install(TARGETS shoal)
install(TARGETS shoal_shared EXPORT shoal)
install(TARGETS shoal_static EXPORT shoal_static)
install(DIRECTORY include/shoal DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(DIRECTORY ${PROJECT_BINARY_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN "*.1")
foreach(place IN ITEMS bash=bash-completion/completions/shoal zsh=zsh/site-functions/_shoal
                       fish=fish/vendor_completions.d/shoal.fish)
    string(REGEX MATCH "^([a-z]+)=(.+)/([^/]+)$" place ${place})
    install(FILES ${PROJECT_BINARY_DIR}/man/completion.${CMAKE_MATCH_1} OPTIONAL
            DESTINATION ${CMAKE_INSTALL_DATADIR}/${CMAKE_MATCH_2} RENAME ${CMAKE_MATCH_3})
endforeach()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
install(FILES CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN "__pycache__" EXCLUDE)

# find_package(shoal) gives shoal::shoal; find_package(shoal COMPONENTS static) gives shoal::static too.
install(EXPORT shoal NAMESPACE shoal:: DESTINATION ${package_folder} FILE shoalTargets.cmake)
install(EXPORT shoal_static NAMESPACE shoal:: DESTINATION ${package_folder} FILE shoalStaticTargets.cmake)
configure_package_config_file(cmake/shoalConfig.cmake.in ${PROJECT_BINARY_DIR}/shoalConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/shoalConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/shoalConfig.cmake ${PROJECT_BINARY_DIR}/shoalConfigVersion.cmake
        DESTINATION ${package_folder})

# The prefix is found from the file's own place, so that an installed tree may be moved.
file(RELATIVE_PATH prefix_from_pc /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
list(TRANSFORM codecs_libraries PREPEND "-l" OUTPUT_VARIABLE codecs_flags)
string(REPLACE ";" " " codecs_flags "${codecs_flags} ")
configure_file(cmake/shoal.pc.in ${PROJECT_BINARY_DIR}/shoal.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/shoal.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The shoal developers <developers@shoal.invalid>")
set(CPACK_PACKAGE_DESCRIPTION "shoal runs machine-learning jobs, such as k-means, on all cores of a machine.
Its results are defined to the bit: equal for every processor, every kernel and every number of threads.
This package holds the program, the C library with its headers, and the manual pages.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
# A package for each MPI's plug-in, so that shoal itself needs none.
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_NAME shoal)
set(CPACK_COMPONENT_UNSPECIFIED_DESCRIPTION "${CPACK_PACKAGE_DESCRIPTION}")
foreach(kind IN LISTS shoal_mpi_kinds)
    string(TOUPPER ${kind} component)
    set(CPACK_DEBIAN_${component}_PACKAGE_NAME shoal-${kind})
    set(CPACK_DEBIAN_${component}_PACKAGE_DEPENDS "shoal (= ${PROJECT_VERSION})")
    set(CPACK_COMPONENT_${component}_DESCRIPTION
        "With this package shoal runs under mpirun and srun, as ranks of this MPI.")
endforeach()
if(shoal_cuda_here)
    set(CPACK_DEBIAN_CUDA_PACKAGE_NAME shoal-cuda)
    set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "shoal (= ${PROJECT_VERSION})")
    set(CPACK_COMPONENT_CUDA_DESCRIPTION "With this package shoal computes k-means on NVIDIA GPUs, to the CPU's bits.")
endif()
include(CPack)
