# prepare.cmake - what a Debian package has beyond what was installed, for each
# component in CPack's staging folder: copyright and changelog, compressed
# manual pages, no library paths (the libraries are in the system's folders).
set(version ${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})
execute_process(COMMAND date -R -u -d ${CPACK_PCCL_DATE}
    OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE)
file(READ ${CPACK_PCCL_SOURCE}/LICENSE license)
string(REGEX MATCH "Copyright [^\n]*" copyright "${license}")
string(REGEX REPLACE "Copyright( \\([cC]\\))? " "" copyright "${copyright}")
string(REGEX REPLACE "^.*(Permission is hereby)" "\\1" license "${license}")
string(STRIP "${license}" license)
string(REGEX REPLACE "\n\n" "\n.\n" license "${license}")
string(REGEX REPLACE "\n" "\n " license "${license}")

function(compress file)
    execute_process(COMMAND gzip -9nf ${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

foreach(component ${CPACK_COMPONENTS_ALL})
    string(TOUPPER ${component} upper)
    set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
    set(usr ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}/usr)
    set(doc ${usr}/share/doc/${package})
    file(WRITE ${doc}/copyright
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: PCCL/MPI

Files: *
Copyright: ${copyright}
License: Expat
 ${license}
")
    file(WRITE ${doc}/changelog.Debian
"pccl-mpi (${version}) unstable; urgency=medium

  * Version ${CPACK_PACKAGE_VERSION}; changelog.gz says what is new.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
    compress(${doc}/changelog.Debian)
    file(COPY_FILE ${CPACK_PCCL_SOURCE}/CHANGELOG.md ${doc}/changelog)
    compress(${doc}/changelog)

    file(GLOB pages ${usr}/share/man/man*/* ${usr}/lib/pccl/share/man/man*/*)
    foreach(page ${pages})
        if(IS_SYMLINK ${page})
            file(READ_SYMLINK ${page} target)
            file(REMOVE ${page})
            file(CREATE_LINK ${target}.gz ${page}.gz SYMBOLIC)
        else()
            compress(${page})
        endif()
    endforeach()

    file(GLOB binaries ${usr}/bin/* ${usr}/lib/pccl/* ${usr}/lib/*.so.*
        ${usr}/lib/*/*.so.*)
    foreach(binary ${binaries})
        if(NOT IS_SYMLINK ${binary} AND NOT IS_DIRECTORY ${binary})
            file(RPATH_REMOVE FILE ${binary})
        endif()
    endforeach()
endforeach()
