package fsck

import (
	"bytes"
	"unicode/utf8"
)

// IsDotGit reports whether some file system treats a name as ".git": in another case, with characters that HFS+ ignores, with a suffix that
// NTFS drops, as NTFS's short name, or after a backslash.
func IsDotGit(name []byte) bool {
	if hfs(name, ".git") {
		return true
	}
	for {
		part, rest, more := bytes.Cut(name, []byte(`\`))
		if ntfsDotGit(part) {
			return true
		}
		if !more {
			return false
		}
		name = rest
	}
}

// IsDotGitmodules reports whether some file system treats a name as ".gitmodules".
func IsDotGitmodules(name []byte) bool {
	return hfs(name, ".gitmodules") || ntfsDot(name, "gitmodules", "gi7eba")
}

// hfs compares as HFS+ does: ignoring case, and the characters that HFS+ ignores.
func hfs(name []byte, want string) bool {
	for i := 0; ; {
		if len(name) == 0 {
			return i == len(want)
		}
		r, n := utf8.DecodeRune(name)
		if r == utf8.RuneError && n == 1 {
			return false
		}
		name = name[n:]
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			continue
		case i == len(want) || r > 0x7f || lower(byte(r)) != want[i]:
			return false
		}
		i++
	}
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func foldPrefix(name []byte, prefix string) bool {
	if len(name) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		if lower(name[i]) != prefix[i] {
			return false
		}
	}
	return true
}

// dropped reports whether NTFS drops the rest of a name: spaces and dots, or a stream after a colon.
func dropped(rest []byte) bool {
	for _, c := range rest {
		switch c {
		case ' ', '.':
		case ':':
			return true
		default:
			return false
		}
	}
	return true
}

func ntfsDotGit(name []byte) bool {
	return foldPrefix(name, ".git") && dropped(name[4:]) || foldPrefix(name, "git~1") && dropped(name[5:])
}

// ntfsDot reports whether a name is a spelling of "."+dotless on NTFS: the name itself, the first four short names ("gitmod~1"), and the
// hashed ones after them ("gi7eba~1", or a shorter prefix with a longer number).
func ntfsDot(name []byte, dotless, hashed string) bool {
	if foldPrefix(name, "."+dotless) && dropped(name[1+len(dotless):]) {
		return true
	}
	if foldPrefix(name, dotless[:6]+"~") && len(name) >= 8 && name[7] >= '1' && name[7] <= '4' && dropped(name[8:]) {
		return true
	}
	tilde := false
	i := 0
	for ; i < 8; i++ {
		if i >= len(name) {
			return false
		}
		c := name[i]
		switch {
		case tilde:
			if c < '0' || c > '9' {
				return false
			}
		case c == '~':
			i++
			if i >= len(name) || name[i] < '1' || name[i] > '9' {
				return false
			}
			tilde = true
		case i >= 6 || c&0x80 != 0 || lower(c) != hashed[i]:
			return false
		}
	}
	return dropped(name[i:])
}
