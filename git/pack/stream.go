package pack

import (
	"bytes"
	"io"
	"os"

	"github.com/go-git/go-git/v5/plumbing"
)

// Stream opens the object at off. An object that is not a delta is inflated as it is read and never held as a whole.
func (p *Pack) Stream(off int64) (plumbing.ObjectType, int64, io.ReadCloser, error) {
	if err := p.acquire(); err != nil {
		return 0, 0, nil, err
	}
	e, err := p.entry(nil, off)
	if err != nil || e.Delta() || e.Size <= wholeRead {
		defer p.release()
		if err != nil {
			return 0, 0, nil, err
		}
		t, b, err := p.Get(off)
		if err != nil {
			return 0, 0, nil, err
		}
		return t, int64(len(b)), io.NopCloser(bytes.NewReader(b)), nil
	}
	r := p.z.Get().(*reader)
	if err := r.z.reset(p.stream(r, e)); err != nil {
		p.z.Put(r)
		p.release()
		return 0, 0, nil, p.at(e, inflateError(err))
	}
	return e.Type, e.Size, &streamed{p: p, r: r, e: e, left: e.Size}, nil
}

type streamed struct {
	p    *Pack
	r    *reader
	e    Entry
	left int64
}

func (s *streamed) Read(b []byte) (int, error) {
	if s.r == nil {
		return 0, os.ErrClosed
	}
	if s.left == 0 {
		if err := s.r.z.end(); err != nil {
			return 0, s.p.at(s.e, err)
		}
		return 0, io.EOF
	}
	n, err := s.r.z.zr.Read(b[:min(int64(len(b)), s.left)])
	s.left -= int64(n)
	if s.left == 0 {
		return n, nil
	}
	if err != nil {
		return n, s.p.at(s.e, inflateError(err))
	}
	return n, nil
}

func (s *streamed) Close() error {
	if s.r == nil {
		return nil
	}
	s.p.z.Put(s.r)
	s.r = nil
	return s.p.release()
}
