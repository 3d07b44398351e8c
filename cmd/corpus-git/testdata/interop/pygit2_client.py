"""Drives libgit2 through pygit2 against a server of ours.

Usage: pygit2_client.py URL KEY DIR

It takes the repository DIR/a, pushes it, clones it to DIR/b, fetches, pushes tags, deletes one, pushes a branch that is
refused, and prints a line for each step. Any surprise is an exception.
"""

import os
import sys

import pygit2

url, key, top = sys.argv[1:4]
who = pygit2.Signature("Marie", "marie@example.org", 1767323045, 0)

COMMIT = getattr(pygit2, "GIT_OBJECT_COMMIT", None) or pygit2.GIT_OBJ_COMMIT  # its name before pygit2 1.15


class Callbacks(pygit2.RemoteCallbacks):
    """Logs in with the key and keeps what the server says."""

    def __init__(self):
        super().__init__(credentials=pygit2.Keypair("deploy", key + ".pub", key, ""))
        self.text = ""
        self.rejected = {}
        self.updated = []

    def certificate_check(self, certificate, valid, host):
        return True  # the test's server is on 127.0.0.1 and new

    def sideband_progress(self, string):
        self.text += string

    def push_update_reference(self, refname, message):
        if message is not None:
            self.rejected[refname] = message
        self.updated.append(refname)


def push(repo, *specs):
    cb = Callbacks()
    repo.remotes["prod"].push(list(specs), callbacks=cb)
    return cb


def commit(repo, message, files):
    for name, text in files.items():
        path = os.path.join(repo.workdir, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
        repo.index.add(name)
    repo.index.write()
    return repo.create_commit("HEAD", who, who, message, repo.index.write_tree(), [repo.head.target])


a = pygit2.Repository(os.path.join(top, "a"))
a.remotes.create("prod", url)

cb = push(a, "refs/heads/master:refs/heads/master")
assert not cb.rejected, cb.rejected
assert "live" in cb.text, cb.text
print("pushed")

two = commit(a, "Two", {"dir/file%d" % i: "line\n" * i for i in range(50)})
a.create_tag("v1", two, COMMIT, who, "A tag")
a.create_reference("refs/tags/light", two)
cb = push(a, "refs/heads/master", "refs/tags/v1", "refs/tags/light")
assert not cb.rejected, cb.rejected
print("pushed more")

cb = push(a, "refs/heads/master:refs/heads/topic")
assert "is not the deployed branch" in cb.rejected["refs/heads/topic"], cb.rejected
print("refused:", cb.rejected["refs/heads/topic"])

cb = push(a, ":refs/tags/light")
assert not cb.rejected, cb.rejected

cb = push(a, "refs/heads/master:refs/deploy/now")
assert not cb.rejected and "live" in cb.text, (cb.rejected, cb.text)
print("redeployed")

prod = a.remotes["prod"]
if hasattr(prod, "list_heads"):  # since pygit2 1.19
    names = [r.name for r in prod.list_heads(callbacks=Callbacks())]
else:
    names = [r["name"] for r in prod.ls_remotes(callbacks=Callbacks())]
assert "refs/tags/v1" in names and "refs/tags/light" not in names, names

b = pygit2.clone_repository(url, os.path.join(top, "b"), callbacks=Callbacks())
assert b.head.target == two, b.head.target
print("cloned")

cb = push(a, "refs/heads/master")
assert not cb.rejected and "nothing to do" in cb.text and "live" not in cb.text, (cb.rejected, cb.text)
print("pushed what is there")

if tuple(int(n) for n in pygit2.LIBGIT2_VERSION.split(".")[:2]) >= (1, 7):  # the first that clones shallow
    c = pygit2.clone_repository(url, os.path.join(top, "c"), callbacks=Callbacks(), depth=1)
    assert c.is_shallow and c.head.target == two, c.head.target
    with open(os.path.join(c.path, "shallow")) as f:
        assert f.read().split() == [str(two)]
    assert len(list(c.walk(c.head.target))) == 1
    print("cloned shallow")

three = commit(a, "Three", {"dir/file1": "changed\n"})
assert not push(a, "refs/heads/master").rejected
b.remotes["origin"].fetch(callbacks=Callbacks())
assert b.references["refs/remotes/origin/master"].target == three
print("fetched")

commit(a, "Break", {".salt/020_broken.sls": "broken:\n  cmd.run:\n    - name: exit 3\n"})
cb = push(a, "refs/heads/master")
assert "failed in 020_broken" in cb.rejected["refs/heads/master"], (cb.rejected, cb.text)
print("rolled back:", cb.rejected["refs/heads/master"])
print("all done")
