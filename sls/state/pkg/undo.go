package pkg

import (
	"corpus-git/sls/state/core"
	"corpus-git/undo"
)

// listPackages prints what is installed, one name=version per line, sorted. Source: dpkg-query(1), db:Status-Status.
const listPackages = `LC_ALL=C dpkg-query -W -f '${db:Status-Status} ${binary:Package}=${Version}\n' | sed -n 's/^installed //p' | LC_ALL=C sort`

// seePackages reports whether that is the same; it is long.
const seePackages = listPackages + ` | sha256sum`

// restorePackages restores the installed packages listed on standard input, in one run of apt-get: what was installed since is removed, what was
// removed or has another version is installed at its earlier version, if apt can find that. Nothing else is removed: apt-get would rather fail.
// Source: apt-get(8), a hyphen behind a package's name.
const restorePackages = `set -e
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cat > "$dir/before"
(` + listPackages + `) > "$dir/now"
sed 's/=.*//' "$dir/before" > "$dir/had"
sed 's/=.*//' "$dir/now" | LC_ALL=C comm -13 "$dir/had" - | sed 's/$/-/' > "$dir/do"
LC_ALL=C comm -23 "$dir/before" "$dir/now" >> "$dir/do"
[ -s "$dir/do" ] || exit 0
export DEBIAN_FRONTEND=noninteractive APT_LISTCHANGES_FRONTEND=none UCF_FORCE_CONFFOLD=1
xargs apt-get -qq -y --allow-downgrades --no-install-recommends -o DPkg::Options::=--force-confold -o DPkg::Options::=--force-confdef install < "$dir/do" > "$dir/out" 2>&1 && exit
grep '^E:' "$dir/out" || tail -n 1 "$dir/out"
exit 1`

// notePackages records in the undo log, if the configuration says so (undo: {packages: true}), that packages are about to be installed or removed.
func notePackages(c *core.Call) error {
	if !c.Undo.Packages() {
		return nil // apt-get is listed as something that cannot be undone
	}
	have, err := c.Query("sh", "-c", listPackages)
	if err != nil {
		return err
	}
	return c.BeforeAction(undo.Action{Noun: "set of packages", Name: c.Name, Probe: []string{"sh", "-c", seePackages}, Undo: []string{"sh", "-c", restorePackages}, Stdin: have})
}
