package account

import (
	"slices"
	"strconv"
	"strings"

	"corpus-git/sls/host"
	"corpus-git/sls/state/core"
	"corpus-git/undo"
)

// seeUser prints everything about an account: its entries in passwd(5) and shadow(5), and its groups. The password's hash is not part of the output.
const seeUser = `getent passwd "$0"; getent shadow "$0" | sha256sum; id -Gn "$0" | tr " " "\n" | sort`

// restoreUser restores an account: $0 is its name, then uid, gid, the group's name, home, shell, gecos, the other groups, and the six ages of shadow(5), -1
// for none. Standard input is a line for chpasswd(8), which sets the day of the last change: chage(1) comes after it. Without the ages shadow is not changed.
const restoreUser = `getent group "$3" >/dev/null || groupadd -o -g "$2" "$3" || exit
getent passwd "$0" >/dev/null || useradd -M -o -u "$1" -g "$2" -d "$4" -s "$5" "$0" || exit
usermod -o -u "$1" -g "$2" -d "$4" -s "$5" -c "$6" -G "$7" "$0" || exit
[ $# -lt 13 ] || { chpasswd -e && chage -d "$8" -m "$9" -M "${10}" -I "${11}" -W "${12}" -E "${13}" "$0"; }`

// noteChangedUser records in the undo log an account that is about to be changed or removed.
func noteChangedUser(c *core.Call, u host.User) error {
	group := c.GroupName(u.GID)
	others := slices.DeleteFunc(c.GroupsOf(u), func(g string) bool { return g == group })
	argv := []string{"sh", "-c", restoreUser, c.Name, strconv.Itoa(u.UID), strconv.Itoa(u.GID), group, u.Home, u.Shell, u.Gecos, strings.Join(others, ",")}
	a := undo.Action{Noun: "user", Name: c.Name, Probe: []string{"sh", "-c", seeUser, c.Name}}
	if shadow := shadowEntry(c); core.DictText(shadow, "name") != "" {
		a.Stdin = c.Name + ":" + core.DictText(shadow, "passwd") + "\n"
		for _, g := range agings() {
			argv = append(argv, core.DictText(shadow, g.key))
		}
	}
	a.Undo = argv
	return c.BeforeAction(a)
}

// restoreGroup restores a group: $0 is its name, then gid and members.
const restoreGroup = `getent group "$0" >/dev/null || groupadd -o -g "$1" "$0" || exit
groupmod -o -g "$1" "$0" && gpasswd --members "$2" "$0"`

// noteChangedGroup records in the undo log a group that is about to be changed or removed.
func noteChangedGroup(c *core.Call, g host.Group) error {
	return c.BeforeAction(undo.Action{
		Noun: "group", Name: c.Name, Probe: []string{"getent", "group", c.Name},
		Undo: []string{"sh", "-c", restoreGroup, c.Name, strconv.Itoa(g.GID), strings.Join(g.Members, ",")},
	})
}
