#!/bin/sh
# Run by cron: forgets jobs that were done more than a week ago.
set -eu
find "$DATA_ROOT/done" -type f -mtime +7 -delete
