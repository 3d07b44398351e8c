package names

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/internal/vfs"
)

// hostsMark is the end of the lines of a hosts(5) file that are ours.
const hostsMark = "# corpus-git"

// named returns the address that a line of a hosts(5) file gives a name, "" for none.
func named(line, name string) string {
	line, _, _ = strings.Cut(line, "#")
	words := strings.Fields(line)
	if len(words) > 1 && slices.ContainsFunc(words[1:], func(w string) bool { return strings.EqualFold(w, name) }) {
		return words[0]
	}
	return ""
}

// SetHost sets the address of a name in a hosts(5) file, replacing any other address of that name in the lines that this package wrote; an invalid address
// removes the name. The lines of others stay as they are; one that gives the name another address, which clients would use, is fault.Refused. changed reports whether the file changed. It is durable on return.
func SetHost(f vfs.FS, path, name string, a netip.Addr) (changed bool, err error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	var out strings.Builder
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if strings.HasSuffix(strings.TrimSpace(line), hostsMark) && len(words) > 1 && words[1] == name {
			continue
		}
		if other := named(line, name); a.IsValid() && other != "" && other != a.String() {
			return false, fault.New(fault.Refused, "", "%s has another address of %s already: %s", path, name, printable.Text(other)).WithHint("remove that line, or choose another name")
		}
		out.WriteString(line)
	}
	if a.IsValid() {
		if s := out.String(); s != "" && !strings.HasSuffix(s, "\n") {
			out.WriteString("\n")
		}
		out.WriteString(a.String() + " " + name + " " + hostsMark + "\n")
	}
	if out.String() == string(text) {
		return false, nil
	}
	mode := uint32(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = uint32(info.Mode().Perm())
	}
	return true, vfs.WriteFileAtomic(f, path, []byte(out.String()), mode)
}
