package undo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"corpus-git/internal/vfs"
)

// text is a path or a link's target: in JSON a string if it is UTF-8, otherwise {"bytes": base64}.
type text string

// MarshalJSON implements json.Marshaler.
func (t text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(map[string][]byte{"bytes": []byte(t)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(t))
	}
	var m map[string][]byte
	err := json.Unmarshal(b, &m)
	*t = text(m["bytes"])
	return err
}

// The kinds of records.
const (
	kindBoot   = "boot"   // Machine.Boot, first of all
	kindBefore = "before" // the previous content of a path
	kindAfter  = "after"  // the result of a state there
	kindAgain  = "again"  // the result of a state is about to change again
	kindAction = "action" // a change that is not a file
	kindActed  = "acted"  // the result of an action's probe afterwards
	kindManual = "manual" // a change that can't be undone automatically
	kindUndone = "undone" // Undo has processed the log
)

// record is one line of the journal.
type record struct {
	// Seq counts from 1.
	Seq   int    `json:"seq"`
	Kind  string `json:"kind"`
	State State  `json:"state,omitzero"`
	// Of is the record that a result belongs to.
	Of     int     `json:"of,omitempty"`
	Path   text    `json:"path,omitempty"`
	Node   *Node   `json:"node,omitempty"`
	Action *Action `json:"action,omitempty"`
	Output *string `json:"output,omitempty"`
	What   string  `json:"what,omitempty"`
	Report *Report `json:"report,omitempty"`
}

// State names what changed something.
type State struct {
	Step string `json:"step,omitempty"`
	ID   string `json:"id,omitempty"`
}

// journalFile and filesDir are the names in the log's folder.
const (
	journalFile = "journal"
	filesDir    = "files"
)

// inJournal is the value of Node.Saved if the content is in the record.
const inJournal = "journal"

// maxJournal limits how much of a journal is read.
const maxJournal = 256 << 20

// readRecords reads the journal of a log; a truncated last line is skipped. If there is no folder, there are no records.
func readRecords(f vfs.FS, dir string) ([]record, error) {
	st, err := f.Lstat(filepath.Join(dir, journalFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if st.Size > maxJournal {
		return nil, fmt.Errorf("%s: larger than %d bytes", filepath.Join(dir, journalFile), maxJournal)
	}
	data, err := vfs.ReadFile(f, filepath.Join(dir, journalFile))
	if err != nil {
		return nil, err
	}
	return parse(data)
}

// parse reads the lines of a journal. Only the text after the last line feed may be truncated.
func parse(data []byte) ([]record, error) {
	var out []record
	for n := 1; ; n++ {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			return out, nil
		}
		var r record
		if err := json.Unmarshal(line, &r); err != nil {
			if len(rest) == 0 {
				return out, nil // a crash may leave the full length without all of the content
			}
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if err := r.valid(); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		out = append(out, r)
		data = rest
	}
}

func (r record) valid() error {
	switch r.Kind {
	case kindBefore, kindAfter:
		if r.Node == nil || !filepath.IsAbs(string(r.Path)) || filepath.Clean(string(r.Path)) != string(r.Path) {
			return errors.New("a path or what stood there is missing")
		}
		if s := r.Node.Saved; strings.ContainsRune(s, '/') || s == "." || s == ".." {
			return errors.New("the name of a copy leads elsewhere")
		}
	case kindAction:
		if r.Action == nil || len(r.Action.Undo) == 0 {
			return errors.New("an action without a command")
		}
	case kindUndone:
		if r.Report == nil {
			return errors.New("what became of it is missing")
		}
	case kindActed, kindManual, kindBoot, kindAgain:
	default:
		return fmt.Errorf("kind %q is not known", r.Kind)
	}
	return nil
}
