//go:build containers

package main

import (
	"strings"
	"testing"
)

// Every skeleton is deployed as it is to a Debian 12 that has booted, visited, broken, seen to be what it was before, and removed.
func TestContainerSkeletons(t *testing.T) {
	m := boot(t)
	for _, s := range []struct {
		name string
		// proves is a script that succeeds while the skeleton works as it was written.
		proves string
		// breaks changes the working copy so that the deployment fails, late.
		breaks string
		// removes says that the task remove is there.
		removes bool
	}{
		{"shell", `grep 'Hello from shell' /srv/projects/shell/project/build/hello.txt && grep greeting=Hello /srv/projects/shell/data/settings`,
			`echo 'echo broken > build/hello.txt; exit 1' > .salt/030_no.sh; chmod 755 .salt/030_no.sh; sed -i s/greeting=/welcome=/ .salt/020_settings.sls`, false},
		{"static", `curl -sS --fail -H 'Host: static.localhost' http://127.0.0.1/ | grep 'It works' && nginx -t`,
			`sed -i 's/It works/Broken/' public/index.html; sed -i 's/try_files/tri_files/' .salt/files/nginx.conf`, true},
		{"python", `curl -sS --fail -H 'Host: python.localhost' http://127.0.0.1/ | grep 'It works' && systemctl is-active python && nginx -t`,
			`sed -i 's/It works/Broken/; s/"status": "ok"/"status": "bad"/' app.py`, true},
		{"php", `curl -sS --fail -H 'Host: php.localhost' http://127.0.0.1/some/page | grep 'It works' && nginx -t && php-fpm8.2 --test`,
			`sed -i 's/It works/Broken/; s/=> .ok./=> 1/' public/index.php; sed -i 's/ondemand/static/' .salt/files/pool.conf`, true},
		{"node", `curl -sS --fail -H 'Host: node.localhost' http://127.0.0.1/ | grep 'It works' && systemctl is-active node`,
			`sed -i 's/It works/Broken/; s/status: .ok./status: 1/' server.js`, true},
		{"worker", `systemctl is-active worker && touch /srv/projects/worker/data/inbox/job && sleep 2 && test -e /srv/projects/worker/data/done/job && rm /srv/projects/worker/data/done/job && crontab -u worker-user -l | grep nightly.sh`,
			`printf '#!/bin/sh\nexit 1\n' > worker.sh; sed -i s/nightly.sh/weekly.sh/ .salt/040_cron.sls`, true},
	} {
		t.Run(s.name, func(t *testing.T) {
			m := *m
			m.t = t
			before := m.outside()
			m.deploy(s.name)
			m.soon(s.proves)
			m.run("corpus-git task " + s.name + " backup && ls /srv/projects/" + s.name + "/data/backups/*.tar.gz")
			live := m.outside()
			said := m.fail("cd " + s.name + "\n" + s.breaks + "\ngit add -A; git commit -qm Two; git push prod master")
			if !strings.Contains(said, "rolled back") {
				t.Errorf("the push does not say that it was rolled back:\n%s", said)
			}
			m.soon(s.proves)
			if now := m.outside(); now != live {
				t.Errorf("outside of the project is not what was before:\n%s", diff(live, now))
			}
			m.run("cd " + s.name + "; git reset -q --hard HEAD^; git commit -q --allow-empty -m Three; git push prod master")
			m.soon(s.proves)
			if s.removes {
				m.run("corpus-git task " + s.name + " remove")
			}
			m.run("corpus-git project destroy " + s.name + " --yes --data; corpus-git project list | grep -v " + s.name)
			if after := m.outside(); after != before {
				t.Errorf("a trace is left:\n%s", diff(before, after))
			}
			m.run("! systemctl --failed --plain --no-legend | grep . && nginx -t && ! ls /srv/projects/" + s.name)
		})
	}
}

// A release of a web application answers wrongly. The check fails, the old code comes back, and so does the service: it is restarted with that code,
// and does not go on with what it had loaded.
func TestContainerFlaskStory(t *testing.T) {
	m := boot(t)
	m.deploy("python")
	m.run(`cd python; sed -i 's/It works.*\\n"/v1\\n"/' app.py; git commit -qam v1; git push prod master`)
	if got := strings.TrimSpace(m.visit("python")); got != "v1" {
		t.Fatalf("visitors read %q", got)
	}

	// The new code fails before the service is restarted: nobody ever sees it.
	stop := m.visitor("python")
	said := m.fail(`cd python; sed -i 's/v1/v2/' app.py; printf 'migrate:\n  cmd.run:\n    - name: echo no database >&2; exit 1\n' > .salt/025_migrate.sls; git add -A; git commit -qm v2; git push prod master`)
	for answer, n := range stop() {
		if answer != "v1" {
			t.Errorf("visitors read %q %d times during a push that failed before the restart", answer, n)
		}
	}
	if !strings.Contains(said, "failed in 025_migrate, state migrate; rolled back") {
		t.Errorf("said:\n%s", said)
	}
	m.run(`curl -sS --fail -H 'Host: python.localhost' http://127.0.0.1/ | grep v1`)

	// It fails after the restart: the last steps find that it does not work.
	said = m.fail(`cd python; git rm -qf .salt/025_migrate.sls; sed -i 's/"status": "ok"/"status": "bad"/' app.py; git commit -qam v2; git push prod master`)
	if !strings.Contains(said, "check home failed; rolled back") {
		t.Errorf("said:\n%s", said)
	}
	stop = m.visitor("python")
	m.run("sleep 2; systemctl is-active python; ! corpus-git report python | grep 500")
	for answer, n := range stop() {
		if answer != "v1" {
			t.Errorf("visitors read %q %d times after the rollback", answer, n)
		}
	}

	// The workers run the files that are live, not those of a folder that is gone.
	m.run(`for p in $(pgrep -u python-user); do readlink /proc/$p/cwd; done | sort -u | grep -qx /srv/projects/python/project`)
}

// A site that nginx refuses stays nowhere: nginx -t passes, and visitors read the old pages all the time.
func TestContainerNginxStory(t *testing.T) {
	m := boot(t)
	m.deploy("static")
	m.run(`cd static; echo v1 > public/index.html; git commit -qam v1; git push prod master`)
	stop := m.visitor("static")
	said := m.fail(`cd static; sed -i 's/try_files/tri_files/' .salt/files/nginx.conf; git commit -qam v2; git push prod master`)
	if !strings.Contains(said, "unknown directive") || !strings.Contains(said, "rolled back") {
		t.Errorf("said:\n%s", said)
	}
	m.run("nginx -t && systemctl restart nginx && sleep 1")
	if got := strings.TrimSpace(m.visit("static")); got != "v1" {
		t.Errorf("visitors read %q", got)
	}
	answers := stop()
	delete(answers, "000") // nginx was restarted, by this test
	if len(answers) != 1 || answers["v1"] == 0 {
		t.Errorf("visitors read %v", answers)
	}
}

// The server is killed while it undoes what a failed deployment did, early and late. It is started again, and ends the same way.
func TestContainerKilledInUndo(t *testing.T) {
	m := boot(t)
	m.deploy("python")
	live := m.outside()
	for _, wait := range []string{"0", "0.2", "0.5", "1", "2"} {
		m.run(`cd python; git reset -q --hard prod/master; sed -i 's/It works/Broken/; s/"status": "ok"/"status": "bad"/' app.py
sed -i 's/Description=.*/Description=broken/' .salt/files/unit.service; sed -i 's/10m/20m/' .salt/files/nginx.conf; git commit -qam Broken`)
		m.run(`cd python
(git push prod master >/root/said 2>&1 || true) &
while ! grep -qs '"procedure":"rollback"' $(ls -t /srv/.corpus-git/events/python/*.jsonl | head -1); do sleep .02; done
sleep ` + wait + `
systemctl kill --kill-whom=main --signal=KILL corpus-git || true
wait`)
		m.run(`for i in $(seq 300); do corpus-git deployments python >/root/list 2>/dev/null && ! grep -qE 'running|rolling' /root/list && break; sleep .1; done; cat /root/list; grep -c 'rolled back' /root/list`)
		m.run(`for i in $(seq 100); do curl -sS --fail -H 'Host: python.localhost' http://127.0.0.1/ | grep 'It works' && break; sleep .1; done
curl -sS --fail -H 'Host: python.localhost' http://127.0.0.1/ | grep 'It works'; nginx -t; test "$(git -C /root/python rev-parse prod/master)" = "$(git ls-remote ssh://deploy@127.0.0.1:2222/python/project.git refs/heads/master | cut -f1)"`)
		if now := m.outside(); now != live {
			t.Fatalf("killed %s s after the rollback began: outside of the project is not what was before:\n%s", wait, diff(live, now))
		}
	}
}

// diff gives the lines that only one of two texts has.
func diff(a, b string) string {
	count := map[string]int{}
	for line := range strings.SplitSeq(a, "\n") {
		count[line]--
	}
	for line := range strings.SplitSeq(b, "\n") {
		count[line]++
	}
	var out strings.Builder
	for line, n := range count {
		switch {
		case n < 0:
			out.WriteString("- " + line + "\n")
		case n > 0:
			out.WriteString("+ " + line + "\n")
		}
	}
	return out.String()
}
