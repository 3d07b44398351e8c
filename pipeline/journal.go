package pipeline

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"time"

	"corpus-git/internal/vfs"
	"corpus-git/project"
)

// EntryKind is a boundary in a deployment's life. A crash between two entries is recovered from
// by what the last one says.
type EntryKind string

const (
	// Accepted says that objects and pins are published, nothing else has changed yet.
	Accepted EntryKind = "accepted"
	// Begin says that a procedure is about to change the machine.
	Begin EntryKind = "begin"
	// Failing says that the deployment has failed and will be rolled back, if its environment wants that.
	Failing EntryKind = "failing"
	// RollingBack says that the archived tree is about to come back.
	RollingBack EntryKind = "rolling-back"
	// Committing says that everything ran; the branch is about to move.
	Committing EntryKind = "committing"
	// Ended says that the result is final.
	Ended EntryKind = "ended"
)

// Entry is one record of a journal.
type Entry struct {
	Time       time.Time  `json:"time"`
	Kind       EntryKind  `json:"kind"`
	Deployment project.ID `json:"deployment"`
	// Facts are those of an Accepted entry.
	Facts *project.Deployment `json:"facts,omitempty"`
	// Procedure names what begins.
	Procedure string `json:"procedure,omitempty"`
	// Archive is the archive's folder name, once it is known.
	Archive string `json:"archive,omitempty"`
	// Keep is true where a failure stays in place.
	Keep bool `json:"keep,omitempty"`
	// Changes are the refs that Committing moves.
	Changes []RefChange `json:"changes,omitempty"`
	// Result is that of an Ended entry, and what is known of a Failing one.
	Result *project.Result `json:"result,omitempty"`
}

// RefChange is a change of one ref of one repository.
type RefChange struct {
	Repo   project.Repo   `json:"repo"`
	Change project.Change `json:"change"`
	// Head makes the ref the deployed one.
	Head bool `json:"head,omitempty"`
}

// Journal is the append-only record of one project's deployments: one line each, a CRC-32C in
// hexadecimal, a space, JSON. An entry is durable when Append returns. A torn last line, left by a
// crash in the middle of an append, is cut off when the journal is opened; any other damage is an
// error, because guessing here could lose a tree. Not safe for concurrent use: the project's lock guards it.
type Journal struct {
	path string
	file *os.File
	size int64
}

// maxJournal is the size from which a journal whose last deployment has ended starts anew.
const maxJournal = 1 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// OpenJournal opens or creates a journal and returns the entries of its last deployment, if any.
func OpenJournal(path string) (*Journal, []Entry, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, err
	}
	entries, size, err := readJournal(f)
	if err == nil {
		err = cutTail(f, size)
	}
	if err == nil {
		err = errors.Join(f.Sync(), vfs.SyncDir(vfs.OS{}, dir))
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, fmt.Errorf("journal %s: %w", path, err)
	}
	return &Journal{path: path, file: f, size: size}, lastOf(entries), nil
}

// cutTail takes off what follows the whole entries; a journal without a torn tail is left alone.
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

// readJournal returns all whole entries and the size they take.
func readJournal(r io.Reader) (entries []Entry, size int64, err error) {
	br := bufio.NewReader(r)
	for {
		line, err := br.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
		if len(line) == 0 {
			return entries, size, nil
		}
		e, bad := parseEntry(line)
		if bad != nil {
			rest, rerr := io.ReadAll(br)
			if rerr != nil {
				return nil, 0, rerr
			}
			if hasEntry(line[1:]) || hasEntry(rest) {
				return nil, 0, fmt.Errorf("entry %d at byte %d is damaged and is not the last one: %w", len(entries)+1, size, bad)
			}
			return entries, size, nil
		}
		entries = append(entries, e)
		size += int64(len(line))
	}
}

// hasEntry reports whether a whole entry begins anywhere in b: then what stands before it was not a torn tail.
func hasEntry(b []byte) bool {
	for line := range bytes.SplitAfterSeq(b, []byte("\n")) {
		for i := 0; i+10 < len(line); i++ {
			if line[i+8] != ' ' || line[i+9] != '{' {
				continue
			}
			if _, err := parseEntry(line[i:]); err == nil {
				return true
			}
		}
	}
	return false
}

func parseEntry(line []byte) (e Entry, err error) {
	body, ok := bytes.CutSuffix(line, []byte("\n"))
	if !ok {
		return e, io.ErrUnexpectedEOF
	}
	if len(body) < 10 || body[8] != ' ' {
		return e, errors.New("no checksum")
	}
	if string(body[:8]) != checksum(body[9:]) {
		return e, errors.New("wrong checksum")
	}
	return e, json.Unmarshal(body[9:], &e)
}

// checksum is eight lower-case hexadecimal digits.
func checksum(data []byte) string { return fmt.Sprintf("%08x", crc32.Checksum(data, castagnoli)) }

// Append adds e. Durable on return; when it fails, the journal is as it was.
func (j *Journal) Append(e Entry) error {
	if e.Kind == Accepted && j.size > maxJournal {
		if err := j.restart(); err != nil {
			return err
		}
	}
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	line := fmt.Appendf(nil, "%s %s\n", checksum(data), data)
	if _, err = j.file.Write(line); err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("journal %s: %w", j.path, err), j.file.Truncate(j.size))
	}
	j.size += int64(len(line))
	return nil
}

// restart begins an empty journal; the deployments in the old one have all ended.
func (j *Journal) restart() error {
	if err := vfs.WriteFileAtomic(vfs.OS{}, j.path, nil, 0o600); err != nil {
		return err
	}
	f, err := os.OpenFile(j.path, os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_ = j.file.Close()
	j.file, j.size = f, 0
	return nil
}

// Close releases the file.
func (j *Journal) Close() error { return j.file.Close() }
