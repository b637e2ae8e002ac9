#!/bin/sh
# few_descriptors.sh - a job whose agent may have 60 descriptors; nothing but
# the agent has that limit.
# usage: few_descriptors.sh PCCL_MASTER
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/ssh" <<'END'
#!/bin/sh
shift
ulimit -n 60
exec sh -c "$*"
END
chmod 755 "$folder/ssh"
"$1" --launcher-exec "$folder/ssh" -hosts far:40 -n 40 echo began
