#!/bin/sh
# A step: an executable with a number in front. Steps run in the byte order of their names, in the working copy, as the server's user
# (root on a server of its own). A step that exits with another status than 0 fails the deployment.
#
# CORPUS_PROJECT, CORPUS_ENVIRONMENT, CORPUS_COMMIT, CORPUS_PROJECT_ROOT, CORPUS_DATA_ROOT … say what is deployed;
# GREETING comes from the key env of PILLAR.sample or of the pillar.
set -eu

mkdir -p build
echo "${GREETING:-Hello} from $CORPUS_PROJECT, ${CORPUS_COMMIT:-no commit}" > build/hello.txt
