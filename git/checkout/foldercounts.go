package checkout

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"corpus-git/git/index"

	"golang.org/x/sys/unix"
)

// countsFile keeps, beside the index, what the Sync that wrote the index knew of it: which bytes it has, so that their SHA-1 need not be made
// again to tell that they are whole, and how many untracked names each folder has, so that only folders whose names changed since are read
// again. Another program that writes the index makes it void: the index's checksum is verified then, and every folder is read.
const (
	countsFile   = "corpus-git.memo"
	countsHeader = "corpus-git memo 1"
	maxCounts    = 16 << 20
	// oldCountFile is what it was called when it kept counts only.
	oldCountFile = "corpus-git.untracked"
)

// folderCount is a folder, with its slash ("" is the top), and how many untracked names are in it.
type folderCount struct {
	dir string
	n   int
}

// folderCounts is what is known of an index: list are the folders that have any untracked names, in order, as they were at a time of the file system.
type folderCounts struct {
	at   timestamp
	list []folderCount
}

// below is the part of the list about dir, given with its slash, and what is in it.
func (m *folderCounts) below(dir string) []folderCount {
	if m == nil {
		return nil
	}
	cmp := func(f folderCount, d string) int { return strings.Compare(f.dir, d) }
	lo, _ := slices.BinarySearchFunc(m.list, dir, cmp)
	hi, _ := slices.BinarySearchFunc(m.list, dir[:len(dir)-1]+"0", cmp) // '0' follows '/'
	return m.list[lo:hi]
}

func (m *folderCounts) encode(of index.ID) []byte {
	b := fmt.Appendf(nil, "%s\n%s %d %08x\n%d %d\n", countsHeader, of.Sum, of.Size, of.CRC, m.at.sec, m.at.nsec)
	for _, f := range m.list {
		b = fmt.Appendf(b, "%d %q\n", f.n, f.dir)
	}
	return fmt.Appendf(b, "%08x\n", crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// parseFolderCounts gives nil for what is not about that index, or damaged: it is only a lost short cut.
func parseFolderCounts(data []byte, of index.ID) *folderCounts {
	const end = 9 // eight digits, and the end of their line
	if len(data) < end {
		return nil
	}
	text, sum := data[:len(data)-end], data[len(data)-end:]
	head := (&folderCounts{}).encode(of)
	head = head[:len(head)-end-len("0 0\n")]
	rest, ok := strings.CutPrefix(string(text), string(head))
	if !ok || !strings.HasSuffix(rest, "\n") || string(sum) != fmt.Sprintf("%08x\n", crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli))) {
		return nil
	}
	m := &folderCounts{}
	lines := strings.Split(strings.TrimSuffix(rest, "\n"), "\n")
	if _, err := fmt.Sscanf(lines[0], "%d %d", &m.at.sec, &m.at.nsec); err != nil {
		return nil
	}
	for _, line := range lines[1:] {
		num, quoted, _ := strings.Cut(line, " ")
		count, err := strconv.Atoi(num)
		dir, err2 := strconv.Unquote(quoted)
		if err != nil || err2 != nil || count <= 0 || len(m.list) > 0 && dir <= m.list[len(m.list)-1].dir {
			return nil
		}
		m.list = append(m.list, folderCount{dir, count})
	}
	return m
}

// readFolderCounts reads what is known of an index.
func (g *gitFolder) readFolderCounts(of index.ID) *folderCounts {
	data, _, err := readFileAt(g.fd, countsFile, maxCounts)
	if err != nil {
		return nil
	}
	return parseFolderCounts(data, of)
}

// writeFolderCounts keeps m beside the index. A time of the file system is put in where m has none: now.
func (g *gitFolder) writeFolderCounts(m *folderCounts, of index.ID) error {
	tmp := tmpPrefix + countsFile
	if m.at == (timestamp{}) {
		// A file that is made now tells what the file system takes for now.
		if err := writeFileAt(g.fd, tmp, nil, false, g.req.Owner); err != nil {
			return err
		}
		st, err := lstatat(g.fd, tmp)
		if err != nil {
			return err
		}
		m.at.sec, m.at.nsec = st.Mtim.Unix()
	}
	data := m.encode(of)
	if len(data) > maxCounts {
		data = nil
	}
	err := writeFileAt(g.fd, countsFile, data, false, g.req.Owner)
	for _, name := range []string{tmp, oldCountFile} {
		err = errors.Join(err, ignore(unix.Unlinkat(g.fd, name, 0), unix.ENOENT))
	}
	return err
}

// indexFile is the index as it lies there, data nil where there is none.
type indexFile struct {
	data []byte
	id   index.ID
	// written is the file's own facts.
	written index.Stat
	// counts is what is known of it, nil where nothing is: then these bytes are not proved to be what a Sync wrote.
	counts *folderCounts
}

func (g *gitFolder) readIndex() (*indexFile, error) {
	data, st, err := readFileAt(g.fd, "index", maxIndexFile)
	if errors.Is(err, fs.ErrNotExist) {
		return &indexFile{}, nil
	}
	if errors.Is(err, errNotRegular) {
		g.noteUnusable()
		return &indexFile{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read index: %w", err)
	}
	id := index.Identify(data)
	return &indexFile{data: data, id: id, written: index.NewStat(st), counts: g.readFolderCounts(id)}, nil
}

// plain is the index without its entries parsed, nil for one that is not known to be whole and of our making.
func (f *indexFile) plain() *index.Unparsed {
	if f.counts == nil {
		return nil
	}
	return index.NewUnparsed(f.data)
}

func (g *gitFolder) noteUnusable() {
	g.notes = append(g.notes, "the working copy's index was unusable; every file was compared")
}

// parse gives nil for no index, and for one that is unusable: everything is then compared by content.
func (g *gitFolder) parse(f *indexFile) *pathList {
	if f.data == nil {
		return nil
	}
	x, err := readList(f.data, f.counts != nil)
	if err != nil {
		g.noteUnusable()
		f.written, f.counts = index.Stat{}, nil
		return nil
	}
	return x
}

// writeIndex puts the index in place, durably unless the request leaves that to the caller.
func (g *gitFolder) writeIndex(x *pathList) error {
	return writeFileWith(g.fd, "index", !g.req.NoSync, g.req.Owner, func(fd int) error {
		return x.write(func(parts [][]byte) error { return index.WriteParts(fd, parts) })
	})
}
