package index

import "golang.org/x/sys/unix"

// Stat is what the index keeps of a file's inode, each field truncated to 32 bits as gitformat-index(5) requires.
type Stat struct {
	ctimeSec, ctimeNsec uint32
	mtimeSec, mtimeNsec uint32
	dev, ino            uint32
	uid, gid            uint32
	Size                uint32
}

// NewStat takes the facts from an inode.
func NewStat(st *unix.Stat_t) Stat {
	return Stat{
		ctimeSec: uint32(st.Ctim.Sec), ctimeNsec: uint32(st.Ctim.Nsec), mtimeSec: uint32(st.Mtim.Sec), mtimeNsec: uint32(st.Mtim.Nsec),
		dev: uint32(st.Dev), ino: uint32(st.Ino), uid: st.Uid, gid: st.Gid, Size: uint32(st.Size),
	}
}

// Mtime returns the modification time as one comparable number.
func (s *Stat) Mtime() uint64 { return pair(s.mtimeSec, s.mtimeNsec) }

// Racy reports whether a file is not older than the index, which was written at the given time: it may have changed undetected ("racy
// git").
func (s *Stat) Racy(written *Stat) bool { return s.Mtime() >= written.Mtime() }

// SameContent reports whether two facts differ at most in owner and change time.
func (s Stat) SameContent(t Stat) bool {
	t.ctimeSec, t.ctimeNsec, t.uid, t.gid = s.ctimeSec, s.ctimeNsec, s.uid, s.gid
	return s == t
}

func pair(high, low uint32) uint64 { return uint64(high)<<32 | uint64(low) }
