#!/bin/sh
# mutants.sh [PATTERN] - weakens one memory order, or moves one access, at a time
# and shows that test_litmus fails. Each line below: name | file under src | sed
# script. The tree is copied; the original is never touched. Exit status 1 if a
# mutant survives, does not apply or does not compile. Needs gcc and libev; takes
# a minute.
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
only=${1:-.}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
cp -r "$root/src" "$root/include" "$work/"
mkdir -p "$work/tests/world"
cp -r "$root/tests/world/litmus" "$root/tests/world/sched" \
    "$work/tests/world/"
cd "$work"
flags="-O1 -D_GNU_SOURCE"
hooks="-fsanitize=thread -Wno-tsan --param=tsan-instrument-func-entry-exit=0"

compile() # OBJECT SOURCE [FLAG...]
{
    object=$1 source=$2
    shift 2
    # shellcheck disable=SC2086 # words
    gcc $flags "$@" -c "$source" -o "$object" 2>>log
}

build()
{
    # shellcheck disable=SC2086 # words
    for part in tests/world/litmus/litmus_channel tests/world/litmus/litmus_process \
        src/base/io_loop src/base/io_wake; do
        compile "$(basename $part).o" $part.c $hooks || return
    done
    gcc ./*.o -lev -Wl,--wrap=read -Wl,--wrap=write -Wl,--wrap=ev_io_start \
        -o test_litmus 2>>log
}

for name in litmus/test_litmus litmus/orders sched/atomic_hooks; do
    compile "$(basename $name).o" tests/world/$name.c
done
if ! build || ! ./test_litmus >out; then
    cat log out
    echo "mutants.sh: the tree itself fails"
    exit 1
fi
survived=0 done=0
while IFS='|' read -r name file script; do
    echo "$name" | grep -q -- "$only" || continue
    done=$((done + 1))
    cp "src/$file" kept
    sed -i "$script" "src/$file"
    result=caught
    if cmp -s kept "src/$file"; then
        result="DOES NOT APPLY"
    elif ! build; then
        result="DOES NOT COMPILE"
    elif ./test_litmus >out; then
        result=SURVIVED
    fi
    case $result in
    caught) echo "caught $name: $(grep -v complete out | head -n 1)" ;;
    *) echo "$result $name" ;;
    esac
    [ "$result" = caught ] || survived=1
    cp kept "src/$file"
done <<'MUTANTS'
bytes after their index (written)|link/channel.h|/channel_write(/,/^}/s/memory_order_release/memory_order_relaxed/
an index read without its bytes|link/channel.h|/^static inline uint64_t channel_seen/,/^}/s/memory_order_acquire/memory_order_relaxed/
reads after the room was given|link/channel.h|/channel_read(/,/^}/s/memory_order_release/memory_order_relaxed/
room taken without the reads|link/channel.h|/^static inline size_t channel_room/,/^}/s/memory_order_acquire/memory_order_relaxed/
an index that shows before the bytes|link/channel.h|/^static inline size_t channel_room/,/^}/s/(c->size - used)/(c->size - used + 8)/
a base that moves under unread data (L6)|link/channel.h|s/if (rewinds \&\& used == 0)/if (rewinds)/
a base that nobody is shown (L6)|link/channel.h|s/    atomic_store_explicit(&c->own->base, c->base, memory_order_relaxed);//
no fence before the look at a doorbell (L3)|link/channel.h|/^static inline bool channel_ring/,/^}/s/    atomic_thread_fence(memory_order_seq_cst);//
an acquire fence there (L3)|link/channel.h|/^static inline bool channel_ring/,/^}/s/atomic_thread_fence(memory_order_seq_cst)/atomic_thread_fence(memory_order_acq_rel)/
a doorbell armed with release (L3)|link/channel.h|/^static inline bool channel_arm/,/^}/s/what, memory_order_seq_cst/what, memory_order_release/
a relaxed look for data (L3)|link/channel.h|/^static inline bool channel_arm/,/^}/s/written, memory_order_seq_cst/written, memory_order_relaxed/
an acquire look for room (L3)|link/channel.h|/^static inline bool channel_arm/,/^}/{s/^\( *\)memory_order_seq_cst) !=/\1memory_order_acquire) !=/}
no look after arming (L3)|link/channel.h|/^static inline bool channel_arm/,/^}/s/what & CHANNEL_WANTS_DATA/what \& 64/
one reason is enough to ring (L3)|link/channel.h|s/if (!(asleep & what)) return false;/if (asleep == what) return false;/
a slot that is written before its word is 0 (L11c)|link/board.h|s/    atomic_thread_fence(memory_order_release);//
the word of a slot stays while it is written (L11c)|link/board.h|s/    atomic_store_explicit(&slot->word, 0, memory_order_relaxed);//
a post shown before its bytes (L11)|link/board.h|/^static inline void board_post/,/^}/s/memory_order_release/memory_order_relaxed/
a post read without its bytes (L11)|link/board.h|/^static inline struct board_view board_look/,/^}/s/memory_order_acquire/memory_order_relaxed/
a second look at a post without a fence (L11c)|link/board.h|/^static inline bool board_holds/,/^}/s/    atomic_thread_fence(memory_order_acquire);//
no second look at a post (L11c)|link/board.h|/^static inline bool board_holds/,/^}/s/return board_shows(.*;/return memory \&\& number;/
a mark that is not made (L11b)|link/channel.h|/^static inline bool channel_mark_post/,/^}/s/    return true;/    return false;/
a mark that is not heeded (L11b)|link/channel.h|s/uint64_t before = next.marked ? channel_before_post(c) : 0;/uint64_t before = 0;/
posts that are looked at before the index (L11b)|link/channel.h|/^static inline size_t channel_look(/,/^}/{s/uint64_t written = channel_seen(c), most = UINT64_MAX;/uint64_t written, most = UINT64_MAX;/;s/^    if (c->board \&\& c->post_at/    written = channel_seen(c);\n&/}
an acquire look for posts (L11)|link/channel.h|s/channel_has_post(c, memory_order_seq_cst)/channel_has_post(c, memory_order_acquire)/
the name of a slot without a fence (L8)|ring/single_copy.h|s/    atomic_thread_fence(memory_order_seq_cst);//
a second look at a name without a fence (L8)|ring/single_copy.h|s/    atomic_thread_fence(memory_order_acquire);//
no second look at a name (L8)|ring/single_copy.h|s/    return single_copy_is_named(head, name);/    return true;/
a name without its number (L8)|ring/single_copy.h|/atomic_store_explicit(&head->number/d
a relaxed wake-up of a loop|base/io_loop.c|s/atomic_exchange(&l->rung, true)/atomic_exchange_explicit(\&l->rung, true, memory_order_relaxed)/
a relaxed end of a wake-up of a loop|base/io_loop.c|s/atomic_exchange(&l->rung, false)/atomic_exchange_explicit(\&l->rung, false, memory_order_relaxed)/
a wake-up that ends after its work|base/io_loop.c|/^static void on_bell/,/^}/{s/    atomic_exchange(&l->rung, false);//;s/    l->woken(user);/    l->woken(user); atomic_exchange(\&l->rung, false);/}
a wake-up that ends before its byte is read|base/io_loop.c|/^static void on_bell/,/^}/{s/    atomic_exchange(&l->rung, false);//;s/    uint64_t count;/    atomic_exchange(\&l->rung, false); uint64_t count;/}
a relaxed wake-up of the coordinator|base/io_wake.c|s/atomic_exchange(&w->sent, true)/atomic_exchange_explicit(\&w->sent, true, memory_order_relaxed)/
a relaxed end of a wake-up of the coordinator|base/io_wake.c|s/atomic_exchange(&w->sent, false)/atomic_exchange_explicit(\&w->sent, false, memory_order_relaxed)/
a wake-up of the coordinator that stays set|base/io_wake.c|s/    atomic_exchange(&w->sent, false);//
MUTANTS
[ "$done" -gt 0 ] || { echo "mutants.sh: no mutant has this name"; exit 1; }
exit "$survived"
