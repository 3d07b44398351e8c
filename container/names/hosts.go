package names

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"strings"

	"corpus-git/internal/vfs"
)

// hostsMark is the end of the lines of a hosts(5) file that are ours.
const hostsMark = "# corpus-git"

// SetHost sets the address of a name in a hosts(5) file, replacing any other address of that name in the lines that this package wrote; an invalid address
// removes the name. The lines of others stay as they are. changed reports whether the file changed. It is durable on return.
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
