package upload

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// filter omits objects from a partial clone. Source: git-rev-list(1), --filter.
type filter struct {
	// blobLimit is the size from which blobs are omitted; MaxInt64 omits none.
	blobLimit int64
	// depth is the depth from which trees and blobs are omitted; MaxInt omits none.
	depth int
	// only is the one type that is sent; AnyObject is every.
	only plumbing.ObjectType
}

func noFilter() filter {
	return filter{blobLimit: math.MaxInt64, depth: math.MaxInt, only: plumbing.AnyObject}
}

// active reports whether anything may be omitted.
func (f filter) active() bool { return f != noFilter() }

func (f *filter) parse(spec string) error {
	bad := func() error { return fmt.Errorf("filter %q is not supported", spec) }
	kind, arg, _ := strings.Cut(spec, ":")
	switch kind {
	case "blob":
		if arg == "none" {
			f.blobLimit = 0
			return nil
		}
		n, ok := strings.CutPrefix(arg, "limit=")
		limit, err := size(n)
		if !ok || err != nil {
			return bad()
		}
		f.blobLimit = min(f.blobLimit, limit)
	case "tree":
		n, err := strconv.ParseUint(arg, 10, 31)
		if err != nil {
			return bad()
		}
		f.depth = min(f.depth, int(n))
	case "object":
		switch strings.TrimPrefix(arg, "type=") {
		case "commit":
			f.only = plumbing.CommitObject
		case "tree":
			f.only = plumbing.TreeObject
		case "blob":
			f.only = plumbing.BlobObject
		case "tag":
			f.only = plumbing.TagObject
		default:
			return bad()
		}
	case "combine":
		if strings.Count(arg, "+") > 8 {
			return bad()
		}
		for sub := range strings.SplitSeq(arg, "+") {
			s, err := url.PathUnescape(sub)
			if err != nil || strings.HasPrefix(s, "combine:") {
				return bad()
			}
			if err := f.parse(s); err != nil {
				return err
			}
		}
	default:
		// sparse:oid= would let a reader probe any object's content as patterns; git's own hosts refuse it too.
		return bad()
	}
	return nil
}

// size reads a number with one of git's units.
func size(s string) (int64, error) {
	unit := int64(1)
	if s != "" {
		switch s[len(s)-1] | 0x20 {
		case 'k':
			unit = 1 << 10
		case 'm':
			unit = 1 << 20
		case 'g':
			unit = 1 << 30
		}
	}
	if unit > 1 {
		s = s[:len(s)-1]
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is not a size", s)
	}
	return n * unit, nil
}

// takes reports whether objects of a type may be sent.
func (f filter) takes(t plumbing.ObjectType) bool {
	return f.only == plumbing.AnyObject || f.only == t
}
