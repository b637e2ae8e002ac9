# Install rules; included by the top CMakeLists.txt after all targets. Installs
# those targets that exist. packaging/README.md lists what lies where.
#
# Components: native (libpccl, libpccl_train), mpi (both MPI libraries), devel
# (headers, what finds them, compiler wrappers, manual of the functions),
# programs.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
include(cmake/PcclMan.cmake)

set(pccl_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Pccl)
file(RELATIVE_PATH pccl_lib_from_bin
    ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
string(REGEX REPLACE "/$" "" pccl_lib_from_bin ${pccl_lib_from_bin})

# pkg-config files move with the prefix unless a folder was given absolutely.
file(RELATIVE_PATH up ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
    ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" up ${up})
set(pccl_pc_prefix "\${pcfiledir}/${up}")
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(pccl_pc_prefix ${CMAKE_INSTALL_PREFIX})
endif()
foreach(dir LIBDIR INCLUDEDIR)
    if(IS_ABSOLUTE "${CMAKE_INSTALL_${dir}}")
        set(pccl_pc_${dir} "${CMAKE_INSTALL_${dir}}")
    else()
        set(pccl_pc_${dir} "\${prefix}/${CMAKE_INSTALL_${dir}}")
    endif()
endforeach()

# NAME.pc of an installation, and NAME-uninstalled.pc of this build, which
# pkg-config prefers where it finds both (PKG_CONFIG_PATH=BUILD).
function(pccl_pkg_config name)
    set(PCCL_PC_PREFIX ${pccl_pc_prefix})
    set(PCCL_PC_LIBDIR ${pccl_pc_LIBDIR})
    set(PCCL_PC_INCLUDEDIR ${pccl_pc_INCLUDEDIR})
    set(PCCL_PC_MPIDIR "\${includedir}/pccl")
    configure_file(cmake/${name}.pc.in installed/${name}.pc @ONLY)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/installed/${name}.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT devel)
    set(PCCL_PC_PREFIX ${PROJECT_SOURCE_DIR})
    set(PCCL_PC_LIBDIR ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
    set(PCCL_PC_INCLUDEDIR "\${prefix}/include")
    set(PCCL_PC_MPIDIR "\${includedir}")
    configure_file(cmake/${name}.pc.in ${name}-uninstalled.pc @ONLY)
endfunction()

function(pccl_install_library target component)
    if(NOT TARGET ${target})
        return()
    endif()
    install(TARGETS ${target} EXPORT PcclTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component}
            NAMELINK_COMPONENT devel)
    list(TRANSFORM ARGN PREPEND include/ OUTPUT_VARIABLE headers)
    if(headers)
        install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
            COMPONENT devel)
    endif()
    pccl_pkg_config(${target})
endfunction()

pccl_install_library(pccl native pccl.h pccl_loop.h ccoip.h ccoip_inet.h)
pccl_install_library(pccl_train native pccl_train.h)
pccl_install_library(mpi_pccl mpi mpi_pccl.h)
pccl_install_library(mpi_abi mpi)

if(TARGET mpi_pccl)
    # One mpi.h for each binary interface. mpi-ext.h beside it collides with
    # no other MPI's.
    foreach(face mpich mpi_abi)
        install(FILES include/${face}/mpi.h include/mpi-ext.h
            DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/pccl/${face}
            COMPONENT devel)
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
    set(train libpccl_train.so.${PROJECT_VERSION_MAJOR})
    foreach(link libmpich.so.12:${mpi} libmpi.so.12:${mpi} ${mpi}:${mpi}
                 libmpi_abi.so.1:libmpi_abi.so.1
                 ${native}:${native} ${train}:${train})
        string(REGEX MATCH "(.*):(.*)" unused ${link})
        install(CODE "
            set(dir \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${abi_dir})
            file(MAKE_DIRECTORY \${dir})
            file(CREATE_LINK ${up}/${CMAKE_MATCH_2}
                 \${dir}/${CMAKE_MATCH_1} SYMBOLIC)" COMPONENT mpi)
    endforeach()
endif()

# The programs, each with its manual. pccl-bench finds its libraries from where
# it lies; what a wheel needs was set before (python/CMakeLists.txt).
foreach(program pccl-master pccl-trace pccl-bench)
    if(TARGET ${program})
        install(TARGETS ${program} COMPONENT programs)
    endif()
endforeach()
if(TARGET pccl-bench)
    set_property(TARGET pccl-bench APPEND PROPERTY
        INSTALL_RPATH "$ORIGIN/${pccl_lib_from_bin}")
endif()
if(TARGET churn-mpi) # which pccl-bench starts
    set_property(TARGET churn-mpi PROPERTY INSTALL_RPATH "$ORIGIN/mpich-abi")
    install(TARGETS churn-mpi DESTINATION lib/pccl COMPONENT programs)
endif()

# To be copied and changed.
if(TARGET pccl-master)
    install(FILES packaging/systemd/pccl-master.service
        DESTINATION lib/systemd/system COMPONENT programs)
    install(DIRECTORY packaging/slurm packaging/kubernetes
        DESTINATION share/doc/pccl-tools/examples COMPONENT programs)
endif()

if(TARGET pccl)
    install(EXPORT PcclTargets NAMESPACE Pccl::
        DESTINATION ${pccl_package_dir} COMPONENT devel)
    # For find_package(Pccl PATHS BUILD), without an installation.
    export(EXPORT PcclTargets NAMESPACE Pccl:: FILE PcclTargets.cmake)
    configure_package_config_file(cmake/PcclConfig.cmake.in PcclConfig.cmake
        INSTALL_DESTINATION ${pccl_package_dir})
    write_basic_package_version_file(PcclConfigVersion.cmake
        COMPATIBILITY SameMinorVersion)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/PcclConfig.cmake
        ${CMAKE_CURRENT_BINARY_DIR}/PcclConfigVersion.cmake
        DESTINATION ${pccl_package_dir} COMPONENT devel)
endif()
