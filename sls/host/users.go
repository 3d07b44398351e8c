package host

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// FileUsers reads accounts from files in the format of passwd(5) and group(5).
type FileUsers struct {
	Passwd string // "" is /etc/passwd
	GroupF string // "" is /etc/group
}

// User implements Users.
func (f FileUsers) User(nameOrUID string) (User, error) {
	return f.user(nameOrUID, func(u User) bool { return u.Name == nameOrUID }, func(u User) bool { return strconv.Itoa(u.UID) == nameOrUID })
}

// UserByID implements Users.
func (f FileUsers) UserByID(uid int) (User, error) {
	return f.user(strconv.Itoa(uid), func(u User) bool { return u.UID == uid })
}

// user returns the first account for which the first of the questions is true, otherwise the first for which the next one
// is.
func (f FileUsers) user(asked string, questions ...func(User) bool) (User, error) {
	found := make([]*User, len(questions))
	err := eachLine(f.passwd(), func(p []string) bool {
		if len(p) < 7 {
			return true
		}
		uid, err1 := strconv.Atoi(p[2])
		gid, err2 := strconv.Atoi(p[3])
		if err1 != nil || err2 != nil {
			return true
		}
		u := User{Name: p[0], UID: uid, GID: gid, Gecos: p[4], Home: p[5], Shell: p[6], Passwd: p[1]}
		return firstOf(u, found, questions)
	})
	if err != nil {
		return User{}, err
	}
	for _, u := range found {
		if u != nil {
			return *u, nil
		}
	}
	return User{}, fmt.Errorf("user %s: %w", asked, ErrNoAccount)
}

// firstOf records x if it is the first for which a question is true, and reports whether a later one could still be
// better.
func firstOf[T any](x T, found []*T, questions []func(T) bool) bool {
	for n, q := range questions {
		if found[n] == nil && q(x) {
			found[n] = &x
		}
	}
	return found[0] == nil
}

// Group implements Users.
func (f FileUsers) Group(nameOrGID string) (Group, error) {
	return f.oneGroup(nameOrGID, func(g Group) bool { return g.Name == nameOrGID }, func(g Group) bool { return strconv.Itoa(g.GID) == nameOrGID })
}

// GroupByID implements Users.
func (f FileUsers) GroupByID(gid int) (Group, error) {
	return f.oneGroup(strconv.Itoa(gid), func(g Group) bool { return g.GID == gid })
}

func (f FileUsers) oneGroup(asked string, questions ...func(Group) bool) (Group, error) {
	found := make([]*Group, len(questions))
	err := f.eachGroup(func(g Group) bool { return firstOf(g, found, questions) })
	if err != nil {
		return Group{}, err
	}
	for _, g := range found {
		if g != nil {
			return *g, nil
		}
	}
	return Group{}, fmt.Errorf("group %s: %w", asked, ErrNoAccount)
}

// GroupsOf implements Users.
func (f FileUsers) GroupsOf(u User) ([]int, error) {
	out := []int{u.GID}
	err := f.eachGroup(func(g Group) bool {
		for _, m := range g.Members {
			if m == u.Name && g.GID != u.GID {
				out = append(out, g.GID)
				break
			}
		}
		return true
	})
	return out, err
}

func (f FileUsers) passwd() string {
	if f.Passwd == "" {
		return "/etc/passwd"
	}
	return f.Passwd
}

func (f FileUsers) group() string {
	if f.GroupF == "" {
		return "/etc/group"
	}
	return f.GroupF
}

func (f FileUsers) eachGroup(fn func(Group) bool) error {
	return eachLine(f.group(), func(p []string) bool {
		if len(p) < 4 {
			return true
		}
		gid, err := strconv.Atoi(p[2])
		if err != nil {
			return true
		}
		g := Group{Name: p[0], GID: gid, Passwd: p[1]}
		if p[3] != "" {
			g.Members = strings.Split(p[3], ",")
		}
		return fn(g)
	})
}

func eachLine(path string, fn func(fields []string) bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		line := strings.TrimSpace(sc.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		if !fn(strings.Split(line, ":")) {
			return nil
		}
	}
	return sc.Err()
}
