#!/bin/sh
# The worker: takes the files of $DATA_ROOT/inbox one by one. A real one would ask a queue.
set -eu
mkdir -p "$DATA_ROOT/inbox" "$DATA_ROOT/done"
echo "worker started"
while :; do
    for job in "$DATA_ROOT"/inbox/*; do
        [ -f "$job" ] || continue
        echo "job $(basename "$job")"
        mv "$job" "$DATA_ROOT/done/"
    done
    sleep 1
done
