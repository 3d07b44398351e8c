package object

// Modes of tree and index entries (gitformat-index(5)). Type bits are those of Type; the low bits of a file's mode are its permissions.
const (
	ModeType    uint32 = 0o170000
	ModeRegular uint32 = 0o100000 // the type bits of File and Executable

	ModeTree       uint32 = 0o040000
	ModeFile       uint32 = 0o100644
	ModeExecutable uint32 = 0o100755
	ModeSymlink    uint32 = 0o120000
	ModeGitlink    uint32 = 0o160000
)

// Canonical returns the mode that git writes today in place of one that an old version wrote: a file is executable for its owner or not,
// and a tree has no permissions. A mode of another type is returned as it is.
func Canonical(mode uint32) uint32 {
	switch {
	case mode&ModeType == ModeRegular && mode&0o100 != 0:
		return ModeExecutable
	case mode&ModeType == ModeRegular:
		return ModeFile
	case mode&ModeType == ModeTree:
		return ModeTree
	default:
		return mode
	}
}

// IsBlobMode reports whether mode is one that git writes for an entry that is not a tree: a file, a symbolic link or a submodule's commit.
func IsBlobMode(mode uint32) bool {
	return mode == ModeFile || mode == ModeExecutable || mode == ModeSymlink || mode == ModeGitlink
}

// SameType compares the types of two modes; the executable bit is not part of the type.
func SameType(a, b uint32) bool { return a&ModeType == b&ModeType }
