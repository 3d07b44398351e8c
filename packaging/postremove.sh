#!/bin/sh
# deb: remove, upgrade or purge. Projects are people's: neither removes them.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
if [ "$1" = purge ]; then
	rm -rf /var/lib/corpus-git /etc/corpus-git
	if [ -d /srv/projects ]; then
		echo "corpus-git: /srv/projects, /srv/salt and /srv/pillar are left as they are"
	fi
fi
