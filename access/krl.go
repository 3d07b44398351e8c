package access

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"time"

	"golang.org/x/crypto/ssh"
)

// maxRevoked limits the size of a file of revoked keys.
const maxRevoked = 16 << 20

// revocations holds the keys and certificates that must not log in. A nil one revokes nothing.
type revocations struct {
	keys         map[string]bool // by their whole content
	sha1, sha256 map[string]bool
	certificates []revokedOf
}

// revokedOf are certificates of one CA, or of any if ca is empty.
type revokedOf struct {
	ca      []byte
	ranges  [][2]uint64
	bitmaps []bitmap
	ids     map[string]bool
}

type bitmap struct {
	offset uint64
	bits   *big.Int
}

// parseRevocations reads the format of sshd's RevokedKeys: a list of public keys, one a line, or a KRL as ssh-keygen -k makes it.
func parseRevocations(text []byte) (*revocations, error) {
	r := &revocations{keys: map[string]bool{}, sha1: map[string]bool{}, sha256: map[string]bool{}}
	if bytes.HasPrefix(text, []byte(krlMagic)) {
		return r, r.krl(text)
	}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		key, _, _, _, err := ssh.ParseAuthorizedKey(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		r.keys[string(plainKey(key).Marshal())] = true
	}
	return r, nil
}

// krlMagic is the beginning of a KRL: OpenSSH, PROTOCOL.krl, which also defines all of the numbers below.
const krlMagic = "SSHKRL\n\x00"

const (
	krlCertificates = 1
	krlExplicitKey  = 2
	krlSHA1         = 3
	krlSignature    = 4
	krlSHA256       = 5
	krlExtension    = 255

	krlSerialList   = 0x20
	krlSerialRange  = 0x21
	krlSerialBitmap = 0x22
	krlKeyID        = 0x23
	krlCertExt      = 0x39
)

var errKRL = errors.New("the KRL is truncated or damaged")

// wire reads SSH's types (RFC 4251, 5) one after the other; after the first error it returns zeros.
type wire struct {
	b   []byte
	err error
}

func (w *wire) take(n uint64) []byte {
	if w.err != nil || n > uint64(len(w.b)) {
		w.err = errKRL
		return nil
	}
	out := w.b[:n]
	w.b = w.b[n:]
	return out
}

func (w *wire) byte() byte {
	if b := w.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (w *wire) uint64() uint64 {
	if b := w.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (w *wire) string() []byte {
	if b := w.take(4); b != nil {
		return w.take(uint64(binary.BigEndian.Uint32(b)))
	}
	return nil
}

func (w *wire) more() bool { return w.err == nil && len(w.b) > 0 }

func (r *revocations) krl(text []byte) error {
	w := &wire{b: text[len(krlMagic):]}
	if b := w.take(4); b != nil && binary.BigEndian.Uint32(b) != 1 {
		return fmt.Errorf("unknown KRL format %d", binary.BigEndian.Uint32(b))
	}
	w.take(8 + 8 + 8) // its version, when it was made, flags
	w.string()        // reserved
	w.string()        // comment
	for w.more() {
		kind, section := w.byte(), &wire{b: w.string()}
		switch kind {
		case krlCertificates:
			if err := r.krlCertificates(section); err != nil {
				return err
			}
		case krlExplicitKey:
			addAll(section, r.keys)
		case krlSHA1:
			addAll(section, r.sha1)
		case krlSHA256:
			addAll(section, r.sha256)
		case krlSignature: // obsolete: OpenSSH writes none, and no longer checks any
			w.string()
		case krlExtension:
			if err := krlExtensionIn(section); err != nil {
				return err
			}
		default:
			return fmt.Errorf("unknown KRL section type %d", kind)
		}
		w.err = errors.Join(w.err, section.err)
	}
	return w.err
}

func addAll(w *wire, to map[string]bool) {
	for w.more() {
		to[string(w.string())] = true
	}
}

// krlExtensionIn refuses an extension that must be understood.
func krlExtensionIn(w *wire) error {
	name, critical := w.string(), w.byte()
	w.string()
	if critical != 0 {
		return fmt.Errorf("unknown critical KRL extension %q", name)
	}
	return w.err
}

func (r *revocations) krlCertificates(w *wire) error {
	of := revokedOf{ca: w.string(), ids: map[string]bool{}}
	w.string() // reserved
	for w.more() {
		kind, sub := w.byte(), &wire{b: w.string()}
		switch kind {
		case krlSerialList:
			for sub.more() {
				n := sub.uint64()
				of.ranges = append(of.ranges, [2]uint64{n, n})
			}
		case krlSerialRange:
			of.ranges = append(of.ranges, [2]uint64{sub.uint64(), sub.uint64()})
		case krlSerialBitmap:
			of.bitmaps = append(of.bitmaps, bitmap{sub.uint64(), new(big.Int).SetBytes(sub.string())})
		case krlKeyID:
			addAll(sub, of.ids)
		case krlCertExt:
			if err := krlExtensionIn(sub); err != nil {
				return err
			}
		default:
			return fmt.Errorf("unknown KRL certificate section type %d", kind)
		}
		w.err = errors.Join(w.err, sub.err)
	}
	r.certificates = append(r.certificates, of)
	return w.err
}

// has reports whether a key is revoked; for a certificate: itself, its key or its CA.
func (r *revocations) has(key ssh.PublicKey) bool {
	if r == nil {
		return false
	}
	cert, ok := key.(*ssh.Certificate)
	if !ok {
		blob := key.Marshal()
		h1, h256 := sha1.Sum(blob), sha256.Sum256(blob)
		return r.keys[string(blob)] || r.sha1[string(h1[:])] || r.sha256[string(h256[:])]
	}
	if r.has(cert.Key) || r.has(cert.SignatureKey) {
		return true
	}
	ca := cert.SignatureKey.Marshal()
	for _, of := range r.certificates {
		if (len(of.ca) == 0 || bytes.Equal(of.ca, ca)) && of.has(cert) {
			return true
		}
	}
	return false
}

// has reports whether a certificate is revoked. A CA that assigns no serials writes 0, which no list matches (OpenSSH, krl.c).
func (of revokedOf) has(cert *ssh.Certificate) bool {
	if of.ids[cert.KeyId] {
		return true
	}
	n := cert.Serial
	if n == 0 {
		return false
	}
	for _, r := range of.ranges {
		if n >= r[0] && n <= r[1] {
			return true
		}
	}
	for _, b := range of.bitmaps {
		if n >= b.offset && n-b.offset < uint64(b.bits.BitLen()) && b.bits.Bit(int(n-b.offset)) == 1 {
			return true
		}
	}
	return false
}

func plainKey(k ssh.PublicKey) ssh.PublicKey {
	if c, ok := k.(*ssh.Certificate); ok {
		return c.Key
	}
	return k
}

// revokedFile is a file of revoked keys, read again whenever it has changed.
type revokedFile struct {
	path  string
	size  int64
	mtime time.Time
	known *revocations
}

// read returns the current contents of the file. While it can't be read, nobody may log in with a key, as with OpenSSH's sshd.
func (f *revokedFile) read() (*revocations, error) {
	if f.path == "" {
		return nil, nil
	}
	in, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	fi, err := in.Stat()
	if err != nil {
		return nil, err
	}
	if f.known != nil && fi.Size() == f.size && fi.ModTime().Equal(f.mtime) {
		return f.known, nil
	}
	text, err := io.ReadAll(io.LimitReader(in, maxRevoked+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxRevoked {
		return nil, fmt.Errorf("%s: more than %d bytes", f.path, maxRevoked)
	}
	known, err := parseRevocations(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	f.known, f.size, f.mtime = known, fi.Size(), fi.ModTime()
	return known, nil
}
