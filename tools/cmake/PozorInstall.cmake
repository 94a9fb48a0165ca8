# Install rules: headers, libpozor, the command, a CMake package and a pkg-config file. The prefix
# may be moved afterwards. A static libpozor (the default) needs its private libraries at its
# user's link step; a shared one (BUILD_SHARED_LIBS) needs nothing and exports nothing but Pozor.

if(NOT POZOR_INSTALL)
  return()
endif()
include(CMakePackageConfigHelpers)

set_target_properties(pozor PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
get_target_property(type pozor TYPE)
if(type STREQUAL "SHARED_LIBRARY")
  set(POZOR_IS_STATIC OFF)
  set(exports "${PROJECT_SOURCE_DIR}/tools/cmake/pozor.map")
  target_link_options(pozor PRIVATE "-Wl,--version-script=${exports}")
  set_property(TARGET pozor APPEND PROPERTY LINK_DEPENDS "${exports}")
else()
  set(POZOR_IS_STATIC ON)
endif()

install(TARGETS pozor EXPORT pozorTargets)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/models/include/pozor" "${PROJECT_SOURCE_DIR}/engine/include/pozor"
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
if(TARGET pozor_command)
  set_target_properties(pozor_command PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  install(TARGETS pozor_command)
endif()

# CMake: find_package(pozor), target pozor::pozor.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/pozor)
install(EXPORT pozorTargets NAMESPACE pozor:: DESTINATION ${package_dir})
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/pozorConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/pozorConfig.cmake" INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file("${PROJECT_BINARY_DIR}/pozorConfigVersion.cmake"
  COMPATIBILITY SameMajorVersion)
install(FILES "${PROJECT_BINARY_DIR}/pozorConfig.cmake" "${PROJECT_BINARY_DIR}/pozorConfigVersion.cmake"
  DESTINATION ${package_dir})

# pkg-config: paths relative to the .pc file.
set(pkgconfig_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH POZOR_PC_PREFIX "/p/${pkgconfig_dir}" "/p")
if(POZOR_IS_STATIC)
  set(POZOR_PC_REQUIRES "Requires: tbb simdjson libpcre2-8")
  set(POZOR_PC_LIBS "-lstdc++ -lm -pthread")
  if(POZOR_HIGHWAY_LIBRARY)
    string(APPEND POZOR_PC_REQUIRES " libhwy")
  endif()
endif()
configure_file("${CMAKE_CURRENT_LIST_DIR}/pozor.pc.in" "${PROJECT_BINARY_DIR}/pozor.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/pozor.pc" DESTINATION ${pkgconfig_dir})
