# Install rules; included by the top CMakeLists.txt after all targets. Installs
# those targets that exist.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(pccl_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Pccl)

# pkg-config files move with the prefix unless a folder was given absolutely.
file(RELATIVE_PATH PCCL_PC_UP
    ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" PCCL_PC_UP ${PCCL_PC_UP})
set(PCCL_PC_PREFIX "\${pcfiledir}/${PCCL_PC_UP}")
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(PCCL_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
endif()
foreach(dir LIBDIR INCLUDEDIR)
    if(IS_ABSOLUTE "${CMAKE_INSTALL_${dir}}")
        set(PCCL_PC_${dir} "${CMAKE_INSTALL_${dir}}")
    else()
        set(PCCL_PC_${dir} "\${prefix}/${CMAKE_INSTALL_${dir}}")
    endif()
endforeach()

function(pccl_install_library target)
    if(NOT TARGET ${target})
        return()
    endif()
    install(TARGETS ${target} EXPORT PcclTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
    list(TRANSFORM ARGN PREPEND include/ OUTPUT_VARIABLE headers)
    if(headers)
        install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
    endif()
    configure_file(cmake/${target}.pc.in ${target}.pc @ONLY)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${target}.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

pccl_install_library(pccl pccl.h pccl_loop.h ccoip.h ccoip_inet.h)
pccl_install_library(mpi_pccl mpi_pccl.h)
pccl_install_library(mpi_abi)

if(TARGET mpi_pccl)
    # One mpi.h for each binary interface. mpi-ext.h beside it collides with
    # no other MPI's.
    foreach(face mpich mpi_abi)
        install(FILES include/${face}/mpi.h include/mpi-ext.h
            DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/pccl/${face})
    endforeach()
    # The folder that pccl-master puts first in the library path of the ranks:
    # the names under which programs built with MPICH look for MPI, and our own
    # for those linked without an rpath. A library is loaded from there, not
    # from where it lies, and looks for its neighbours relative to that.
    set(abi_dir lib/pccl/mpich-abi)
    file(RELATIVE_PATH up ${CMAKE_INSTALL_PREFIX}/${abi_dir}
         ${CMAKE_INSTALL_FULL_LIBDIR})
    string(REGEX REPLACE "/$" "" up ${up})
    set_target_properties(mpi_pccl mpi_abi PROPERTIES
        INSTALL_RPATH "$ORIGIN;$ORIGIN/${up}")
    set(mpi libmpi_pccl.so.${PROJECT_VERSION_MAJOR})
    set(native libpccl.so.${PROJECT_VERSION_MAJOR})
    foreach(link libmpich.so.12:${mpi} libmpi.so.12:${mpi} ${mpi}:${mpi}
                 libmpi_abi.so.1:libmpi_abi.so.1
                 ${native}:${native})
        string(REGEX MATCH "(.*):(.*)" unused ${link})
        install(CODE "
            set(dir \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${abi_dir})
            file(MAKE_DIRECTORY \${dir})
            file(CREATE_LINK ${up}/${CMAKE_MATCH_2}
                 \${dir}/${CMAKE_MATCH_1} SYMBOLIC)")
    endforeach()
endif()

if(TARGET pccl-master)
    install(TARGETS pccl-master)
    install(FILES src/launch/pccl-master.1
        DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()

if(TARGET pccl)
    install(EXPORT PcclTargets NAMESPACE Pccl::
        DESTINATION ${pccl_package_dir})
    configure_package_config_file(cmake/PcclConfig.cmake.in PcclConfig.cmake
        INSTALL_DESTINATION ${pccl_package_dir})
    write_basic_package_version_file(PcclConfigVersion.cmake
        COMPATIBILITY SameMinorVersion)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/PcclConfig.cmake
        ${CMAKE_CURRENT_BINARY_DIR}/PcclConfigVersion.cmake
        DESTINATION ${pccl_package_dir})
endif()
