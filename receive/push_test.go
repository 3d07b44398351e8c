package receive_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/access"
	"corpus-git/internal/event"
	"corpus-git/project"
	"corpus-git/receive"
)

func TestGoodPush(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("a", "app/project.git")
	head := w.git(dir, "rev-parse", "HEAD")
	o := w.push("marie", dir, "prod", "main")
	require.Zero(t, o.exit, o.all())
	require.Contains(t, o.err, "remote: -----> app  none.."+head[:7]+"  by marie")
	require.Contains(t, o.err, "remote: =====> live")
	require.Contains(t, o.err, "main -> main")
	require.Equal(t, map[string]string{"HEAD": head, "refs/heads/main": head}, w.remoteRefs(dir))
	ds := w.deployer.started()
	require.Len(t, ds, 1)
	require.Equal(t, project.TriggerPush, ds[0].Trigger)
	require.Equal(t, project.Change{Ref: "refs/heads/main", New: project.Commit(head)}, ds[0].Change)
	require.Equal(t, project.Commit(head), ds[0].Code)
	require.Equal(t, "marie", ds[0].Pusher.Key)
	require.True(t, strings.HasPrefix(ds[0].Pusher.Fingerprint, "SHA256:"))
	require.Empty(t, w.quarantines("app", project.Code))

	// Again, with a change; then with an unrelated history.
	second := w.commit(dir, "README", "two\n")
	o = w.push("marie", dir, "prod", "main")
	require.Zero(t, o.exit, o.all())
	require.Equal(t, second, w.remoteRefs(dir)["refs/heads/main"])
	require.False(t, w.deployer.started()[1].Forced)
	w.git(dir, "checkout", "-q", "--orphan", "other")
	third := w.commit(dir, "README", "three\n")
	o = w.push("marie", dir, "-f", "prod", "HEAD:main")
	require.Zero(t, o.exit, o.all())
	require.Equal(t, third, w.remoteRefs(dir)["refs/heads/main"])
	require.True(t, w.deployer.started()[2].Forced)
}

func TestFailingPush(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("a", "app")
	first := w.git(dir, "rev-parse", "HEAD")
	require.Zero(t, w.push("marie", dir, "prod", "main:master").exit)
	w.commit(dir, "README", "two\n")
	w.deployer.set(broken)
	for range 2 { // the same push again tries again
		o := w.push("marie", dir, "prod", "main:master")
		require.Equal(t, 1, o.exit, o.all())
		require.Contains(t, o.err, "! [remote rejected] main -> master (failed in 0100_build, state npm-install; rolled back)")
		require.Contains(t, o.err, "remote:        ! 2/4 0100_build  failed after 12.4s")
		require.Equal(t, first, w.remoteRefs(dir)["refs/heads/master"])
	}
	require.Len(t, w.deployer.started(), 3)
	es, err := w.audit.List(context.Background(), "app", 10)
	require.NoError(t, err)
	require.Len(t, es, 1, "what was deployed is the Deployer's to record: here is the grant alone")
	o := w.push("marie", dir, "prod", "HEAD:refs/heads/x")
	require.Equal(t, 1, o.exit)
	es, err = w.audit.List(context.Background(), "app", 1)
	require.NoError(t, err)
	require.Equal(t, "push", es[0].Action)
	require.Equal(t, "refused", es[0].Outcome)
	require.Equal(t, "marie", es[0].Actor)
	require.Contains(t, es[0].Object, "refs/heads/x")
	require.Contains(t, es[0].Detail, "is not the deployed branch")
}

func TestPillar(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("p", "app/pillar.git")
	o := w.push("marie", dir, "prod", "main")
	require.NotZero(t, o.exit)
	require.Contains(t, o.err, `marie may not push to pillar.git of app: it requires configure permission`)
	require.NoError(t, w.keys.Grant(context.Background(), access.Local("root"), "app", "marie", project.Configure))
	o = w.push("marie", dir, "prod", "main")
	require.Zero(t, o.exit, o.all())
	d := w.deployer.started()[0]
	require.Equal(t, project.PillarRepo, d.Repo)
	require.Equal(t, w.git(dir, "rev-parse", "HEAD"), string(d.Pillar))
	require.Empty(t, d.Code)
}

func TestOtherBranch(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("a", "app/project.git")
	o := w.push("marie", dir, "prod", "HEAD:refs/heads/feature")
	require.Equal(t, 1, o.exit, o.all())
	require.Contains(t, o.err, "hint: to deploy it, type  git push prod feature:master")
	require.Zero(t, w.push("marie", dir, "prod", "main").exit)
	o = w.push("marie", dir, "prod", "HEAD:refs/heads/feature")
	require.Equal(t, 1, o.exit, o.all())
	require.Contains(t, o.err, "! [remote rejected]")
	require.Contains(t, o.err, "hint: to deploy it, type  git push prod feature:main")
	o = w.push("marie", dir, "prod", "HEAD:master")
	require.Equal(t, 1, o.exit, o.all())
	require.Contains(t, o.err, "master is not the deployed branch (main is)")
	require.Len(t, w.deployer.started(), 1)
	require.Empty(t, w.quarantines("app", project.Code))

	w.projects.set("app", receive.Settings{StoreOtherBranches: true})
	o = w.push("marie", dir, "prod", "HEAD:refs/heads/feature")
	require.Zero(t, o.exit, o.all())
	require.Contains(t, o.err, "feature is stored, not deployed: main deploys")
	require.Contains(t, w.remoteRefs(dir), "refs/heads/feature")
	require.Len(t, w.deployer.started(), 1)

	o = w.push("marie", dir, "prod", ":feature")
	require.Zero(t, o.exit, o.all())
	require.NotContains(t, w.remoteRefs(dir), "refs/heads/feature")
	o = w.push("marie", dir, "prod", ":main")
	require.Equal(t, 1, o.exit)
	require.Contains(t, o.err, "cannot be deleted")
}

func TestBothBranchesAtOnce(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("a", "app/project.git")
	w.git(dir, "branch", "master")
	o := w.push("marie", dir, "prod", "main", "master")
	require.Equal(t, 1, o.exit, o.all())
	require.Contains(t, o.err, "main is not the deployed branch (master is)")
	require.Equal(t, "refs/heads/master", w.deployer.started()[0].Change.Ref)
	require.Contains(t, w.remoteRefs(dir), "refs/heads/master")
}

// The checkout of a first deployment happens before the branch exists; it is on that branch all the same.
func TestFirstBranchIsKnownBeforeItExists(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("a", "app/project.git")
	heads := make(chan string, 2)
	see := func(d project.Deployment, log *event.Log) project.Result {
		if _, err := w.repos.Open("app", project.Code).Checkout(context.Background(), project.Checkout{Commit: d.Code, Dir: w.path("live"), Submodules: project.Submodules{Fetch: true}}); err != nil {
			return project.Result{State: project.Failed, Reason: err.Error()}
		}
		text, _ := os.ReadFile(w.path("live", ".git", "HEAD"))
		heads <- string(text)
		return broken(d, log)
	}
	w.deployer.set(see)
	require.Equal(t, 1, w.push("marie", dir, "prod", "main").exit)
	require.Equal(t, "ref: refs/heads/main\n", <-heads)
	// It failed, so the deployed branch is not decided yet.
	o := w.push("marie", dir, "prod", "main:master")
	require.Equal(t, 1, o.exit)
	require.Contains(t, o.err, "rolled back")
	require.Equal(t, "ref: refs/heads/master\n", <-heads)
}

func TestTags(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("a", "app/project.git")
	w.git(dir, "tag", "-a", "-m", "one", "v1")
	w.git(dir, "tag", "light")
	w.deployer.set(broken)
	o := w.push("marie", dir, "prod", "main", "v1")
	require.Equal(t, 1, o.exit)
	require.Contains(t, o.err, "v1 -> v1 (not stored, because main was rejected)")
	require.Empty(t, w.remoteRefs(dir))
	w.deployer.set(live)
	o = w.push("marie", dir, "--follow-tags", "prod", "main")
	require.Zero(t, o.exit, o.all())
	require.Contains(t, w.remoteRefs(dir), "refs/tags/v1")
	require.Zero(t, w.push("marie", dir, "prod", "light").exit)
	require.Contains(t, w.remoteRefs(dir), "refs/tags/light")
	require.Len(t, w.deployer.started(), 2, "a tag deploys nothing")
	require.Zero(t, w.push("marie", dir, "prod", ":refs/tags/v1").exit)
	require.NotContains(t, w.remoteRefs(dir), "refs/tags/v1")
	w.git(dir, "fsck", "--strict")
	w.git(w.repos.Open("app", project.Code).Dir(), "fsck", "--strict")
}

func TestAtomic(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("a", "app/project.git")
	w.git(dir, "tag", "v1")
	o := w.push("marie", dir, "--atomic", "prod", "main", "v1", "HEAD:refs/heads/feature")
	require.Equal(t, 1, o.exit, o.all())
	require.Empty(t, w.remoteRefs(dir))
	require.Empty(t, w.deployer.started())
	o = w.push("marie", dir, "--atomic", "prod", "main", "v1")
	require.Zero(t, o.exit, o.all())
	require.Len(t, w.remoteRefs(dir), 3)
}

// With --atomic a branch was deployed although another ref could not be stored, which was found out afterwards. All of them are checked and locked before
// anything runs.
func TestAtomicIsCheckedBeforeItDeploys(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("a", "app/project.git")
	w.git(dir, "tag", "d")
	require.Zero(t, w.push("marie", dir, "prod", "main", "d").exit)
	was := w.git(dir, "rev-parse", "HEAD")
	next := w.commit(dir, "README", "two\n")
	runs := len(w.deployer.started())
	for story, refs := range map[string][]string{
		"a folder in the place of a tag":       {"HEAD:refs/tags/d/x"},
		"a ref below the one that deploys":     {"HEAD:refs/notes/main", "HEAD:refs/tags/d/x"},
		"one that is good, and one that isn't": {"HEAD:refs/tags/good", "HEAD:refs/tags/d/x"},
	} {
		o := w.push("marie", dir, append([]string{"--atomic", "prod", "main"}, refs...)...)
		require.Equal(t, 1, o.exit, story)
		require.Contains(t, o.err, "refs/tags/d/x cannot be beside refs/tags/d", story)
		require.Contains(t, o.err, "nothing was changed", story)
		require.Len(t, w.deployer.started(), runs, story)
		require.Equal(t, map[string]string{"HEAD": was, "refs/heads/main": was, "refs/tags/d": was}, w.remoteRefs(dir), story)
	}
	// A ref that is locked by somebody else.
	lock := filepath.Join(w.repos.Open("app", project.Code).Dir(), "refs", "tags", "late.lock")
	require.NoError(t, os.WriteFile(lock, nil, 0o644))
	o := w.push("marie", dir, "--atomic", "prod", "main", "HEAD:refs/tags/late")
	require.Equal(t, 1, o.exit)
	require.Len(t, w.deployer.started(), runs)
	require.NoError(t, os.Remove(lock))

	// While it is being deployed, the tag's name is locked.
	var during error
	w.deployer.set(func(d project.Deployment, log *event.Log) project.Result {
		during = w.repos.Open("app", project.Code).CompareAndSwap(context.Background(), project.Change{Ref: "refs/tags/late", New: project.Commit(was)})
		return live(d, log)
	})
	o = w.push("marie", dir, "--atomic", "prod", "main", "HEAD:refs/tags/late")
	require.Zero(t, o.exit, o.all())
	require.ErrorContains(t, during, "being changed by somebody else")
	require.Equal(t, next, w.remoteRefs(dir)["refs/tags/late"])

	// A deployment that fails stores no other refs, and leaves no lock.
	failed := w.commit(dir, "README", "three\n")
	w.deployer.set(broken)
	o = w.push("marie", dir, "--atomic", "prod", "main", "HEAD:refs/tags/later")
	require.Equal(t, 1, o.exit)
	require.Contains(t, o.err, "main was rejected")
	require.NotContains(t, w.remoteRefs(dir), "refs/tags/later")
	require.NoError(t, w.repos.Open("app", project.Code).CompareAndSwap(context.Background(), project.Change{Ref: "refs/tags/later", New: project.Commit(next)}))
	require.NotEqual(t, failed, w.remoteRefs(dir)["refs/heads/main"])
}

// Without --atomic a ref may be refused after the deployment, because its name was taken meanwhile: what is live stays live, and the push reports that.
func TestRefusedBesideWhatWasDeployed(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("a", "app/project.git")
	require.Zero(t, w.push("marie", dir, "prod", "main").exit)
	was := w.git(dir, "rev-parse", "HEAD")
	next := w.commit(dir, "README", "two\n")
	w.deployer.set(func(d project.Deployment, log *event.Log) project.Result {
		require.NoError(t, w.repos.Open("app", project.Code).CompareAndSwap(context.Background(), project.Change{Ref: "refs/tags/late", New: project.Commit(was)}))
		return live(d, log)
	})
	o := w.push("marie", dir, "prod", "main", "HEAD:refs/tags/late", "HEAD:refs/tags/good")
	require.Equal(t, 1, o.exit, o.all())
	require.Contains(t, o.err, "main was deployed and remains live; the refs rejected above were not stored")
	require.Equal(t, map[string]string{"HEAD": next, "refs/heads/main": next, "refs/tags/late": was, "refs/tags/good": next}, w.remoteRefs(dir))
}

// git push prod main main:main names a branch twice: refused for each ref, as in git, and nothing runs.
func TestBranchNamedTwice(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("a", "app/project.git")
	o := w.push("marie", dir, "prod", "main", "main:main")
	require.Equal(t, 1, o.exit, o.all())
	require.Contains(t, o.err, "[remote rejected] main -> main (refs/heads/main is updated twice in one push)")
	require.NotContains(t, o.err, "hung up")
	require.NotContains(t, o.err, "unexpected disconnect")
	require.Empty(t, w.deployer.started())
	require.Empty(t, w.remoteRefs(dir))
}

// libgit2 sends an unchanged branch as a command from a commit to itself: there is nothing to do, as in git.
func TestPushOfWhatIsThere(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("a", "app/project.git")
	require.Zero(t, w.push("marie", dir, "prod", "main").exit)
	live := w.git(dir, "rev-parse", "HEAD")
	empty := append([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x00"), 0x02, 0x9d, 0x08, 0x82, 0x3b, 0xd8, 0xa8, 0xea, 0xb5, 0x10, 0xad, 0x6a, 0xc7, 0x5c, 0x82, 0x3c, 0xfd, 0x3e, 0xd3, 0x1e)
	o := w.send(live, live, empty)
	require.Contains(t, o.out, "ok refs/heads/main", o.all())
	require.Contains(t, o.err, "nothing to do")
	require.Contains(t, o.err, "refs/deploy/now")
	require.Len(t, w.deployer.started(), 1)
}

func TestRedeploy(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("a", "app/project.git")
	o := w.push("marie", dir, "prod", "HEAD:refs/deploy/now")
	require.Equal(t, 1, o.exit)
	require.Contains(t, o.err, "nothing has been deployed yet")
	require.Zero(t, w.push("marie", dir, "prod", "main").exit)
	for range 2 {
		o = w.push("marie", dir, "prod", "HEAD:refs/deploy/now")
		require.Zero(t, o.exit, o.all())
		require.Contains(t, o.err, "=====> live")
	}
	ds := w.deployer.started()
	require.Len(t, ds, 3)
	require.Equal(t, project.TriggerRedeploy, ds[1].Trigger)
	require.Equal(t, project.Change{}, ds[1].Change)
	// Another commit is deployed like a push of the branch.
	next := w.commit(dir, "README", "two\n")
	o = w.push("marie", dir, "prod", "HEAD:refs/deploy/now")
	require.Zero(t, o.exit, o.all())
	require.Equal(t, project.TriggerPush, w.deployer.started()[3].Trigger)
	require.Equal(t, map[string]string{"HEAD": next, "refs/heads/main": next}, w.remoteRefs(dir), "virtual refs are never shown")

	w.deployer.set(func(d project.Deployment, log *event.Log) project.Result {
		return project.Result{State: project.Done}
	})
	third := w.commit(dir, "README", "three\n")
	require.Zero(t, w.push("marie", dir, "prod", "HEAD:refs/plan/now").exit)
	d := w.deployer.started()[4]
	require.Equal(t, project.TriggerPlan, d.Trigger)
	require.Equal(t, third, string(d.Code))
	require.Equal(t, next, w.remoteRefs(dir)["refs/heads/main"], "a plan moves nothing")
	require.Empty(t, w.quarantines("app", project.Code))

	require.Zero(t, w.push("marie", dir, "prod", "HEAD:refs/rollback/"+string(ds[0].ID)).exit)
	d = w.deployer.started()[5]
	require.Equal(t, project.TriggerRollback, d.Trigger)
	require.Equal(t, ds[0].ID, d.Restore)
	o = w.push("marie", dir, "prod", "HEAD:refs/rollback/nonsense")
	require.Equal(t, 1, o.exit)
	require.Contains(t, o.err, "is not the ID of a deployment")
	o = w.push("marie", dir, "prod", "HEAD:refs/deploy/a", "HEAD:refs/plan/b")
	require.Equal(t, 1, o.exit)
	require.Contains(t, o.err, "a push can deploy only once")
	require.Len(t, w.deployer.started(), 6)
}

func TestPushOptions(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("a", "app/project.git")
	o := w.push("marie", dir, "-o", "only=install", "-o", "only_steps=a,b", "-o", "skip=archive", "-o", "nonsense", "-o", "color", "prod", "main")
	require.Zero(t, o.exit, o.all())
	require.Equal(t, project.Selection{Only: []string{"install"}, OnlySteps: []string{"a", "b"}, Skip: []string{"archive"}}, w.deployer.started()[0].Select)
	require.Contains(t, o.err, "unknown push option ignored: nonsense")
	require.Contains(t, o.err, "\x1b[32m=====> live")
	w.commit(dir, "README", "two\n")
	o = w.push("marie", dir, "-o", "skip=", "prod", "main")
	require.Equal(t, 1, o.exit)
	require.Contains(t, o.err, "needs a value")
	cmd := w.gitCmd("marie", dir, "push", "prod", "main")
	cmd.Env = append(cmd.Env, "CORPUS_COLOR=1")
	o = finish(t, cmd)
	require.Zero(t, o.exit)
	require.Contains(t, o.err, "\x1b[32m=====> live", "the environment asks for colour too")
	w.commit(dir, "README", "three\n")
	o = w.push("marie", dir, "prod", "main")
	require.Zero(t, o.exit)
	require.NotContains(t, o.err, "\x1b[3")
}

func TestQuiet(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("a", "app/project.git")
	o := w.push("marie", dir, "-o", "quiet", "prod", "main")
	require.Zero(t, o.exit, o.all())
	require.Contains(t, o.err, "=====> live")
	require.NotContains(t, o.err, "----->")
	w.commit(dir, "README", "two\n")
	w.deployer.set(broken)
	o = w.push("marie", dir, "-o", "quiet", "prod", "main")
	require.Equal(t, 1, o.exit)
	require.Contains(t, o.err, "! 2/4 0100_build")
	require.Contains(t, o.err, "hint: see it whole")
	require.NotContains(t, o.err, "----->")
}

func TestShallowPush(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("a", "app/project.git")
	w.commit(dir, "README", "two\n")
	w.commit(dir, "README", "three\n")
	shallow := w.path("shallow")
	w.git(w.dir, "clone", "-q", "--depth", "1", "file://"+dir, shallow)
	w.git(shallow, "remote", "add", "prod", w.url("app/project.git"))
	o := w.push("marie", shallow, "prod", "main")
	require.Equal(t, 1, o.exit, o.all())
	require.Contains(t, o.err, "(shallow update not allowed)")
	require.Contains(t, o.err, "git fetch --unshallow")
	require.Empty(t, w.deployer.started())
	require.Empty(t, w.quarantines("app", project.Code))
	// If the server has what is missing, a shallow clone may push.
	require.Zero(t, w.push("marie", dir, "prod", "main").exit)
	w.commit(shallow, "README", "four\n")
	o = w.push("marie", shallow, "prod", "main")
	require.Zero(t, o.exit, o.all())
}

func TestStaleOldValue(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("a", "app/project.git")
	require.Zero(t, w.push("marie", dir, "prod", "main").exit)
	base := w.git(dir, "rev-parse", "HEAD")
	mine := w.commit(dir, "README", "mine\n")
	// While this push deploys, the branch moves under it.
	w.deployer.set(func(d project.Deployment, log *event.Log) project.Result {
		return project.Result{State: project.Refused, Reason: "the branch moved meanwhile: fetch first"}
	})
	o := w.push("marie", dir, "prod", "main")
	require.Equal(t, 1, o.exit)
	require.Contains(t, o.err, "(refused: the branch moved meanwhile: fetch first)")
	require.Equal(t, base, w.remoteRefs(dir)["refs/heads/main"])
	_ = mine
}

func TestProtocolVersions(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("a", "app/project.git")
	for _, v := range []string{"0", "1", "2"} {
		head := w.commit(dir, "README", v)
		o := finish(t, w.gitCmd("marie", dir, "-c", "protocol.version="+v, "push", "prod", "main"))
		require.Zero(t, o.exit, o.all())
		o = finish(t, w.gitCmd("marie", dir, "-c", "protocol.version="+v, "clone", "-q", w.url("app/project.git"), w.path("clone"+v)))
		require.Zero(t, o.exit, o.all())
		require.Equal(t, head, w.git(w.path("clone"+v), "rev-parse", "HEAD"))
	}
}

func TestManyRefs(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("a", "app/project.git")
	require.Zero(t, w.push("marie", dir, "prod", "main").exit)
	head := w.git(dir, "rev-parse", "HEAD")
	var b strings.Builder
	for i := range 500 {
		b.WriteString("create refs/tags/t" + strings.Repeat("x", i%7) + "-" + time.Duration(i).String() + " " + head + "\n")
	}
	cmd := w.gitCmd("marie", dir, "update-ref", "--stdin")
	cmd.Stdin = strings.NewReader(b.String())
	require.Zero(t, finish(t, cmd).exit)
	o := w.push("marie", dir, "prod", "--tags")
	require.Zero(t, o.exit, o.all())
	require.Len(t, w.remoteRefs(dir), 502)
	require.Zero(t, w.push("marie", dir, "prod", "main").exit, "nothing to do is not an error")
}

func TestCreateOnPushIsOff(t *testing.T) {
	w := newWorld(t)
	o := w.push("boss", w.clone("a", "fresh/project.git"), "prod", "main")
	require.NotZero(t, o.exit)
	require.Contains(t, o.err, "corpus-git project create fresh")
}

func TestCreateOnPush(t *testing.T) {
	w := newWorld(t, func(w *world) { w.service.CreateOnPush = true })
	dir := w.clone("a", "fresh/project.git")
	o := w.push("marie", dir, "prod", "main")
	require.NotZero(t, o.exit, "for admins only")
	o = w.push("boss", dir, "prod", "main")
	require.Zero(t, o.exit, o.all())
	require.Len(t, w.deployer.started(), 1)
	_, err := os.Stat(w.repos.Open("fresh", project.PillarRepo).Dir())
	require.NoError(t, err)
}

func TestManyPushesAtOnce(t *testing.T) {
	w := newWorld(t)
	const projects, pushes = 4, 3
	heads := make([]string, projects)
	var wg sync.WaitGroup
	for i := range projects {
		name := project.Name("p" + string(rune('a'+i)))
		w.addProject(name)
		dir := w.clone(string(name), string(name)+"/project.git")
		wg.Go(func() {
			for n := range pushes {
				if n > 0 {
					heads[i] = w.commit(dir, "README", strings.Repeat("x", n))
				}
				o := w.push("boss", dir, "prod", "main")
				if o.exit != 0 {
					t.Errorf("%s: %s", name, o.all())
				}
			}
		})
	}
	wg.Wait()
	for i := range projects {
		c, err := w.repos.Open(project.Name("p"+string(rune('a'+i))), project.Code).Get(context.Background(), "refs/heads/main")
		require.NoError(t, err)
		require.Equal(t, heads[i], string(c))
	}
	require.Len(t, w.deployer.started(), projects*pushes)
}

// Two clones push to one branch at once: the second one is told so, and the result of the first stays.
func TestTwoPushesAtOnce(t *testing.T) {
	w := newWorld(t)
	one := w.clone("one", "app/project.git")
	require.Zero(t, w.push("marie", one, "prod", "main").exit)
	two := w.path("two")
	w.git(w.dir, "clone", "-q", "-o", "prod", w.url("app/project.git"), two)
	first := w.commit(one, "README", "from one\n")
	w.commit(two, "README", "from two\n")
	began, release := w.hold()
	done := make(chan outcome, 1)
	cmd := w.gitCmd("marie", one, "push", "prod", "main")
	go func() { done <- finish(t, cmd) }()
	<-began
	other := w.gitCmd("boss", two, "push", "prod", "main")
	second := make(chan outcome, 1)
	go func() { second <- finish(t, other) }()
	require.Eventually(t, func() bool { return len(w.deployer.started()) == 3 }, 20*time.Second, 5*time.Millisecond)
	release()
	o1, o2 := <-done, <-second
	// Which of the two moves the ref first is up to the Deployer; this one has no queue. Exactly one wins.
	require.Equal(t, 1, o1.exit+o2.exit, o1.all()+o2.all())
	if o1.exit == 0 {
		require.Equal(t, first, w.remoteRefs(one)["refs/heads/main"])
	}
	o := w.push("boss", two, "prod", "main")
	if o1.exit == 0 {
		require.Equal(t, 1, o.exit, "the branch has moved")
		require.Contains(t, o.err, "fetch first")
	}
	w.git(w.repos.Open("app", project.Code).Dir(), "fsck", "--strict")
}
