//go:build containers

package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// Every skeleton is deployed as it is to a Debian 12 that has booted, visited, broken, seen to be what it was before, and removed.
func TestContainerSkeletons(t0 *testing.T) {
	var shared *machine // by all, until one fails and leaves something in it
	for _, s := range []struct {
		name string
		// proves is a script that succeeds while the skeleton works as it was written.
		proves string
		// breaks changes the working copy so that the deployment fails, late.
		breaks string
	}{
		{"shell", `grep 'Hello from shell' /srv/projects/shell/project/build/hello.txt && grep greeting=Hello /srv/projects/shell/data/settings`,
			`printf '#!/bin/sh\necho broken > build/hello.txt; exit 1\n' > .salt/030_no.sh; chmod 755 .salt/030_no.sh; sed -i s/greeting=/welcome=/ .salt/020_settings.sls`},
		{"static", `curl -sS --fail -H 'Host: static.localhost' http://127.0.0.1/ | grep 'It works' && nginx -t`,
			`sed -i 's/It works/Broken/' public/index.html; sed -i 's/try_files/tri_files/' .salt/files/nginx.conf`},
		{"python", `curl -sS --fail -H 'Host: python.localhost' http://127.0.0.1/ | grep 'It works' && systemctl is-active python && nginx -t`,
			`sed -i 's/It works/Broken/; s/"status": "ok"/"status": "bad"/' app.py`},
		{"php", `curl -sS --fail -H 'Host: php.localhost' http://127.0.0.1/some/page | grep 'It works' && nginx -t && php-fpm8.2 --test`,
			`sed -i 's/It works/Broken/; s/=> .ok./=> 1/' public/index.php; sed -i 's/ondemand/static/' .salt/files/pool.conf`},
		{"node", `curl -sS --fail -H 'Host: node.localhost' http://127.0.0.1/ | grep 'It works' && systemctl is-active node`,
			`sed -i 's/It works/Broken/; s/status: .ok./status: 1/' server.js`},
		{"worker", `systemctl is-active worker && touch /srv/projects/worker/data/inbox/job && sleep 2 && test -e /srv/projects/worker/data/done/job && rm /srv/projects/worker/data/done/job && crontab -u worker-user -l | grep nightly.sh`,
			`printf '#!/bin/sh\nexit 1\n' > worker.sh; sed -i s/nightly.sh/weekly.sh/ .salt/040_cron.sls`},
		{"django", `curl -sS --fail -H 'Host: django.localhost' http://127.0.0.1/ | grep 'It works.*0 notes' && curl -sS --fail -H 'Host: django.localhost' http://127.0.0.1/static/notes/style.css | grep margin
echo uploaded >/srv/projects/django/data/media/file && curl -sS --fail -H 'Host: django.localhost' http://127.0.0.1/media/file | grep uploaded
! runuser -u www-data -- cat /srv/projects/django/data/secret && ! runuser -u www-data -- cat /srv/projects/django/data/db.sqlite3`,
			`sed -i 's/It works/Broken/; s/"status": "ok"/"status": "bad"/' notes/views.py; echo 'body { display: none }' > notes/static/notes/style.css`},
		{"ruby", `curl -sS --fail -H 'Host: ruby.localhost' http://127.0.0.1/ | grep 'It works' && systemctl is-active ruby`,
			`sed -i "s/It works/Broken/; s/status: 'ok'/status: 'bad'/" app.rb`},
		{"go", `curl -sS --fail -H 'Host: go.localhost' http://127.0.0.1/ | grep 'It works' && systemctl is-active go`,
			`sed -i 's/It works/Broken/; s/"status": "ok"/"status": 1, "ok": 1/' main.go; git rm -q main_test.go`},
		{"multi", `curl -sS --fail -H 'Host: multi.localhost' http://127.0.0.1/ | grep 'It works: this' && curl -sS --fail -H 'Host: multi.localhost' http://127.0.0.1/api/greeting | grep greeting && systemctl is-active multi-web multi-api`,
			`sed -i 's/this page was/nothing was/; s/"status": "ok"/"status": "bad"/' api/app.py`},
		{"zero-downtime", `curl -sS --fail -H 'Host: zero-downtime.localhost' http://127.0.0.1/ | grep 'It works' && nginx -t`,
			`sed -i 's/It works/Broken/; s/"status": "ok"/"status": "bad"/' app.py`},
		{"compose", `curl -sS --fail -H 'Host: compose.localhost' http://127.0.0.1/ | grep 'It works' && systemctl is-active compose`,
			`echo Broken > public/index.html; echo '{"status": "bad"}' > public/health.json`},
	} {
		t0.Run(s.name, func(t *testing.T) {
			if shared == nil {
				shared = boot(t0)
			}
			m := *shared
			m.t = t
			defer func() {
				if t.Failed() {
					out, _ := m.try("journalctl --no-pager -n 40 -u '" + s.name + "*'; tail -n 40 /var/log/" + s.name + "/*.log")
					t.Log(out)
					shared = nil
				}
			}()
			// Which of the two units serves is not what is compared: it changes with every deployment, and when one is rolled back.
			outside := func() string {
				var keep []string
				for line := range strings.Lines(m.outside()) {
					if s.name != "zero-downtime" || !strings.HasPrefix(line, "/etc/nginx/conf.d/zero-downtime.conf ") {
						keep = append(keep, line)
					}
				}
				return strings.Join(keep, "")
			}
			before := outside()
			if s.name == "compose" {
				m.busybox()
			}
			m.deploy(s.name)
			m.soon(s.proves)
			m.run("corpus-git task " + s.name + " backup && ls /srv/projects/" + s.name + "/data/backups/*.tar.gz")
			live := outside()
			said := m.fail("cd " + s.name + "\n" + s.breaks + "\ngit add -A; git commit -qm Two; git push prod master")
			if !strings.Contains(said, "rolled back") {
				t.Errorf("the push does not say that it was rolled back:\n%s", said)
			}
			m.soon(s.proves)
			if now := outside(); now != live {
				t.Errorf("outside of the project is not what was before:\n%s", diff(live, now))
			}
			m.run("cd " + s.name + "; git reset -q --hard HEAD^; git commit -q --allow-empty -m Three; git push prod master")
			m.soon(s.proves)
			m.run("corpus-git project destroy " + s.name + " --yes --data; corpus-git project list | grep -v " + s.name)
			if after := outside(); after != before {
				t.Errorf("a trace is left:\n%s", diff(before, after))
			}
			m.run("! systemctl --failed --plain --no-legend | grep . && nginx -t && ! ls /srv/projects/" + s.name)
		})
	}
}

// The first release of an application does not start, and systemd tries it again and again. Nothing of it stays.
func TestContainerFirstFails(t *testing.T) {
	m := boot(t)
	before := m.outside()
	said := m.fail(`corpus-git project create node; corpus-git access grant node dev deploy; corpus-git init --skeleton node node
cd node; echo 'process.exit(1)' > server.js; git init -q; git add -A; git commit -qm One; git remote add prod ssh://deploy@127.0.0.1:2222/node/project.git; git push prod master`)
	// What systemd says of the unit depends on the moment at which it is asked: the check of the unit may fail, too.
	if !regexp.MustCompile(`\(checks? home(, unit)? failed; rolled back\)`).MatchString(said) || strings.Contains(said, "somebody else") {
		t.Errorf("said:\n%s", said)
	}
	m.run(`! systemctl --all --plain --no-legend list-units 'node*' | grep . && ! systemctl --failed --plain --no-legend | grep . && nginx -t`)
	if after := m.outside(); after != before {
		t.Errorf("a trace is left:\n%s", diff(before, after))
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

// Visitors ask fifty times a second while ten releases are pushed, five of which fail, each in another way. Every request is answered, and by a
// release that answers rightly.
func TestContainerZeroDowntime(t *testing.T) {
	m := boot(t)
	m.deploy("zero-downtime")
	release := func(text, breaks string) string {
		return "cd zero-downtime; git reset -q --hard prod/master; sed -i 's/return \"[^{].*/return \"" + text + "\\\\n\"/' app.py\n" + breaks + "\ngit add -A; git commit -qm '" + text + "'; git push prod master"
	}
	m.run(release("good 0", ""))
	stop := m.everySecond(50, "zero-downtime")
	late := "  cmd.run:\\n    - name: exit 1\\n"
	for i, breaks := range []struct{ how, says string }{
		{"echo 'raise SystemExit(1)' >> app.py", "failed in 030_release, state zero-downtime-ready"},
		{`sed -i 's/"status": "ok"/"status": "bad"/' app.py`, "failed in 030_release, state zero-downtime-ready"},
		{"sed -i 's/max_fails/max_tails/' .salt/files/upstream.conf", "failed in 040_nginx, state zero-downtime-nginx-test"},
		{"printf 'late:\\n" + late + "' > .salt/050_late.sls", "failed in 050_late, state late"},
		{"sed -i 's/json: {status: ok}/json: {status: well}/' .salt/PILLAR.sample", "check home failed"},
	} {
		m.run(release(fmt.Sprint("good ", i+1), ""))
		if said := m.fail(release(fmt.Sprint("broken ", i+1), breaks.how)); !strings.Contains(said, breaks.says+"; rolled back)") {
			t.Errorf("%s: said:\n%s", breaks.how, said)
		}
	}
	answers := stop()
	total := 0
	for answer, n := range answers {
		total += n
		switch answer {
		case "200 good 0", "200 good 1", "200 good 2", "200 good 3", "200 good 4", "200 good 5":
		case "200 It works: this page was deployed by a git push.": // the first release: a worker of nginx from before a reload may still answer for a moment after it (nginx.org, Controlling nginx)
		case "200 broken 4", "200 broken 5": // it answered rightly: what fails is asked after it began to serve
		default:
			t.Errorf("%d requests were answered by %q", n, answer)
		}
	}
	t.Logf("%d requests: %v", total, answers)
	if answers["200 good 5"] == 0 || total < 500 {
		t.Errorf("visitors got %d answers: %v", total, answers)
	}
	if got := strings.TrimSpace(m.visit("zero-downtime")); got != "good 5" {
		t.Errorf("visitors read %q", got)
	}
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
