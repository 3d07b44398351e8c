"""Drives dulwich, a git in Python, against a server of ours; ssh is OpenSSH's.

Usage: dulwich_client.py URL KEY KNOWN_HOSTS DIR

It takes the repository DIR/a, pushes it, clones it to DIR/b and DIR/shallow, fetches, pushes tags, deletes one, pushes a branch that
is refused, and prints a line for each step. Any surprise is an exception.
"""

import os
import sys

from dulwich import porcelain
from dulwich.client import SSHGitClient, SubprocessWrapper
from dulwich.repo import Repo
from urllib.parse import urlparse
import subprocess

url, key, known, top = sys.argv[1:5]
# Of the forms that git takes for a date, dulwich knows one.
for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"):
    os.environ[name] = "1767323045 +0000"
u = urlparse(url)


class Vendor:
    """Runs ssh as dulwich's own vendor does, with the scenario's key and known hosts."""

    def run_command(self, host, command, username=None, port=None, password=None, key_filename=None, ssh_command=None, protocol_version=None, **_):
        args = ["ssh", "-F", "none", "-i", key, "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=accept-new",
                "-o", "UserKnownHostsFile=" + known, "-o", "LogLevel=ERROR", "-x"]
        if protocol_version is None or protocol_version > 0:
            args += ["-o", "SetEnv=GIT_PROTOCOL=version=%d" % (2 if protocol_version is None else protocol_version)]
        args += ["-p", str(port), "%s@%s" % (username, host), command]
        p = subprocess.Popen(args, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return SubprocessWrapper(p)


def client():
    return SSHGitClient(u.hostname, port=u.port, username=u.username, vendor=Vendor())


def push(repo, refs, **kw):
    """Pushes; gives what was said and the errors of the refs."""
    said = []

    def update(have):
        return {k: (repo.refs[v] if v.startswith(b"refs/") else v) for k, v in refs.items()}

    r = client().send_pack(u.path, update, repo.generate_pack_data, progress=said.append)
    return b"".join(said).decode(), {k: v for k, v in (r.ref_status or {}).items() if v}


def commit(repo, message, files):
    for name, text in files.items():
        path = os.path.join(repo.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
    w = repo.get_worktree()
    w.stage([n.encode() for n in files])
    who = b"Marie <marie@example.org>"
    return w.commit(message=message.encode(), author=who, committer=who)


def clone(name, **kw):
    path = os.path.join(top, name)
    return client().clone(u.path, path, mkdir=True, **kw)


ZERO = b"0" * 40
M = b"refs/heads/master"
a = Repo(os.path.join(top, "a"))

said, bad = push(a, {M: M})
assert not bad and "live" in said, (bad, said)
print("pushed")

two = commit(a, "Two", {"dir/file%d" % i: "line\n" * i for i in range(50)})
porcelain.tag_create(a, b"v1", author=b"Marie <marie@example.org>", message=b"A tag", annotated=True)
porcelain.tag_create(a, b"light")
said, bad = push(a, {M: M, b"refs/tags/v1": b"refs/tags/v1", b"refs/tags/light": b"refs/tags/light"})
assert not bad, (bad, said)
print("pushed more")

said, bad = push(a, {b"refs/heads/topic": M})
assert "is not the deployed branch" in bad[b"refs/heads/topic"], (bad, said)
print("refused:", bad[b"refs/heads/topic"])

said, bad = push(a, {b"refs/tags/light": ZERO})
assert not bad, (bad, said)

said, bad = push(a, {b"refs/deploy/now": M})
assert not bad and "live" in said, (bad, said)
print("redeployed")

for version in (0, 2):  # dulwich does not read the answer of version 1
    b = clone("b%d" % version, protocol_version=version)
    assert b.head() == two, b.head()
    assert b"refs/tags/v1" in b.refs.as_dict() and b"refs/tags/light" not in b.refs.as_dict()
print("cloned")

s = clone("shallow", depth=1)
assert len(list(s.get_walker())) == 1
print("shallow")

three = commit(a, "Three", {"dir/file1": "changed\n"})
said, bad = push(a, {M: M})
assert not bad, (bad, said)
r = client().fetch(u.path, b)
assert r.refs[M] == three and three in b
print("fetched")

commit(a, "Break", {".salt/020_broken.sls": "broken:\n  cmd.run:\n    - name: exit 3\n"})
said, bad = push(a, {M: M})
assert "failed in 020_broken" in bad[M], (bad, said)
print("rolled back:", bad[M])
print("all done")
