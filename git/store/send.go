package store

import (
	"context"
	"io"

	"corpus-git/git/pack"

	"github.com/go-git/go-git/v5/plumbing"
)

// PackOptions are the options of WritePack.
type PackOptions struct {
	// OfsDelta, Has and Progress are those of pack.Writer.
	OfsDelta bool
	Has      func(plumbing.Hash) bool
	Progress func(done, total int)
}

// WritePack writes a pack of the objects to w, and returns its trailer. See pack.Writer for what it reuses.
func WritePack(ctx context.Context, w io.Writer, r Reader, objects []plumbing.Hash, o PackOptions) (plumbing.Hash, error) {
	pw := &pack.Writer{Source: packSource{r}, OfsDelta: o.OfsDelta, Has: o.Has, Progress: o.Progress}
	return pw.Write(ctx, w, objects)
}

// packSource adapts a Reader to package pack.
type packSource struct{ Reader }

func (s packSource) Open(h plumbing.Hash) (plumbing.ObjectType, int64, io.ReadCloser, error) {
	o, err := s.Stream(h)
	if err != nil {
		return 0, 0, nil, err
	}
	return o.Type, o.Size, o.ReadCloser, nil
}
