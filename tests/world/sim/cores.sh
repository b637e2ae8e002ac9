# cores.sh - the cores that mutants are made of: those of pccl_core and of the
# libraries below it, as CMake lists them, for one instruction set and without
# CUDA. Names under src, without their suffix; $root is the project.
library() { # FOLDER FILE LIBRARY
    sed -n "/add_library($3 STATIC/,/)\$/p" "$root/src/$1$2" |
        grep -o '[a-z0-9_/]*\.c' |
        sed "s|^/||; s|^|$1|; s|\.c\$||; /_cuda\$/d"
}
core="$(library '' CMakeLists.txt pccl_core)
$(library master/search/ topology.cmake pccl_topology)
$(library reduce/ CMakeLists.txt pccl_reduce)
$(library hash/ CMakeLists.txt pccl_hash)
base/dtype link/shared_memory"
