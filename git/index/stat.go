package index

import "golang.org/x/sys/unix"

// Stat is what the index keeps of a file's inode, each field cut to 32 bits as gitformat-index(5) says.
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

// Mtime is the time of the last change of content, in an order that numbers have.
func (s *Stat) Mtime() uint64 { return pair(s.mtimeSec, s.mtimeNsec) }

// Racy reports whether a file is as new as the index that was written when: it may have changed without showing it ("racy git").
func (s *Stat) Racy(written *Stat) bool { return s.Mtime() >= written.Mtime() }

// SameContent reports whether two facts differ in owner and time of change alone.
func (s Stat) SameContent(t Stat) bool {
	t.ctimeSec, t.ctimeNsec, t.uid, t.gid = s.ctimeSec, s.ctimeNsec, s.uid, s.gid
	return s == t
}

func pair(high, low uint32) uint64 { return uint64(high)<<32 | uint64(low) }
