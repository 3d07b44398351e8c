package names

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"strings"

	"corpus-git/internal/vfs"
)

// hostsMark ends the lines of a hosts(5) file that are ours.
const hostsMark = "# corpus-git"

// SetHost has a hosts(5) file name an address, and no other one by that name in the lines that this package wrote; an invalid address takes the name away. The
// lines of others stay as they are. changed reports that the file was another one. Durable on return.
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
