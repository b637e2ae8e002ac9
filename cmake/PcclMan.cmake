# Manual pages: section 1 by hand, beside each program; section 3 made of the
# headers by packaging/man3.py, where there is Python. Included by
# PcclInstall.cmake.

# pccl_man(PAGE TARGET COMPONENT DIR): installed if the target is.
function(pccl_man page target component dir)
    if(TARGET ${target})
        install(FILES ${page} DESTINATION ${dir} COMPONENT ${component})
    endif()
endfunction()

set(man1 ${CMAKE_INSTALL_MANDIR}/man1)
pccl_man(src/launch/pccl-master.1 pccl-master programs ${man1})
pccl_man(src/bench/pccl-bench.1 pccl-bench programs ${man1})
pccl_man(src/trace/pccl-trace.1 pccl-trace programs ${man1})

# Another MPI's mpicc has a page of its own. man(1) looks for pages near the folders
# of PATH: who has lib/pccl/bin there gets the page of this mpicc.
set(wrapper_man lib/pccl/share/man/man1)
pccl_man(src/mpi/mpicc.1 mpi_pccl devel ${wrapper_man})
if(TARGET mpi_pccl)
    set(links mpicc_abi mpif77 mpif90 mpifort mpicxx mpicxx_abi)
    install(CODE "
        set(dir \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${wrapper_man})
        set(bin \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/pccl/bin)
        foreach(name ${links})
            if(EXISTS \${bin}/\${name})
                file(CREATE_LINK mpicc.1 \${dir}/\${name}.1 SYMBOLIC)
            endif()
        endforeach()" COMPONENT devel)
    file(RELATIVE_PATH up ${CMAKE_INSTALL_PREFIX}/${wrapper_man}
        ${CMAKE_INSTALL_PREFIX}/${man1})
    install(CODE "
        set(dir \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${wrapper_man})
        file(MAKE_DIRECTORY \${dir})
        foreach(name mpiexec mpirun)
            file(CREATE_LINK ${up}/pccl-master.1 \${dir}/\${name}.1 SYMBOLIC)
        endforeach()" COMPONENT programs)
endif()

find_program(PCCL_PYTHON python3)
if(NOT PCCL_PYTHON OR NOT TARGET pccl)
    message(STATUS "No manual pages of the functions: they need python3")
    return()
endif()
set(headers include/pccl.h include/pccl_loop.h include/pccl_train.h)
if(TARGET mpi_pccl)
    list(APPEND headers include/mpi_pccl.h)
endif()
list(TRANSFORM headers PREPEND ${PROJECT_SOURCE_DIR}/)
set(man3 ${CMAKE_BINARY_DIR}/man/man3)
file(MAKE_DIRECTORY ${man3})
add_custom_command(OUTPUT ${man3}/pccl.3
    COMMAND ${PCCL_PYTHON} ${PROJECT_SOURCE_DIR}/packaging/man3.py
        --out ${man3} --version ${PROJECT_VERSION} --date ${PCCL_DATE}
        ${headers}
    DEPENDS ${headers} packaging/man3.py docs/header_text.py
    COMMENT "Manual pages of the functions" VERBATIM)
add_custom_target(man ALL DEPENDS ${man3}/pccl.3)
install(DIRECTORY ${man3} DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT devel)
