package archive

import (
	"fmt"

	"corpus-git/archive/tree"
	"corpus-git/internal/fault"
)

// SpaceError reports that an archive was not begun because it would leave less than the reserve free. All figures are for the file system
// that holds the archives, before the first byte was written.
type SpaceError struct {
	Path string
	// Need is the total that is needed, Later the part of it that the caller will write (MakeRequest.Later).
	Need, Later, Free, Reserve uint64 // Bytes
	NeedInodes, FreeInodes     uint64
}

// Usable returns how much of the free space may be used.
func (e *SpaceError) Usable() uint64 { return e.Free - min(e.Free, e.Reserve) }

// Missing returns how many bytes must be freed, 0 if inodes are short.
func (e *SpaceError) Missing() uint64 { return e.Need + e.Reserve - min(e.Free, e.Need+e.Reserve) }

// Error names what is short, with figures.
func (e *SpaceError) Error() string {
	what := "it takes " + size(e.Need)
	if e.Later > 0 {
		what = fmt.Sprintf("it takes %s, the checkout %s", size(e.Need-e.Later), size(e.Later))
	}
	if e.short() {
		return fmt.Sprintf("not enough space for an archive in %s: %s, %s of %s free may be used (%s stay in reserve)",
			e.Path, what, size(e.Usable()), size(e.Free), size(e.Reserve))
	}
	return fmt.Sprintf("not enough inodes for an archive in %s: it takes %d, %d are free", e.Path, e.NeedInodes, e.FreeInodes)
}

func (e *SpaceError) short() bool { return e.Need+e.Reserve > e.Free }

// size formats a number of bytes for people.
func size(n uint64) string {
	const units = "kMGTPE"
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v, u := float64(n)/1000, 0
	for v >= 999.95 && u < len(units)-1 {
		v, u = v/1000, u+1
	}
	return fmt.Sprintf("%.1f %cB", v, units[u])
}

// checkSpace compares what a plan takes with what is free. Others may fill the disk after it: write errors decide.
func (s *Store) checkSpace(p *tree.Plan) error { return s.checkRoom(p, Later{}) }

// checkRoom is checkSpace including what the caller will write afterwards.
func (s *Store) checkRoom(p *tree.Plan, later Later) error {
	net := func(need, freed int64) uint64 { return uint64(max(0, need-freed)) }
	return s.checkNeed(Later{net(p.Bytes, p.Freed), net(p.Inodes, p.FreedInodes)}, later)
}

// checkNeed compares what an archive takes, and what the caller will write later, with what is free.
func (s *Store) checkNeed(now, later Later) error {
	sp, err := s.fs.StatFS(s.there())
	if err != nil {
		return err
	}
	e := &SpaceError{
		Path: s.dir(), Need: now.Bytes + later.Bytes, Later: later.Bytes, Free: sp.Free, Reserve: s.cfg.Reserve.of(sp.Total),
		NeedInodes: now.Inodes + later.Inodes, FreeInodes: sp.Inodes,
	}
	if e.Need == 0 && e.NeedInodes == 0 {
		return nil
	}
	if e.short() || (sp.Files != 0 && e.NeedInodes > e.FreeInodes) {
		return fault.New(fault.Busy, "make archive", "%w", e).
			WithHint("free some space, or drop archives: corpus-git archives prune %s", s.project.Name())
	}
	return nil
}
