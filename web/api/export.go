package api

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// zstdMagic begins a frame of zstd. Source: RFC 8878, 3.1.1.
const zstdMagic = "\x28\xb5\x2f\xfd"

// exports are the operations whose answer is a file.
func (a *API) exports() {
	type one struct {
		OnProject
		Archive string `path:"archive" maxLength:"200" doc:"The archive: its name, or its deployment"`
	}
	op := operation{method: http.MethodGet, path: "/projects/{name}/archives/{archive}/export", id: "exportArchive", tag: "archives", lookup: true,
		summary: "Download an archive as a tar in zstd", about: "Requires the right configure, too: a tree may hold values of the pillar. An answer that breaks off is no whole archive."}
	huma.Register(a.huma, a.described(op, http.StatusOK, map[string]*huma.MediaType{"application/zstd": {Schema: &huma.Schema{Type: huma.TypeString}}}),
		func(_ context.Context, in *one) (*huma.StreamResponse, error) {
			return &huma.StreamResponse{Body: func(ctx huma.Context) {
				r, w := humago.Unwrap(ctx)
				a.download(w, r, op, do("archives show", in.Name, in.Archive).option("export", "-"), in.Name+".tar.zst")
			}}, nil
		})
}

// download answers with the file that a command writes. Where the command fails after the file has begun, the connection ends without an end of the answer.
func (a *API) download(w http.ResponseWriter, r *http.Request, op operation, c call, name string) {
	ctx := r.Context()
	out := &fileWriter{w: w, control: http.NewResponseController(w), name: name}
	_ = out.control.SetReadDeadline(time.Time{}) // a recorder in tests has none
	var errs bytes.Buffer
	exit := a.Run(ctx, identity(ctx), c.argv(), nil, http.NoBody, out, &errs)
	switch {
	case out.begun && exit != 0:
		panic(http.ErrAbortHandler)
	case !out.begun:
		p, _ := problemIn(out.held.Bytes())
		a.fail(w, r, op, p, exit)
	}
}

// fileWriter takes what a command prints: a file, or a problem.
type fileWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	name    string

	begun bool
	held  bytes.Buffer // before it is known which
}

// Write implements io.Writer. Each write has a deadline of its own: a reader that stopped reading ends.
func (f *fileWriter) Write(p []byte) (int, error) {
	all := p
	if !f.begun {
		f.held.Write(p)
		if all = f.held.Bytes(); !bytes.HasPrefix(all, []byte(zstdMagic)) {
			return len(p), nil
		}
		f.begun = true
		h := f.w.Header()
		h.Set("Content-Type", "application/zstd")
		h.Set("Content-Disposition", `attachment; filename="`+f.name+`"`)
		f.w.WriteHeader(http.StatusOK)
	}
	if err := f.control.SetWriteDeadline(time.Now().Add(writeIdle)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	if _, err := f.w.Write(all); err != nil {
		return 0, err
	}
	return len(p), nil
}
