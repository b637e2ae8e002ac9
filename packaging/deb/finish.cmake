# finish.cmake - CPack gives a package with libraries scripts that call
# ldconfig, and has no way not to. Debian's policy wants a trigger instead
# (packaging/deb/triggers), which the packages have: the scripts are removed.
foreach(package ${CPACK_PACKAGE_FILES})
    set(tree ${package}.tree)
    file(REMOVE_RECURSE ${tree})
    execute_process(COMMAND dpkg-deb -R ${package} ${tree}
        COMMAND_ERROR_IS_FATAL ANY)
    if(EXISTS ${tree}/DEBIAN/postinst)
        file(REMOVE ${tree}/DEBIAN/postinst ${tree}/DEBIAN/postrm)
        execute_process(COMMAND dpkg-deb --root-owner-group -Zxz
            -b ${tree} ${package} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
    endif()
    file(REMOVE_RECURSE ${tree})
endforeach()
