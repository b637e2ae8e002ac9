# cores.sh - the cores that mutants are made of: those of pccl_core, as CMake
# lists them, and what it links. Names under src, without their suffix; $root is
# the project.
cores=$(sed -n '/add_library(pccl_core STATIC/,/)/p' "$root/src/CMakeLists.txt" |
    grep -o '[a-z]*/[a-z_0-9]*\.c' | sed 's/\.c$//')
[ -n "$cores" ] || { echo "cores.sh: CMake lists no cores"; exit 2; }
core="$cores base/dtype link/shared_memory
master/bandwidth master/bandwidth_plan
master/topology master/topology_dp master/topology_local
master/topology_climb master/topology_branch
reduce/isa reduce/reduce reduce/reduce_base reduce/quant reduce/quant_base
hash/hash hash/hash_simd hash/hash_omp"
