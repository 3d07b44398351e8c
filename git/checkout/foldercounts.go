package checkout

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"corpus-git/git/index"

	"golang.org/x/sys/unix"
)

// countsFile holds, beside the index, what the Sync that wrote the index knew: a checksum of its bytes, so that their SHA-1 need not be
// computed again, and how many untracked names each folder has, so that only folders whose names changed since are read again. When another
// program writes the index the file becomes invalid: then the index's checksum is verified and every folder is read.
const (
	countsFile   = "corpus-git.memo"
	countsHeader = "corpus-git memo 1"
	maxCounts    = 16 << 20
	// oldCountFile is its name in versions that kept only counts.
	oldCountFile = "corpus-git.untracked"
)

// folderCount is a folder, with its slash ("" is the top), and the number of untracked names in it.
type folderCount struct {
	dir string
	n   int
}

// folderCounts belongs to one index: list are the folders with untracked names, in order, as of a time of the file system.
type folderCounts struct {
	at   timestamp
	list []folderCount
}

// below returns the part of the list for dir, given with its slash, and what is in it.
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

// parseFolderCounts returns nil for data that does not belong to that index, or is damaged: it only saves work.
func parseFolderCounts(data []byte, of index.ID) *folderCounts {
	const end = 9 // eight digits and the line feed
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

// readFolderCounts reads the counts of an index.
func (g *gitFolder) readFolderCounts(of index.ID) *folderCounts {
	data, _, err := readFileAt(g.fd, countsFile, maxCounts)
	if err != nil {
		return nil
	}
	return parseFolderCounts(data, of)
}

// writeFolderCounts writes m beside the index. If m has no time, it sets the file system's current one.
func (g *gitFolder) writeFolderCounts(m *folderCounts, of index.ID) error {
	tmp := tmpPrefix + countsFile
	if m.at == (timestamp{}) {
		// A new file's time is the file system's current one.
		if err := writeFileAt(g.fd, tmp, nil, false, g.req.Owner, &g.replaced); err != nil {
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
	err := g.overwriteCounts(data)
	if err != nil {
		err = writeFileAt(g.fd, countsFile, data, false, g.req.Owner, &g.replaced)
	}
	for _, name := range []string{tmp, oldCountFile} {
		err = errors.Join(err, ignore(unix.Unlinkat(g.fd, name, 0), unix.ENOENT))
	}
	return err
}

// overwriteCounts writes the counts in place of those of the same size, which saves a file that is created and one that is removed. Only a Sync reads them, while it
// holds the lock; a part of a sector is never half written; and they count only with the index that they belong to.
func (g *gitFolder) overwriteCounts(data []byte) error {
	fd, err := openat(g.fd, countsFile, unix.O_WRONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink != 1 || st.Size != int64(len(data)) || len(data) > sector {
		return errDiffers
	}
	if err := g.req.Owner.setOwner(fd, 0o644); err != nil {
		return err
	}
	n, err := unix.Pwrite(fd, data, 0)
	if err == nil && n != len(data) {
		err = io.ErrShortWrite
	}
	return err
}

// sector is what a disk writes at once.
const sector = 512

var errDiffers = errors.New("of another size")

// indexFile is the index on disk, data nil if there is none.
type indexFile struct {
	data []byte
	id   index.ID
	// written is the file's own inode facts.
	written index.Stat
	// counts are those of this index, nil if there are none: then it is unknown whether a Sync wrote these bytes.
	counts *folderCounts
	// marked: a Sync died before it had removed the mark of index.lock.
	marked bool
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
	return &indexFile{data: data, id: id, written: index.NewStat(st), counts: g.readFolderCounts(id), marked: st.Mode&unix.S_ISVTX != 0}, nil
}

// plain returns the index with its entries unparsed, nil for an index that is not known to be intact and written by Sync.
func (f *indexFile) plain() *index.Unparsed {
	if f.counts == nil {
		return nil
	}
	return index.NewUnparsed(f.data)
}

func (g *gitFolder) noteUnusable() {
	g.notes = append(g.notes, "the working copy's index was unusable; every file was compared")
}

// parse returns nil for a missing index, and for an unusable one: everything is then compared by content.
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
