package worktree

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"
)

// countFile keeps, beside the index, how many untracked names each folder has, so that only folders whose names changed since are read
// again. It names the index that it belongs to: another program that writes the index makes it void, and every folder is read.
const (
	countFile    = "corpus-git.untracked"
	countHead    = "corpus-git untracked 1"
	countEnd     = "end"
	maxCountFile = 16 << 20
)

// folderCount is a folder, with its slash ("" is the top), and how many untracked names are in it.
type folderCount struct {
	dir string
	n   int
}

// counted are the folders that have any, in order, as they were at a time of the file system.
type counted struct {
	at   stamp
	list []folderCount
}

// below is the part of the list about dir, given with its slash, and what is in it.
func (c *counted) below(dir string) []folderCount {
	if c == nil {
		return nil
	}
	cmp := func(f folderCount, d string) int { return strings.Compare(f.dir, d) }
	lo, _ := slices.BinarySearchFunc(c.list, dir, cmp)
	hi, _ := slices.BinarySearchFunc(c.list, dir[:len(dir)-1]+"0", cmp) // '0' follows '/'
	return c.list[lo:hi]
}

func (c *counted) encode(index plumbing.Hash) []byte {
	b := fmt.Appendf(nil, "%s\n%s\n%d %d\n", countHead, index, c.at.sec, c.at.nsec)
	for _, f := range c.list {
		b = fmt.Appendf(b, "%d %q\n", f.n, f.dir)
	}
	return append(b, countEnd+"\n"...)
}

// parseCounted gives nil for what is not about that index, or damaged: it is only a lost short cut.
func parseCounted(data []byte, index plumbing.Hash) *counted {
	lines := strings.Split(string(data), "\n")
	n := len(lines)
	if n < 5 || lines[0] != countHead || lines[1] != hex.EncodeToString(index[:]) || lines[n-2] != countEnd || lines[n-1] != "" {
		return nil
	}
	c := &counted{}
	if _, err := fmt.Sscanf(lines[2], "%d %d", &c.at.sec, &c.at.nsec); err != nil {
		return nil
	}
	for _, line := range lines[3 : n-2] {
		num, quoted, _ := strings.Cut(line, " ")
		count, err := strconv.Atoi(num)
		dir, err2 := strconv.Unquote(quoted)
		if err != nil || err2 != nil || count <= 0 || len(c.list) > 0 && dir <= c.list[len(c.list)-1].dir {
			return nil
		}
		c.list = append(c.list, folderCount{dir, count})
	}
	return c
}

// readCounted reads what is known of the untracked names beside an index.
func (g *gitFolder) readCounted(x *gitIndex) *counted {
	if x == nil {
		return nil
	}
	data, _, err := readFileAt(g.fd, countFile, maxCountFile)
	if err != nil {
		return nil
	}
	return parseCounted(data, x.sum)
}

// writeCounted keeps c beside the index x. A time of the file system is put in where c has none: now.
func (g *gitFolder) writeCounted(c *counted, x *gitIndex) error {
	tmp := tmpPrefix + countFile
	if c.at == (stamp{}) {
		// A file that is made now tells what the file system takes for now.
		if err := writeFileAt(g.fd, tmp, nil, false); err != nil {
			return err
		}
		st, err := lstatat(g.fd, tmp)
		if err != nil {
			return err
		}
		c.at.sec, c.at.nsec = st.Mtim.Unix()
	}
	data := c.encode(x.sum)
	if len(data) > maxCountFile {
		data = nil
	}
	err := writeFileAt(g.fd, countFile, data, false)
	return errors.Join(err, ignore(unix.Unlinkat(g.fd, tmp, 0), unix.ENOENT))
}
