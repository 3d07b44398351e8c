// Package journal is the append-only record of one project's deployments, from which crashes are recovered.
//
// It owns the file: its format, what is durable when, and what a crash may leave behind. It does not decide what follows from an entry.
//
// A crash may leave incomplete entries at its end, which were not durable yet and which Open skips.
package journal

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"corpus-git/internal/vfs"
	"corpus-git/procedures"
	"corpus-git/procedures/resume"
	"corpus-git/project"
)

// Kind is the type of an entry. The last entry decides how a crash is recovered from.
type Kind string

const (
	// Accepted means that a deployment begins; nothing has changed yet.
	Accepted Kind = "accepted"
	// Begin means that a procedure is about to change the machine.
	Begin Kind = "begin"
	// Waiting means that the deployment is about to wait for signals; nothing else changes meanwhile. If it is the last entry, the deployment may continue.
	Waiting Kind = "waiting"
	// Waited means that a wait has ended, and the procedure goes on.
	Waited Kind = "waited"
	// Failing means that the deployment has failed and will be rolled back, if its environment is configured to.
	Failing Kind = "failing"
	// RollingBack means that the archived tree is about to be restored.
	RollingBack Kind = "rolling-back"
	// Ready means that everything ran, and names the refs that move once all of it is durable. The entry becomes durable with it. So if it is the last
	// one, the deployment goes live if one of the refs has moved, and otherwise may be incomplete.
	Ready Kind = "ready"
	// Committing means that everything ran and is durable, and the branch is about to move.
	Committing Kind = "committing"
	// Ended means that the result is final.
	Ended Kind = "ended"
)

// Entry is one record of a journal.
type Entry struct {
	Time       time.Time  `json:"time"`
	Kind       Kind       `json:"kind"`
	Deployment project.ID `json:"deployment"`
	// Facts are the facts of an Accepted entry.
	Facts *project.Deployment `json:"facts,omitempty"`
	// Procedure is the procedure that begins.
	Procedure string `json:"procedure,omitempty"`
	// Paused is where a Waiting one would continue.
	Paused *resume.Paused `json:"paused,omitempty"`
	// Archive is the archive's folder name, once it is known.
	Archive string `json:"archive,omitempty"`
	// Keep is true if a failure stays in place.
	Keep bool `json:"keep,omitempty"`
	// Changes are the refs that Committing moves, after a Ready one with the same.
	Changes []RefChange `json:"changes,omitempty"`
	// Result is the result in an Ended entry, and what is known of a Failing one.
	Result *project.Result `json:"result,omitempty"`
}

// RefChange is a change of one ref of one repository.
type RefChange struct {
	Repo   project.Repo   `json:"repo"`
	Change project.Change `json:"change"`
	// Head makes the ref the deployed one.
	Head bool `json:"head,omitempty"`
}

// Journal is the append-only record of one project's deployments: one line each, a CRC-32C in hexadecimal, a space, JSON. An entry is
// durable when Append returns, except for a Begin that recovery does not depend on: that of the archive, which only reads, and each one
// after the first that changes the tree; and a Committing after a Ready. The next entry makes it durable too. Write leaves syncing to Sync: for an Accepted,
// on which nothing depends before the tree is changed, a Ready, and an Ended. Incomplete entries that were not durable are skipped when the journal is
// opened; any other damage is an error, because guessing could lose a tree. Each line names the deciding entry before it, which tells the
// two cases apart. Not safe for concurrent use: the project's lock guards it.
type Journal struct {
	path string
	file *os.File
	size int64
	tail tail
	// named reports that the file's name is durable, ended that nothing is open in it.
	named, ended bool
	// closed remembers it when it is closed; nil if nothing does.
	closed *Closed
}

// tail is where a sequence of entries ends.
type tail struct {
	durable string     // the checksum of the last deciding entry
	id      project.ID // whose entry came last
	changed bool       // its deployment has begun to change the tree
	ready   bool       // it is a Ready one
}

// next returns the tail after one more entry. decides reports whether a recovery depends on it: then it must be durable before what it
// announces begins.
func (t tail) next(e Entry, sum string) (_ tail, decides bool) {
	changes, same := ChangesTree(e), t.id == e.Deployment
	if e.Kind == Begin && (!changes || t.changed && same) || e.Kind == Committing && t.ready && same {
		return t, false
	}
	return tail{durable: sum, id: e.Deployment, changed: changes || (t.changed && e.Kind != Accepted), ready: e.Kind == Ready}, true
}

// ChangesTree reports whether an entry announces a procedure that changes what is live.
func ChangesTree(e Entry) bool {
	return e.Kind == Begin && e.Procedure != procedures.NameArchive && e.Procedure != procedures.NameNodes
}

// Changed reports whether a procedure began that changes what is live.
func Changed(entries []Entry) bool {
	for _, e := range entries {
		if ChangesTree(e) {
			return true
		}
	}
	return false
}

// OpenEnded reports whether the deployment of these entries, the last one of a journal, has not ended.
func OpenEnded(entries []Entry) bool {
	return len(entries) > 0 && entries[0].Facts != nil && entries[len(entries)-1].Kind != Ended
}

// journalLine is the JSON of a line.
type journalLine struct {
	Entry
	// After is the checksum of the durable entry before this one.
	After string `json:"after,omitempty"`
}

// maxJournal is the size at which a journal whose last deployment has ended is started anew.
const maxJournal = 1 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Open opens or creates a journal and returns the entries of its last deployment, if any. A caller that acts on entries of an earlier
// process must call Sync first.
func Open(path string) (*Journal, []Entry, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, err
	}
	before, err := lastAccepted(f)
	var data []byte
	if err == nil {
		data, err = readFrom(f, before)
	}
	var entries []Entry
	var size int64
	var end tail
	if err == nil {
		entries, size, end, err = readJournal(data)
		size += before
	}
	if err == nil {
		err = cutTail(f, size)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, fmt.Errorf("journal %s: %w", path, err)
	}
	entries = lastOf(entries)
	return &Journal{path: path, file: f, size: size, tail: end, ended: !OpenEnded(entries)}, entries, nil
}

// readFrom reads a file from an offset, with a buffer of the size of that.
func readFrom(f *os.File, at int64) ([]byte, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Grow(int(max(0, st.Size()-at)) + bytes.MinRead)
	_, err = b.ReadFrom(io.NewSectionReader(f, at, max(0, st.Size()-at)))
	return b.Bytes(), err
}

// longLine is more than a line of a journal takes.
const longLine = 64 << 10

// lastAccepted returns the offset of the last Accepted entry if every line of the journal is whole: then nothing before it matters, and parsing
// it, for a long journal, would take longer than the rest of a push. Otherwise it returns 0.
func lastAccepted(f io.ReaderAt) (int64, error) {
	var found []int64 // where it may be
	r := bufio.NewReaderSize(io.NewSectionReader(f, 0, 1<<62), longLine)
	for at := int64(0); ; {
		line, err := r.ReadSlice('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			break
		}
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return 0, err
		}
		if _, bad := wholeLine(line); bad != nil {
			return 0, nil //nolint:nilerr // all of it is read
		}
		if bytes.Contains(line, []byte(`"kind":"`+Accepted+`"`)) {
			found = append(found, at)
		}
		at += int64(len(line))
	}
	for _, at := range slices.Backward(found) {
		line, err := bufio.NewReaderSize(io.NewSectionReader(f, at, longLine), longLine).ReadBytes('\n')
		if err != nil {
			return 0, err
		}
		if l, _, err := parseEntry(line); err == nil && l.Kind == Accepted {
			return at, nil
		}
	}
	return 0, nil
}

// cutTail truncates incomplete entries at the end; a journal without them is not changed.
func cutTail(f *os.File, size int64) error {
	st, err := f.Stat()
	if err != nil || st.Size() == size {
		return err
	}
	return f.Truncate(size)
}

func lastOf(entries []Entry) []Entry {
	for i := len(entries) - 1; i >= 0; i-- {
		if entries[i].Kind == Accepted {
			return entries[i:]
		}
	}
	return entries
}

// readJournal returns all whole entries, where the last of them ends, and the tail after them.
func readJournal(data []byte) (entries []Entry, size int64, end tail, err error) {
	for at := 0; at < len(data); {
		n := bytes.IndexByte(data[at:], '\n') + 1
		l, sum, bad := parseEntry(data[at : at+n])
		if bad != nil {
			next := at
			for {
				if next = nextEntry(data, next+1); next < 0 {
					return entries, size, end, nil
				}
				n = bytes.IndexByte(data[next:], '\n') + 1
				if l, sum, err = parseEntry(data[next : next+n]); err != nil {
					return nil, 0, tail{}, err
				}
				if l.After != "" && l.After == end.durable {
					break
				}
				// After an Accepted that was not durable there is no deciding entry.
				if _, decides := end.next(l.Entry, sum); decides || l.Deployment == end.id {
					return nil, 0, tail{}, fmt.Errorf("entry %d at byte %d is damaged and is not the last one: %w", len(entries)+1, size, bad)
				}
			}
			at = next
		}
		entries = append(entries, l.Entry)
		end, _ = end.next(l.Entry, sum)
		at += n
		size = int64(at)
	}
	return entries, size, end, nil
}

// nextEntry returns the offset of the first complete entry at or after from, -1 if there is none.
func nextEntry(data []byte, from int) int {
	for i := from; i+10 < len(data); i++ {
		if data[i+8] != ' ' || data[i+9] != '{' {
			continue
		}
		n := bytes.IndexByte(data[i:], '\n') + 1
		if _, _, err := parseEntry(data[i : i+n]); err == nil {
			return i
		}
	}
	return -1
}

func parseEntry(line []byte) (l journalLine, sum string, err error) {
	text, err := wholeLine(line)
	if err != nil {
		return l, "", err
	}
	return l, string(line[:8]), json.Unmarshal(text, &l)
}

// wholeLine returns the JSON of a line that is as it was written.
func wholeLine(line []byte) ([]byte, error) {
	body, ok := bytes.CutSuffix(line, []byte("\n"))
	if !ok {
		return nil, io.ErrUnexpectedEOF
	}
	if len(body) < 10 || body[8] != ' ' {
		return nil, errors.New("no checksum")
	}
	if checksum(body[9:]) != [8]byte(body) {
		return nil, errors.New("wrong checksum")
	}
	return body[9:], nil
}

// checksum returns eight lower-case hexadecimal digits.
func checksum(data []byte) (sum [8]byte) {
	hex.Encode(sum[:], binary.BigEndian.AppendUint32(nil, crc32.Checksum(data, castagnoli)))
	return sum
}

// Append adds e. It is durable on return, except as described at Journal; on an error the journal is unchanged.
func (j *Journal) Append(e Entry) error { return j.add(e, true) }

// Write adds e. It is made durable by Sync, or by the next entry that Append makes durable.
func (j *Journal) Write(e Entry) error { return j.add(e, false) }

// Sync makes durable what the journal holds, and its name.
func (j *Journal) Sync() error { return j.SyncBut(0) }

// SyncBut is Sync after a sync of a whole file system, given by its device number: if the journal is on it, nothing is left to do.
func (j *Journal) SyncBut(covered uint64) error {
	if st, err := j.file.Stat(); err == nil && covered != 0 {
		if sys, ok := st.Sys().(*syscall.Stat_t); ok && uint64(sys.Dev) == covered {
			j.named = true
			return nil
		}
	}
	err := j.file.Sync()
	if err == nil && !j.named {
		err = vfs.SyncDir(vfs.OS{}, filepath.Dir(j.path))
		j.named = err == nil
	}
	if err != nil {
		return fmt.Errorf("journal %s: %w", j.path, err)
	}
	return nil
}

func (j *Journal) add(e Entry, sync bool) error {
	if e.Kind == Accepted && j.size > maxJournal {
		if err := j.restart(); err != nil {
			return err
		}
	}
	data, err := json.Marshal(journalLine{Entry: e, After: j.tail.durable})
	if err != nil {
		return err
	}
	digits := checksum(data)
	sum := string(digits[:])
	line := fmt.Appendf(nil, "%s %s\n", sum, data)
	end, decides := j.tail.next(e, sum)
	if _, err = j.file.Write(line); err != nil {
		err = fmt.Errorf("journal %s: %w", j.path, err)
	} else if decides && sync {
		err = j.Sync()
	}
	if err != nil {
		return errors.Join(err, j.file.Truncate(j.size))
	}
	j.size += int64(len(line))
	j.tail, j.ended = end, e.Kind == Ended
	return nil
}

// restart starts an empty journal; the deployments in the old one have all ended.
func (j *Journal) restart() error {
	if err := vfs.WriteFileAtomic(vfs.OS{}, j.path, nil, 0o600); err != nil {
		return err
	}
	f, err := os.OpenFile(j.path, os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_ = j.file.Close()
	j.file, j.size, j.tail, j.named = f, 0, tail{}, true
	return nil
}

// Close releases the file.
func (j *Journal) Close() error {
	j.closed.remember(j)
	return j.file.Close()
}
