#!/bin/sh
# coverage.sh [-b BUILD] [-s SECONDS] - the lines that the fuzzers reach, of every
# file that reads bytes of others.
#
# Builds with clang's source-based coverage, runs each fuzzer on its corpus, the
# simulator's tapes and for SECONDS (10) more, and prints a table. Fails if a
# file of the list is below the least share of it, or was not built.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$root/build-coverage seconds=10 least=80
while getopts b:s: option; do
    case $option in
    b) build=$OPTARG ;;
    s) seconds=$OPTARG ;;
    *) exit 2 ;;
    esac
done

# Frames and their connections; memory of other processes; operations; messages;
# shared state; the coordinator's words, and those to the coordinator; the
# launcher; checkpoints.
files='
base/arguments.c base/cursor.h base/wire.c base/wire_member.c base/wire_resume.c
link/board.h link/channel.h link/conn.c link/conn_receive.c link/conn_send.c link/frame.c
link/link.c link/links.c link/probe.c link/region.c link/unexpected.c
ring/allreduce_single_copy.c ring/fast_pairs.c ring/fast_path.c ring/fast_star.c
ring/fast_sums.c ring/fast_tree.c ring/star.c ring/op_done.c ring/op_frame.c ring/op_receive.c ring/op_send.c ring/pieces.c ring/result_cache.c ring/flush.c
message/message.c message/message_receive.c message/message_rndv.c
message/message_send.c
elastic/session.c elastic/session_keep.c elastic/session_launch.c
elastic/session_optimize.c elastic/session_resume.c elastic/session_samples.c
elastic/session_sync.c elastic/session_verdict.c elastic/session_view.c
elastic/session_waits.c
elastic/state.c elastic/state_list.c elastic/state_plan.c elastic/notified.c link/view.c
master/deadlock.c master/dispute.c
master/dispute_text.c master/search/edges.c
master/watch/limits.c master/master.c master/members.c master/succession/replicas.c master/succession/replicas_collect.c
master/round.c master/round_ops.c
master/round_view.c master/watch/silence.c master/state/state_vote.c master/succession/succession.c
master/watch/peer_report.c master/watch/master_status.c master/watch/run_status.c
master/watch/run_status_json.c master/watch/run_metrics.c master/watch/stall.c
master/watch/stall_ask.c master/watch/stall_text.c master/watch/wait_graph.c master/server/http_gate.c
base/address.c launch/agent.c launch/agent_link.c launch/allocation.c
launch/control.c
launch/elf_needed.c launch/hosts.c
master/server/master_client.c
launch/option_coordinator.c launch/option_env.c launch/option_open.c
launch/option_places.c
launch/option_table.c
launch/options.c launch/remote.c
checkpoint/manifest_read.c checkpoint/snapshot_name.c
master/succession/journal_read.c master/succession/remember.c
base/secure.c base/secure_greeting.c base/secure_token.c
base/secure_token_text.c base/run_key.c base/run_key_issuer.c
base/wire_partial.c
link/relay.c link/way.c master/search/relays.c launch/key.c
elastic/partial.c elastic/partial_call.c elastic/partial_move.c elastic/offer.c elastic/prefetch.c
elastic/session_offer.c elastic/session_partial.c
master/coverage/coverage.c master/coverage/coverage_call.c master/coverage/coverage_state.c master/coverage/coverage_order.c
master/server/master_open.c master/state/offers.c master/coverage/step_samples.c master/server/switchboard.c master/server/master_conn.c
link/link_patience.c ring/blocked.c ring/engine.c
ring/engine_io.c ring/op_input.c ring/op.c ring/op_queue.c ring/op_waits.c
ring/pull.c ring/single_copy.c ring/spread_single_copy.c master/search/optimize.c master/search/sites.c
master/votes.c base/decimal.c base/memory_supply.c base/port_range.c
base/secure_text.c link/shared_memory.c base/env.c mpi/slurm_task.c
base/io_wake.c base/secure_socket.c
master/admission.c master/search/bandwidth.c master/search/bandwidth_plan.c
master/coverage/coverage_parts.c master/grants.c master/succession/journal.c master/succession/journal_file.c
master/search/link_shape.c master/server/master_gate.c master/server/master_http.c
master/server/master_http_token.c master/succession/master_keep.c master/server/master_listen.c
master/server/master_looks.c master/server/master_proof.c master/watch/master_report.c
master/server/master_room.c master/search/master_search.c master/server/master_server.c
master/server/master_socket.c master/search/order.c master/server/own_clock.c master/search/partition.c
master/watch/stall_watch.c master/search/topology.c
master/search/topology_climb.c master/search/topology_exact.c master/search/topology_local.c
trace/trace_clock.c trace/trace_file.c trace/trace_main.c
checkpoint/checkpoint_read.c checkpoint/checkpoint_write.c base/file_layer.c
launch/job.c launch/job_host.c launch/job_rank.c launch/job_drain.c
launch/job_watch.c launch/job_restart.c launch/proc.c launch/program_path.c
launch/forward.c launch/input.c launch/rank_env.c launch/bind_hwloc.c base/log.c
base/log_file.c base/file_pattern.c peer/timeline.c peer/timeline_text.c
base/host.c base/small_file.c base/descriptors.c launch/bind.c launch/reach.c launch/host_room.c
launch/descriptor.c launch/hook.c launch/surroundings.c launch/coordinators.c
launch/web.c
launch/state_file.c peer/api_env.c peer/comm_join.c
master/server/master_facts.c master/server/master_watch.c base/io_addr.c
mpi/agree.c mpi/coll_pending.c mpi/coll_steps.c mpi/comm_split.c mpi/elastic.c
mpi/elastic_partial.c mpi/graph.c mpi/inter.c mpi/match.c mpi/message_table.c
mpi/mpi_comm.c mpi/mpi_probe.c mpi/p2p.c mpi/partitioned.c mpi/partner.c mpi/rank_use.c
mpi/revoke.c mpi/transport.c mpi/ulfm.c mpi/world.c
link/send_window.c peer/api_message.c peer/comm_io.c peer/comm_listen.c
peer/comm_master.c peer/comm_prefetch.c peer/comm_resume.c peer/comm_save.c
peer/comm_secure.c peer/comm_self.c peer/comm_shm.c peer/comm_state.c
peer/comm_watch.c peer/progress_wait.c
base/io_loop.c peer/comm_calls.c peer/comm_samples.c peer/comm_tell.c
peer/progress.c
'

for tool in clang llvm-profdata llvm-cov; do
    command -v "$tool" >/dev/null && continue
    echo "coverage.sh: there is no $tool; Debian's packages are clang and llvm"
    exit 77
done
flags='-fprofile-instr-generate -fcoverage-mapping'
CC=clang cmake -S "$root" -B "$build" -DBUILD_TESTING=ON -DPCCL_CUDA=OFF \
    -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DCMAKE_C_FLAGS="$flags" -DCMAKE_EXE_LINKER_FLAGS="$flags" \
    -DCMAKE_SHARED_LINKER_FLAGS="$flags" >/dev/null
fuzzers='conn master replicas wire frame text launch agent remote manifest
    journal secure token key guest gate elf ask memory environment
    topology http trace checkpoint job output host hook
    surroundings state server mpi driver'
# shellcheck disable=SC2046 # names without blanks
make -s -C "$build" sim_recorder $(printf 'fuzz_%s ' $fuzzers)

work=$build/fuzz-coverage
rm -rf "$work"
mkdir -p "$work/tapes"
LLVM_PROFILE_FILE=/dev/null FUZZ_TAPES=$work/tapes \
    "$build/tests/sim_recorder" 1 48 >/dev/null
for name in $fuzzers; do
    mkdir -p "$work/found/$name"
    set -- "$work/found/$name"
    for folder in "$root/tests/fuzz/corpus/$name" "$work/tapes/$name"; do
        if [ -d "$folder" ]; then set -- "$@" "$folder"; fi
    done
    LLVM_PROFILE_FILE=$work/$name.profraw "$build/tests/fuzz_$name" -seed=1 \
        -len_control=0 -entropic=0 -max_len=65536 -timeout=60 \
        -artifact_prefix="$work/" -max_total_time="$seconds" \
        -print_final_stats=1 "$@" >"$work/$name.log" 2>&1 || {
        tail -n 40 "$work/$name.log"
        exit 1
    }
    sed -n "s/^stat::average_exec_per_sec: */$name, inputs per second: /p" \
        "$work/$name.log"
done
llvm-profdata merge -o "$work/all.profdata" "$work"/*.profraw
set --
for name in $fuzzers; do set -- "$@" -object "$build/tests/fuzz_$name"; done
shift # the first one has no -object
llvm-cov export -summary-only -instr-profile "$work/all.profdata" "$@" \
    >"$work/summary.json" 2>/dev/null
python3 - "$work/summary.json" "$root/src" "$least" "$files" <<'EOF'
import json, sys
summary, source, least, wanted = sys.argv[1:]
lines = {}
for data in json.load(open(summary))["data"]:
    for entry in data["files"]:
        name = entry["filename"].split("/src/")[-1]
        # A header has an entry for each way to it: the best one counts.
        count = entry["summary"]["lines"]
        if count["covered"] >= lines.get(name, count)["covered"]:
            lines[name] = count
failed = False
for name in wanted.split():
    if name not in lines:
        print(f"{name:34} not built")
        failed = True
        continue
    count, covered = lines[name]["count"], lines[name]["covered"]
    share = 100 * covered / max(count, 1)
    low = share < float(least)
    failed |= low
    print(f"{name:34} {covered:4} of {count:4}  {share:5.1f} %"
          + ("  too few" if low else ""))
sys.exit(failed)
EOF
