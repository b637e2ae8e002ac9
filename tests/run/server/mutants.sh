#!/bin/sh
# mutants.sh [PATTERN] - breaks one rule of open runs (K10 to K16) at a time and
# shows that test_token, test_master_open or launch_open_run fails. Each line
# below: name | file under src | sed script. The tree is copied; the original is
# never touched. Exit status 1 if a mutant survives, does not apply or does not
# compile, or if the original fails; 77 without OpenSSL.
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
only=${1:-.}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
# All that CMakeLists.txt may name.
for part in "$root"/*; do
    case ${part##*/} in build*) ;; *) cp -r "$part" "$work/" ;; esac
done
cmake -S "$work" -B "$work/build" -DBUILD_TESTING=ON -DPCCL_MPI=OFF \
    -DPCCL_CUDA=OFF -DPCCL_PYTHON_PACKAGE=OFF >"$work/log"
grep -q "by TLS: ON" "$work/log" || { echo "skipped: no OpenSSL"; exit 77; }
build() { make -C "$work/build" test_token test_master_open pccl-master \
    open_rank >"$work/log" 2>&1; }
finds() {
    for test in test_token test_master_open; do
        "$work/build/tests/$test" >"$work/out" 2>&1 || return 0
    done
    PATIENCE=20 sh "$root/tests/run/launch/open_run.sh" \
        "$work/build/bin/pccl-master" "$work/build/tests/open_rank" \
        >"$work/out" 2>&1 || return 0
    return 1
}
build || { cat "$work/log"; exit 1; }
! finds || { cat "$work/out"; echo "the original fails"; exit 1; }
survived=0
while IFS='|' read -r name file script; do
    echo "$name" | grep -q -- "$only" || continue
    cp "$work/src/$file" "$work/kept"
    sed -i "$script" "$work/src/$file"
    if cmp -s "$work/kept" "$work/src/$file"; then
        echo "DOES NOT APPLY $name"
        survived=1
    elif ! build; then
        echo "DOES NOT COMPILE $name"
        survived=1
    elif finds; then
        echo "caught $name: $(grep -m 1 'FAILED' "$work/out")"
    else
        echo "SURVIVED $name"
        survived=1
    fi
    cp "$work/kept" "$work/src/$file"
done <<'MUTANTS'
no signature is checked (K12)|base/secure_token.c|s/if (!is_signed(public_key, text, length, plain + size)) return TOKEN_FORGED;//
a token is of any issuer (K12)|base/secure_token.c|s/ != 0) return TOKEN_OTHER_ISSUER;/ > 256) return TOKEN_OTHER_ISSUER;/
a token is of any run (K10)|base/secure_token.c|s/if (!derive(key, SECURE_KEY_SIZE, "the run of a token", NULL, 0, text))/if (!derive(plain, 0, "the run of a token", NULL, 0, text))/
a seal is not checked (K11)|base/secure_token.c|s/l->EVP_DecryptFinal_ex(c, plain + inner, .n) == 1;/inner > 0;/
a version is like another (K12)|base/secure_token.c|s/if (plain.0. != VERSION) return TOKEN_BROKEN;//
all tokens have one secret (K11)|base/secure_token.c|s/"the secret of a token", sealed, size,/"the secret of a token", sealed, 0 * size,/
any right is one (K12)|base/secure_token.c|s/(t->grant.rights . .all) == 0 ../true \&\&/
bytes behind a token do not count (K12)|base/secure_token.c|s/strlen(t->grant.name) == size/strlen(t->grant.name) <= size/
links have one key for ever (K14)|base/secure_token.c|s/derive(bytes, sizeof bytes, "the key of links"/derive(bytes, 0, "the key of links"/
a token is good before its time (K12)|base/secure_token_text.c|s/return TOKEN_EARLY;/return TOKEN_FINE;/
a token never expires (K12)|base/secure_token_text.c|s/return TOKEN_EXPIRED;/return TOKEN_FINE;/
clocks agree (K12)|base/secure_token_text.c|s/now - TOKEN_CLOCK_SKEW >= token->expires/now >= token->expires/
a revoked name joins (K12)|master/server/master_open.c|s/fault = TOKEN_REVOKED;/fault = TOKEN_FINE;/
a list with an error counts (K15)|master/server/master_open.c|s/    if (!done) {/    if (false) {/
the key of links is nobody's (K14)|master/server/master_open.c|s/if (strcmp(identity, o->links.identity) == 0) return true;//
who is revoked stays (K15)|master/server/master_proof.c|s/            expel(s, i, text);/            (void)text;/
who has expired stays (K15)|master/server/master_proof.c|s/if (s->gate.open.on) ev_timer_start(s->options.loop, .s->recheck);//
who waits for the hook hears nothing (K16)|master/server/master_proof.c|s/if (k .. k->waits) reassure(s, i);/(void)k;/
the hook is asked about everybody (K16)|master/server/master_proof.c|s/!grants_allow(&s->machine, event->link, event->msg, text, sizeof text))/(text[0] = '\\0'))/
the hook's no is a yes (K16)|launch/hook.c|s/WIFEXITED(status) .. WEXITSTATUS(status) == 0/WIFEXITED(status)/
a hook that hangs is waited for (K16)|launch/hook.c|/^static void on_late/,/^}/s/    answer(c, false, why);/    (void)why;/
the hook inherits the environment (K16)|launch/hook.c|s/\.env = env,/.env = environ,/
members keep the key of their tokens (K14)|peer/comm_secure.c|s/if (c->keyed .. c->token) token_link_key/if (c->keyed \&\& !c->token) token_link_key/
MUTANTS
exit $survived
