package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"corpus-git/internal/quantity"
	"corpus-git/project"
)

// EnvPrefix is the prefix of every environment variable that sets a key.
const EnvPrefix = "CORPUS_GIT_"

// field is one key of Config.
type field struct {
	key     string // limits.max_pack_bytes
	index   []int
	typ     reflect.Type
	def     string
	help    string
	oneof   []string
	min     string
	form    string
	restart bool
}

var (
	sizeType     = reflect.TypeFor[Size]()
	durationType = reflect.TypeFor[time.Duration]()
	secretType   = reflect.TypeFor[project.Secret]()
	listType     = reflect.TypeFor[[]string]()
	sinksType    = reflect.TypeFor[Sinks]()
)

// fields lists the keys in the order of the struct. The list is not changed.
var fields = sync.OnceValue(func() []field { return fieldsOf(reflect.TypeFor[Config](), "", nil) })

func fieldsOf(t reflect.Type, prefix string, index []int) []field {
	var out []field
	for i := range t.NumField() {
		f := t.Field(i)
		key, ok := f.Tag.Lookup("key")
		if !ok {
			continue
		}
		at := append(slices.Clone(index), i)
		if f.Type.Kind() == reflect.Struct {
			out = append(out, fieldsOf(f.Type, prefix+key+".", at)...)
			continue
		}
		fd := field{key: prefix + key, index: at, typ: f.Type, def: f.Tag.Get("default"), help: f.Tag.Get("help"),
			min: f.Tag.Get("min"), form: f.Tag.Get("form"), restart: f.Tag.Get("restart") == "yes"}
		if o := f.Tag.Get("oneof"); o != "" {
			fd.oneof = strings.Split(o, ",")
		}
		out = append(out, fd)
	}
	return out
}

// env returns the variable of a key: CORPUS_GIT_LIMITS_MAX_COMMANDS.
func (f field) env() string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(f.key, ".", "_"))
}

// flag returns the flag of a key: limits-max-commands.
func (f field) flag() string { return strings.NewReplacer(".", "-", "_", "-").Replace(f.key) }

// kind describes the type of a value in words.
func (f field) kind() string {
	switch f.typ {
	case sizeType:
		return "size"
	case durationType:
		return "duration"
	case listType:
		return "list"
	case sinksType:
		return "list of sinks"
	case secretType:
		return "text, secret"
	}
	switch f.typ.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "number"
	}
	if len(f.oneof) > 0 {
		return strings.Join(f.oneof, ", ")
	}
	return "text"
}

// parse reads the text of one value. Errors do not quote it. It is long as it has one case for each type of a setting.
func (f field) parse(s string) (reflect.Value, error) {
	out := reflect.New(f.typ).Elem()
	least := func(v, unit int64, show func(int64) string) error {
		if f.min == "" {
			return nil
		}
		if m, err := strconv.ParseInt(f.min, 10, 64); err == nil && v < m*unit {
			return fmt.Errorf("must be at least %s", show(m*unit))
		}
		return nil
	}
	switch f.typ {
	case sizeType:
		n, err := ParseSize(s)
		if err != nil {
			return out, err
		}
		out.SetInt(int64(n))
		return out, least(int64(n), 1, func(n int64) string { return Size(n).String() })
	case durationType:
		d, err := quantity.ParseDuration(s)
		if err != nil {
			return out, err
		}
		out.SetInt(int64(d))
		return out, least(int64(d), int64(time.Second), func(n int64) string { return time.Duration(n).String() })
	case sinksType:
		list, err := parseSinks(s)
		out.Set(reflect.ValueOf(list))
		return out, err
	case listType:
		list := []string{}
		for part := range strings.SplitSeq(s, ",") {
			if part = strings.TrimSpace(part); part != "" {
				list = append(list, part)
			}
		}
		out.Set(reflect.ValueOf(list))
		return out, nil
	}
	switch f.typ.Kind() {
	case reflect.Bool:
		switch strings.ToLower(strings.TrimSpace(s)) {
		case "true", "yes", "on", "1":
			out.SetBool(true)
		case "false", "no", "off", "0":
		default:
			return out, fmt.Errorf("must be true or false")
		}
		return out, nil
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
		if err != nil || f.typ.Kind() == reflect.Int && int64(int(n)) != n {
			return out, fmt.Errorf("must be a whole number")
		}
		out.SetInt(n)
		return out, least(n, 1, func(n int64) string { return strconv.FormatInt(n, 10) })
	}
	if len(f.oneof) > 0 && !slices.Contains(f.oneof, s) {
		return out, fmt.Errorf("must be one of: %s", strings.Join(f.oneof, ", "))
	}
	if f.form == "addr" && s != "" {
		if _, port, err := net.SplitHostPort(s); err != nil || !validPort(port) {
			return out, fmt.Errorf("must be host:port, or :port for all addresses")
		}
	}
	if f.form == "url" && s != "" {
		u, err := url.Parse(s)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Hostname() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
			return out, fmt.Errorf("must be http://HOST or https://HOST, with a port or without, and nothing behind it")
		}
		s = strings.TrimRight(s, "/")
	}
	if f.form == "https" {
		u, err := url.Parse(s)
		if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return out, fmt.Errorf("must be https://HOST/PATH")
		}
	}
	out.SetString(s)
	return out, nil
}

// hostName matches the names that a public certificate may have, except wildcards.
var hostName = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// ParseNetwork reads an IP address, or a network in the form ADDRESS/BITS (RFC 4632).
func ParseNetwork(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		return a.Unmap().Prefix(a.Unmap().BitLen())
	}
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Addr().Is4In6() {
		return p, errors.New("must be an IP address or a network, such as 127.0.0.1, ::1 or 10.0.0.0/8")
	}
	return p.Masked(), nil
}

func validPort(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= 0 && n <= 65535
}

// text returns a value as it would be in the file; secrets are not shown.
func (f field) text(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case Size:
		return x.String()
	case time.Duration:
		return quantity.FormatDuration(x)
	case project.Secret:
		return x.String()
	case []string:
		return strings.Join(x, ", ")
	case Sinks:
		return x.String()
	}
	return fmt.Sprint(v.Interface())
}

// ParseSize reads a number of bytes; see quantity.ParseSize.
func ParseSize(s string) (Size, error) {
	n, err := quantity.ParseSize(s)
	return Size(n), err
}

// String returns the size in the largest unit that divides it.
func (s Size) String() string { return quantity.FormatSize(int64(s)) }
