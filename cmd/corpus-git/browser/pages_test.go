//go:build browser

package browser_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// evil is what somebody pushes who wants the pages of others to run it.
const evil = `<script>window.xss=1</script><img id=xss src=x onerror=alert(1)>'"&amp;`

// What people do on the pages, in a real browser, wide and narrow, with real pushes behind it. Each text that a push can bring has markup in it.
func TestPages(t *testing.T) {
	m := newMachine(t)
	m.must("ssh-keygen -q -t ed25519 -N '' -C 'marie@laptop' -f key")
	browser := chromium(t)
	for _, s := range []size{{"wide", 1280, 900}, {"narrow", 390, 844}} {
		t.Run(s.name, func(t *testing.T) {
			v := &visit{tab: openTab(t, browser, m, s), name: "shop-" + s.name}
			v.do(chromedp.Navigate(m.loginLink()))
			v.create()
			v.key()
			v.push()
			v.rollback()
			v.task()
			v.plan()
			v.cancel()
			v.failure()
			v.approval()
			v.others()
			v.withoutScript()
			v.logout()
		})
	}
}

// visit is one person with one project.
type visit struct {
	*tab
	name string
}

func (v *visit) create() {
	v.looks("home-first")
	v.press("Create a project…")
	v.fill(map[string]string{"name": "No Name"})
	v.press("Create")
	v.shows("[role=alert]", "name")
	v.looks("create-refused")
	v.fill(map[string]string{"name": v.name})
	v.press("Create")
	v.shows("h1", v.name)
	v.shows("main", "None yet")
	require.Contains(v.t, v.m.run("project", "list"), v.name)
	v.looks("project-new")
}

// key lets the one push who will: the first visit adds the key, the second is told that it is there.
func (v *visit) key() {
	pub, err := os.ReadFile(filepath.Join(v.m.home, "key.pub"))
	require.NoError(v.t, err)
	v.open("/keys")
	v.fill(map[string]string{"name": "laptop", "key": string(pub)})
	v.click("main [name=admin]")
	v.press("Add the key")
	if v.size.name == "wide" {
		v.shows("tbody th", "laptop")
	} else {
		v.shows("[role=alert]", "laptop")
	}
	require.Contains(v.t, v.m.run("key", "list"), "laptop")
	v.looks("keys")
}

// push makes a project and pushes it, while its page is open: what the page shows changes by itself.
func (v *visit) push() {
	v.m.write(v.name+"/.salt/0100_build.sls", "build:\n  cmd.run:\n    - name: |\n        printf '%s\\n' '"+shellQuoted(evil)+"'\n        echo slow={{ cfg.data.get('slow', 0) }}; sleep {{ cfg.data.get('slow', 0) }}\n"+
		"\""+yamlQuoted(evil)+"\":\n  file.managed:\n    - name: {{ cfg.data_root }}/built\n    - contents: one\n")
	v.m.write(v.name+"/.salt/0150_test", "#!/bin/sh\ncp report.xml \"$CORPUS_TEST_REPORTS/unit.xml\"\n")
	require.NoError(v.t, os.Chmod(filepath.Join(v.m.home, v.name, ".salt/0150_test"), 0o755))
	text := xmlQuoted(evil)
	v.m.write(v.name+"/report.xml", `<testsuite><testcase classname="cart" name="adds" time="0.2"/><testcase classname="`+text+`" name="`+text+`"><failure message="`+text+`"/></testcase></testsuite>`)
	v.m.write(v.name+"/.salt/task_greet.sls", "greet:\n  cmd.run:\n    - name: echo \"hello $WHO\"\n    - env:\n      - WHO: {{ cfg.data.get('who', 'nobody')|tojson }}\n")
	v.m.write(v.name+"/index.html", "one\n")
	v.open("/projects/" + v.name)
	v.commit("first "+evil, true)
	v.shows(".timeline .state", "live")
	v.shows(".timeline .subject", "first "+evil[:20])
	v.m.write(v.name+"/index.html", "two\n")
	v.m.write(v.name+"/report.xml", `<testsuite><testcase classname="cart" name="adds" time="0.2"/><testcase classname="cart" name="is empty" time="0.1"/></testsuite>`)
	v.commit("second", true)
	v.shows(".timeline .subject", "second")
	v.shows(".timeline", "author Marie &lt;b id=xss")
	v.shows("figure", "2 tests, none failed")
	v.looks("project")
	v.open(v.link(`.timeline > li:nth-child(2) .line1 a`))
	v.shows("#log", evil)
	v.shows(".failures", evil)
	v.looks("deployment")
	v.fill(map[string]string{"q": "BUILD"})
	v.press("Search")
	v.shows("main", "lines")
	v.looks("deployment-search")
}

func (v *visit) commit(subject string, goesLive bool) {
	v.t.Helper()
	out, ok := v.m.shell("cd " + v.name + "; git init -q 2>/dev/null; git add -A; git commit -q -m '" + shellQuoted(subject) + "'; git push -q ssh://deploy@" + v.m.ssh + "/" + v.name + ".git master")
	require.Equal(v.t, goesLive, ok, out)
}

func (v *visit) link(selector string) string {
	return eval[string](v.tab, `document.querySelector("`+selector+`").getAttribute("href")`)
}

func (v *visit) index() string {
	text, err := os.ReadFile(filepath.Join(v.m.home, "root/projects", v.name, "project/index.html"))
	require.NoError(v.t, err)
	return string(text)
}

func (v *visit) rollback() {
	require.Equal(v.t, "two\n", v.index())
	v.open("/projects/" + v.name)
	v.press("roll back to it…")
	v.shows("main", "first")
	v.looks("rollback")
	v.press("Roll back")
	v.shows("#state", "live")
	require.Equal(v.t, "one\n", v.index())
	v.shows("main", "rollback")
	v.looks("rolled-back")
}

func (v *visit) task() {
	v.open("/projects/" + v.name + "/tasks")
	v.fill(map[string]string{"set": "data.who=" + evil})
	v.looks("task")
	v.press("Run the task")
	v.shows("#state", "done")
	v.shows("h1 + dl, .facts", "task greet")
	v.shows("#log", "hello "+evil)
	v.looks("task-done")
}

func (v *visit) plan() {
	v.open("/projects/" + v.name + "/deploy")
	v.fill(map[string]string{"set": "data.who=somebody"})
	v.looks("deploy")
	v.press("Plan first")
	v.shows("#state", "done")
	v.looks("plan")
	v.press("Deploy what was planned…")
	require.Equal(v.t, "data.who=somebody", eval[string](v.tab, `document.querySelector("[name=set]").value`))
	v.press("Deploy now")
	v.shows("#state", "live")
	v.looks("deployed")
	require.Regexp(v.t, `deploy .*`+v.name, v.m.run("audit"))
}

func (v *visit) cancel() {
	v.open("/projects/" + v.name + "/deploy")
	v.fill(map[string]string{"set": "data.slow=600"})
	v.press("Deploy now")
	v.shows("#log", "0100_build")
	v.looks("running")
	v.press("Cancel…")
	v.looks("cancel")
	v.press("Cancel the deployment")
	v.shows("#state", "rolled back")
	v.looks("cancelled")
}

func (v *visit) failure() {
	v.m.write(v.name+"/.salt/0200_break.sls", "break:\n  cmd.run:\n    - name: echo '"+shellQuoted(evil)+"'; exit 3\n")
	v.commit("breaks", false)
	v.open("/projects/" + v.name)
	v.open(v.link(`.timeline > li:first-child .line1 a`))
	v.shows("#state", "rolled back")
	v.shows(".reason", "0200_break")
	require.True(v.t, eval[bool](v.tab, `document.querySelector("details[data-step^='0200_break']").open && !document.querySelector("details[data-step^='0100_build']").open`), "the step that failed is open, the others are folded")
	v.looks("failed")
	v.open("/?show=failed")
	v.shows("tbody th", v.name)
	v.open("/")
	v.looks("home")
}

// approval: what marie pushes in staging waits until the one at the browser approves it; another one is rejected.
func (v *visit) approval() {
	staged := &visit{tab: v.tab, name: v.name + "-staged"}
	v.m.run("project", "create", staged.name, "--env", "staging")
	v.m.write(staged.name+"/.salt/0100_page.sls", "page:\n  file.managed:\n    - name: {{ cfg.data_root }}/page\n    - contents: one\n")
	v.m.write(staged.name+"/index.html", "one\n")
	staged.commit("wanted "+evil, false)
	v.open("/?show=approval")
	v.shows("main", "waits for approval")
	v.shows("tbody", staged.name)
	v.looks("home-approval")
	v.open("/projects/" + staged.name)
	v.shows("#approvals", "Waiting for approval")
	v.shows(".ask", "0 of 1 approval")
	v.looks("project-approval")
	v.open(v.link(".line1 a[href$='/approve']"))
	v.shows("main", "wanted "+evil[:20])
	v.looks("approve")
	v.press("Approve")
	v.shows("#state", "live")
	require.Equal(v.t, "one\n", staged.index())
	v.looks("approved")
	v.m.write(staged.name+"/index.html", "two\n")
	staged.commit("not wanted", false)
	v.open("/projects/" + staged.name)
	v.open(v.link(".timeline > li:first-child .line1 a"))
	v.looks("deployment-approval")
	v.press("Approve or reject…")
	v.fill(map[string]string{"reason": "not now " + evil})
	v.press("Reject")
	v.shows(".ask", "not now "+evil)
	v.shows(".ask .state", "rejected")
	v.looks("rejected")
	require.Equal(v.t, "one\n", staged.index())
}

// others are the pages that only show.
func (v *visit) others() {
	for _, part := range []string{"archives", "statistics", "units", "cfg", "access", "notifications", "audit"} {
		v.open("/projects/" + v.name + "/" + part)
		v.shows("nav.tabs [aria-current]", "")
		v.looks(part)
	}
	v.open("/audit")
	v.shows("td", "project create")
	v.looks("audit-all")
	v.open("/system")
	v.press("Check the server and its data now")
	v.shows("tbody th", "projects")
	v.looks("system")
	v.open("/projects/none")
	v.shows(".reason", "no project")
	v.looks("none")
}

// withoutScript deploys without JavaScript: the page of the deployment reads itself again.
func (v *visit) withoutScript() {
	v.scripts(false)
	v.open("/projects/" + v.name + "/deploy")
	v.click("button[value=deploy]")
	v.do(chromedp.WaitVisible(chromedp.CSS("#state.good")))
	v.picture("without-script")
	v.scripts(true)
}

func (v *visit) logout() {
	v.open("/")
	v.click("header button")
	v.shows("body", "You are logged out.")
	err := chromedp.Do(v.ctx, chromedp.Navigate("http://"+v.m.http+"/projects/"+v.name))
	require.ErrorContains(v.t, err, "AUTH", "the browser has nothing any more that lets it in")
}
