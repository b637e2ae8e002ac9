# Debian packages by CPack, one for each component: `cpack -G DEB` in a build
# folder. packaging/deb.sh makes them as Debian's own builders do. Included by
# the top CMakeLists.txt after the install rules.
if(NOT TARGET mpi_pccl OR NOT TARGET pccl-master OR NOT TARGET pccl-bench)
    return()
endif()
set(PCCL_PACKAGER "PCCL/MPI <pccl-mpi@packages.invalid>" CACHE STRING
    "Who makes packages: Name <address>")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME pccl-mpi)
set(CPACK_PACKAGE_CONTACT "${PCCL_PACKAGER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY
    "fault-tolerant, elastic collective communication")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL native mpi devel programs)
set(CPACK_PRE_BUILD_SCRIPTS
    ${PROJECT_SOURCE_DIR}/packaging/deb/prepare.cmake)
set(CPACK_POST_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/packaging/deb/finish.cmake)
set(CPACK_PCCL_SOURCE ${PROJECT_SOURCE_DIR})
set(CPACK_PCCL_DATE ${PCCL_DATE})
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE
    OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 0pccl1) # sorts before one of Debian's own
set(CPACK_DEBIAN_PACKAGE_SOURCE pccl-mpi)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS
    ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")

set(major ${PROJECT_VERSION_MAJOR})
set(same "(= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")

set(CPACK_DEBIAN_NATIVE_PACKAGE_NAME libpccl${major})
set(CPACK_DEBIAN_NATIVE_PACKAGE_SECTION libs)
set(triggers ${PROJECT_SOURCE_DIR}/packaging/deb/triggers)
set(CPACK_DEBIAN_NATIVE_PACKAGE_CONTROL_EXTRA ${triggers})
set(CPACK_COMPONENT_NATIVE_DESCRIPTION
"collectives that survive the loss of members (library)
The C API of PCCL 1.0: all-reduce, shared state and more among processes that
may die and join while the program runs.
.
This package has the library.")

set(CPACK_DEBIAN_MPI_PACKAGE_NAME libmpi-pccl${major})
set(CPACK_DEBIAN_MPI_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_MPI_PACKAGE_CONTROL_EXTRA ${triggers})
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "libpccl${major} ${same}")
set(CPACK_COMPONENT_MPI_DESCRIPTION
"MPI that survives the loss of ranks (libraries)
Programs that were built with MPICH, or for the standard binary interface of
MPI 5.0, run with these libraries as they are. When a rank is lost, the others
go on.
.
This package has libmpi_pccl and libmpi_abi.")

set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME pccl-tools)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_DEPENDS
    "libpccl${major} ${same}, libmpi-pccl${major} ${same}")
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SUGGESTS
    "openssh-client, slurm-client")
set(CPACK_COMPONENT_PROGRAMS_DESCRIPTION
"launcher and coordinator of fault-tolerant MPI jobs
pccl-master takes the place of mpirun: it starts ranks on this host and on
others, coordinates them, and lets new ones join a running job. pccl-bench
measures collectives and recovery.
.
This package also has a systemd unit of the coordinator, and examples for Slurm
and Kubernetes.")

set(CPACK_DEBIAN_DEVEL_PACKAGE_NAME libpccl-dev)
set(CPACK_DEBIAN_DEVEL_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVEL_PACKAGE_DEPENDS
    "libpccl${major} ${same}, libmpi-pccl${major} ${same}")
set(CPACK_DEBIAN_DEVEL_PACKAGE_SUGGESTS "pccl-tools")
set(CPACK_COMPONENT_DEVEL_DESCRIPTION
"fault-tolerant collectives and MPI (development files)
Headers of libpccl, of libmpi_pccl and of libmpi_abi, what pkg-config and CMake
need to find them, compiler wrappers, and a manual page of each function.")
include(CPack)
