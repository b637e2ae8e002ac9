#!/bin/sh
# mutants.sh [SEEDS [PATTERN]] - breaks one thing of the drivers at a time and
# shows that test_sched fails. Each line below: name | file under src | sed
# script. The tree is copied; the original is never touched. Exit status 1 if a
# mutant survives, does not apply or does not compile, or if the original fails
# in one of these schedules.
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
seeds=${1:-1000}
only=${2:-.}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
# All that CMakeLists.txt may name.
for part in "$root"/*; do
    case ${part##*/} in build*) ;; *) cp -r "$part" "$work/" ;; esac
done
cmake -S "$work" -B "$work/build" -DBUILD_TESTING=ON -DPCCL_MPI=OFF \
    -DPCCL_CUDA=OFF -DPCCL_PYTHON_PACKAGE=OFF >/dev/null
build() { make -C "$work/build" test_sched >"$work/log" 2>&1; }
# Stops at the first failure.
finds() { ! SCHED_STOP=1 "$work/build/tests/test_sched" 1 "$seeds" \
    >"$work/out" 2>&1; }
build || { cat "$work/log"; exit 1; }
! finds || { cat "$work/out"; echo "the original fails"; exit 1; }
survived=0 done=0
while IFS='|' read -r name file script; do
    echo "$name" | grep -q -- "$only" || continue
    done=$((done + 1))
    cp "$work/src/$file" "$work/kept"
    sed -i "$script" "$work/src/$file"
    if cmp -s "$work/kept" "$work/src/$file"; then
        echo "DOES NOT APPLY $name"
        survived=1
    elif ! build; then
        echo "DOES NOT COMPILE $name"
        survived=1
    elif finds; then
        echo "caught $name: $(grep '^seed' "$work/out" | head -n 1)"
    else
        echo "SURVIVED $name"
        survived=1
    fi
    cp "$work/kept" "$work/src/$file"
done <<'MUTANTS'
no fence before a ring (L3)|link/channel.h|/^static inline bool channel_ring/,/^}/s/    atomic_thread_fence(memory_order_seq_cst);//
an armed doorbell is not looked past (L3)|link/channel.h|/^static inline bool channel_arm/,/^}/s/what & CHANNEL_WANTS_DATA/what \& 64/
a doorbell is armed after the look (L3)|link/channel.h|/^static inline bool channel_arm/,/^}/s/memory_order_seq_cst);/memory_order_relaxed);/
no ring after a write|peer/comm_shm.c|s/if (done > 0) comm_shm_ring(c, number, CHANNEL_WANTS_DATA);//
a ring is given up after a signal|peer/comm_shm.c|s/           errno == EINTR)$/           false)/
a held back HELLO is room in the channel|peer/comm_shm.c|s/s->blocked && comm_shm_sends(c, number)/s->blocked/
the owner sleeps without a look|peer/comm_watch.c|s/if (arm_all(c)) most = 0;/(void)arm_all(c);/
what the last connections bring stays|peer/comm_watch.c|s/if (was_left(c, number))/if (false)/
work is watched where something is busy|peer/comm_watch.c|s/if (c->progress.state == PROGRESS_BACKGROUND && work) return UINT64_MAX;//
what was watched stays watched|peer/comm_watch.c|s/ | c->io.watched\[word\]//
a blocked connection is not visited|peer/comm_io.c|s/bool waits = s->connecting || s->blocked;/bool waits = s->connecting;/
a change does not wake the owner|peer/progress_core.c|s/SAME, MOVE . WATCH . WAKE,/SAME, MOVE \| WATCH,/
no tick for testing calls|peer/progress_core.c|s/PROGRESS_TESTING, MOVE . START . WATCH,/PROGRESS_TESTING, MOVE | WATCH,/
no watch after the last test|peer/progress_core.c|s/MOVE . STOP . WATCH,/MOVE \| STOP,/
a wake-up is never sent twice|base/io_loop.c|s/    atomic_exchange(&l->rung, false);//
a wake-up is not counted|base/io_wake.c|s/    atomic_exchange(&w->sent, false);//
an end is not signalled|peer/comm.c|/^static void on_changed/,/^}/s/pthread_cond_broadcast(&c->changed);/(void)c;/
the bytes of a pass do not reach the kernel|peer/progress.c|s/comm_io_move_briefly(c)/false/;s/comm_io_move(c) \&\& event != PROGRESS_ON_TEST/false/
an acknowledgement stays|peer/progress_wait.c|s/        if (engine_may_send(e, number)) (void)comm_shm_transmit(c, number);//
a pushed message does not ring|peer/comm_io.c|s/            comm_shm_ring(c, number, CHANNEL_WANTS_DATA);//
an answer does not wake the loop|master/search/master_search.c|s/    wake_send(&s->wake);//
work does not wake the search|master/search/master_search.c|/^bool searcher_begin/,/^}/s/    pthread_cond_signal(&s->work);//
the wait of a vote is not a loop|peer/progress_wait.c|s/    while (!is_over(c, &goal)) comm_wait/    if (!is_over(c, \&goal)) comm_wait/
MUTANTS
[ "$done" -gt 0 ] || { echo "mutants.sh: no mutant has this name"; exit 1; }
exit "$survived"
