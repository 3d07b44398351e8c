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
	var found *User
	err := eachLine(f.passwd(), func(p []string) bool {
		if len(p) < 7 || (p[0] != nameOrUID && p[2] != nameOrUID) {
			return true
		}
		uid, err1 := strconv.Atoi(p[2])
		gid, err2 := strconv.Atoi(p[3])
		if err1 != nil || err2 != nil {
			return true
		}
		u := User{Name: p[0], UID: uid, GID: gid, Gecos: p[4], Home: p[5], Shell: p[6], Passwd: p[1]}
		if p[0] == nameOrUID {
			found = &u
			return false
		}
		if found == nil {
			found = &u
		}
		return true
	})
	if err != nil {
		return User{}, err
	}
	if found == nil {
		return User{}, fmt.Errorf("user %s: %w", nameOrUID, ErrNoAccount)
	}
	return *found, nil
}

// Group implements Users.
func (f FileUsers) Group(nameOrGID string) (Group, error) {
	var found *Group
	err := f.eachGroup(func(g Group) bool {
		if g.Name == nameOrGID {
			found = &g
			return false
		}
		if found == nil && strconv.Itoa(g.GID) == nameOrGID {
			found = &g
		}
		return true
	})
	if err != nil {
		return Group{}, err
	}
	if found == nil {
		return Group{}, fmt.Errorf("group %s: %w", nameOrGID, ErrNoAccount)
	}
	return *found, nil
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
