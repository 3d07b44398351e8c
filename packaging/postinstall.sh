#!/bin/sh
# deb: configure OLD-VERSION; rpm: 1 for a first installation, 2 for an upgrade.
set -e
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
if [ "$1" = configure ] && [ -z "$2" ] || [ "$1" = 1 ]; then
	systemctl enable --now corpus-git.service
	echo "corpus-git listens on port 2222. Next:  corpus-git key add NAME --admin --file KEY.pub"
else
	# It waits for deployments, and goes on with the new version.
	systemctl try-restart corpus-git.service
fi
