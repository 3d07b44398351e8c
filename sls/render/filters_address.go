package render

import (
	"fmt"
	"math/big"
	"net/netip"
	"strconv"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/jinja"
)

// address is an address of Python's ipaddress, or an interface if it has a prefix.
type address struct {
	addr netip.Addr
	bits int // of the prefix; -1 for an address
}

// version is 4 or 6.
func (a address) version() int64 {
	if a.addr.Is4() {
		return 4
	}
	return 6
}

// String returns the address as Python writes it: ::ffff:1.2.3.4 has no dots there.
func (a address) String() string {
	s := a.addr.String()
	if a.addr.Is4In6() {
		b := a.addr.As16()
		s = fmt.Sprintf("::ffff:%x:%x", int(b[12])<<8|int(b[13]), int(b[14])<<8|int(b[15]))
	}
	if a.bits >= 0 {
		s += "/" + strconv.Itoa(a.bits)
	}
	return s
}

// parseAddress is ipaddress.ip_address or, if that fails and prefix is true, ip_interface.
func parseAddress(v any, prefix bool) (address, bool) {
	switch x := v.(type) {
	case bool:
		if x {
			return parseAddress(int64(1), prefix)
		}
		return parseAddress(int64(0), prefix)
	case int64:
		if x < 0 {
			return address{}, false
		}
		if x < 1<<32 {
			return address{netip.AddrFrom4([4]byte{byte(x >> 24), byte(x >> 16), byte(x >> 8), byte(x)}), -1}, true
		}
		return parseAddress(big.NewInt(x), prefix)
	case *big.Int:
		var b [16]byte
		if x.Sign() < 0 || x.BitLen() > 128 {
			return address{}, false
		}
		x.FillBytes(b[:])
		return address{netip.AddrFrom16(b), -1}, true
	}
	s, err := text(v)
	if err != nil {
		return address{}, false
	}
	a, err := netip.ParseAddr(s)
	if err == nil {
		return address{a, -1}, true
	}
	host, mask, ok := strings.Cut(s, "/")
	if !prefix || !ok {
		return address{}, false
	}
	if a, err = netip.ParseAddr(host); err != nil {
		return address{}, false
	}
	bits, ok := prefixBits(mask, a)
	return address{a, bits}, ok
}

// prefixBits reads the length of a prefix or, for version 4, a netmask or a host mask.
func prefixBits(mask string, a netip.Addr) (int, bool) {
	if mask != "" && strings.Trim(mask, "0123456789") == "" && len(mask) < 4 {
		n, err := strconv.Atoi(mask)
		return n, err == nil && n <= a.BitLen()
	}
	m, err := netip.ParseAddr(mask)
	if err != nil || !m.Is4() || !a.Is4() {
		return 0, false
	}
	b := m.As4()
	n := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	for bits := range 33 {
		net := ^uint32(0) << (32 - bits)
		if bits == 0 {
			net = 0
		}
		if n == net || n == ^net {
			return bits, true
		}
	}
	return 0, false
}

func within(a netip.Addr, prefixes ...string) bool {
	for _, p := range prefixes {
		n := netip.MustParsePrefix(p)
		if n.Addr().Is4() == a.Is4() && n.Masked().Contains(a.WithZone("")) {
			return true
		}
	}
	return false
}

// private is Python 3.11's is_private, according to the registries of IANA.
func private(a netip.Addr) bool {
	return within(a, "0.0.0.0/8", "10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/29", "192.0.0.170/31",
		"192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", "255.255.255.255/32",
		"::1/128", "::/128", "::ffff:0:0/96", "100::/64", "2001::/23", "2001:2::/48", "2001:db8::/32", "2001:10::/28", "fc00::/7", "fe80::/10")
}

func reserved(a netip.Addr) bool {
	return within(a, "240.0.0.0/4", "::/8", "100::/8", "200::/7", "400::/6", "800::/5", "1000::/4", "4000::/3", "6000::/3", "8000::/3",
		"a000::/3", "c000::/3", "e000::/4", "f000::/5", "f800::/6", "fe00::/9")
}

// fits reports whether an address satisfies all options; those that Salt does not know are ignored.
func (a address) fits(options string) bool {
	for _, o := range strings.Split(options, ",") {
		ok := true
		switch py.Strip(o) {
		case "global", "public":
			ok = !private(a.addr)
		case "link-local", "linklocal", "ll", "link_local":
			ok = within(a.addr, "169.254.0.0/16", "fe80::/10")
		case "loopback", "lo":
			ok = within(a.addr, "127.0.0.0/8", "::1/128")
		case "multicast":
			ok = within(a.addr, "224.0.0.0/4", "ff00::/8")
		case "private":
			ok = private(a.addr)
		case "reserved":
			ok = reserved(a.addr)
		case "site-local", "sl", "site_local":
			ok = within(a.addr, "fec0::/10")
		case "unspecified":
			ok = within(a.addr, "0.0.0.0/32", "::/128")
		}
		if !ok {
			return false
		}
	}
	return true
}

// addressOf returns the address in a value, of that version (0: any) and with the options.
func addressOf(c call, v any, version int64, options any) (address, bool, error) {
	if f, ok := v.(py.Failer); ok {
		return address{}, false, f.Fail()
	}
	a, ok := parseAddress(v, true)
	if !ok || version != 0 && a.version() != version {
		return a, false, c.Ops().Step(10)
	}
	some, err := py.TruthOf(options)
	if err != nil || !some {
		return a, err == nil, err
	}
	s, err := text(options)
	if err != nil {
		return a, false, py.Errorf(py.AttributeError, "'%s' object has no attribute 'split'", py.TypeName(options))
	}
	return a, a.fits(s), c.Ops().Step(50)
}

// chosen returns the addresses of those versions in a list; of any other value it returns one at most, and one is then true.
func chosen(c call, v, options any, versions ...int64) (all []address, one bool, err error) {
	items := []any{v}
	switch v.(type) {
	case string, jinja.Markup:
		one = true
	case *py.List, py.Tuple, py.Iterator:
		if items, err = c.Ops().Slice(v); err != nil {
			return nil, false, err
		}
	default:
		return nil, true, nil
	}
	for _, version := range versions {
		for _, x := range items {
			a, ok, err := addressOf(c, x, version, options)
			if err != nil {
				return nil, false, err
			}
			if ok {
				all = append(all, a)
			}
		}
	}
	return all, one, c.Ops().Alloc(64 * len(all))
}

func addressFilters() map[string]filter {
	is := func(version int64) filter {
		return filter{undefined: decidesItself, required: 1, params: []string{"ip_addr", "options"}, fn: func(c call) (any, error) {
			_, ok, err := addressOf(c, c.a[0], version, c.given(1, nil))
			return ok, err
		}}
	}
	pick := func(versions ...int64) filter {
		return filter{undefined: decidesItself, required: 1, params: []string{"value", "options"}, fn: func(c call) (any, error) {
			all, one, err := chosen(c, c.a[0], c.given(1, nil), versions...)
			if err != nil {
				return nil, err
			}
			return eachAddress(c, all, one, func(a address) (any, error) { return a.String(), nil })
		}}
	}
	each := func(fn func(a address) (any, error)) filter {
		return filter{undefined: decidesItself, required: 1, params: []string{"value", "options", "version"}, fn: func(c call) (any, error) {
			versions := []int64{4, 6}
			if v := c.given(2, nil); v != nil {
				n, err := py.Index(v)
				if err != nil {
					return nil, err
				}
				if n != 0 {
					versions = []int64{n}
				}
			}
			all, one, err := chosen(c, c.a[0], c.given(1, nil), versions...)
			if err != nil || len(all) == 0 {
				return nil, err
			}
			return eachAddress(c, all, one, fn)
		}}
	}
	return map[string]filter{
		"is_ip": is(0), "is_ipv4": is(4), "is_ipv6": is(6),
		"ipv4": pick(4), "ipv6": pick(6), "ipaddr": pick(4, 6),
		"ip_host": each(func(a address) (any, error) {
			if a.bits < 0 {
				a.bits = a.addr.BitLen()
			}
			return a.String(), nil
		}),
		"network_size": each(func(a address) (any, error) { return a.size(), nil }),
		"network_hosts": {undefined: decidesItself, required: 1, params: []string{"value", "options", "version"}, fn: func(c call) (any, error) {
			return each(func(a address) (any, error) { return a.hosts(c) }).fn(c)
		}},
		"filter_by_networks": {required: 2, params: []string{"values", "networks"}, fn: byNetworks},
		"ipwrap":             simple(ipWrap),
	}
}

// eachAddress returns the result of a filter for one address, or the list of it for several.
func eachAddress(_ call, all []address, one bool, fn func(a address) (any, error)) (any, error) {
	out := py.NewList()
	for _, a := range all {
		v, err := fn(a)
		if err != nil {
			return nil, err
		}
		out.Append(v)
	}
	if !one {
		return out, nil
	}
	if out.Len() == 0 {
		return nil, nil
	}
	return out.At(0), nil
}

// size returns the number of addresses in the network of an interface.
func (a address) size() any {
	if a.bits < 0 {
		return int64(1)
	}
	return py.Norm(new(big.Int).Lsh(big.NewInt(1), uint(a.addr.BitLen()-a.bits)))
}

// hosts returns the addresses in the network of an interface, without the network address and, in version 4, the broadcast
// address; a network of one or two addresses has neither.
func (a address) hosts(c call) (any, error) {
	bits, width := a.bits, a.addr.BitLen()
	if bits < 0 {
		bits = width
	}
	if width-bits > 24 {
		return nil, py.Errorf(py.LimitError, "the network is too large to list its hosts")
	}
	n := 1 << (width - bits)
	if err := c.Ops().Alloc(64 * n); err != nil {
		return nil, err
	}
	first := netip.PrefixFrom(a.addr.WithZone(""), bits).Masked().Addr()
	out := py.NewList()
	for i := range n {
		if width-bits < 2 || i > 0 && (i < n-1 || width == 128) {
			out.Append(address{first, -1}.String())
		}
		first = first.Next()
	}
	return out, nil
}

func byNetworks(c call) (any, error) {
	if c.a[1] == nil {
		return c.a[0], nil
	}
	nets, err := c.Ops().Slice(c.a[1])
	if err != nil {
		return nil, err
	}
	var prefixes []netip.Prefix
	for _, n := range nets {
		a, ok := parseAddress(n, true)
		if !ok {
			return nil, py.Errorf(py.ValueError, "this is not an IPv4 or IPv6 network")
		}
		if a.bits < 0 {
			a.bits = a.addr.BitLen()
		}
		p := netip.PrefixFrom(a.addr, a.bits)
		if p.Masked() != p {
			return nil, py.Errorf(py.ValueError, "the network has host bits set")
		}
		prefixes = append(prefixes, p)
	}
	pick := func(v any) (any, error) {
		items, err := c.Ops().Slice(v)
		if err != nil {
			return nil, err
		}
		if err := c.Ops().Alloc(32 * len(items) * len(prefixes)); err != nil {
			return nil, err
		}
		out := py.NewList()
		for _, x := range items {
			for _, p := range prefixes {
				a, ok := parseAddress(x, false)
				if !ok {
					return nil, py.Errorf(py.ValueError, "this is not an IPv4 or IPv6 address")
				}
				if p.Contains(a.addr.WithZone("")) {
					out.Append(x)
				}
			}
		}
		return out, nil
	}
	switch x := c.a[0].(type) {
	case *py.Dict:
		out := py.NewDict()
		for _, e := range x.Items() {
			v, err := pick(e.Value)
			if err != nil {
				return nil, err
			}
			if err := out.Set(e.Key, v); err != nil {
				return nil, err
			}
		}
		return out, nil
	case *py.List, py.Tuple, string, jinja.Markup, *py.Range, py.Bytes:
		return pick(x)
	}
	return nil, py.Errorf(py.ValueError, "do not know how to filter a %s", py.TypeName(c.a[0]))
}

// ipWrap puts brackets around IPv6 addresses, alone or in a list.
func ipWrap(c call) (any, error) {
	wrap := func(v any) (any, error) {
		_, ok, err := addressOf(c, v, 6, nil)
		if err != nil || !ok {
			return v, err
		}
		s, err := c.Ops().Str(v)
		if err != nil {
			return nil, err
		}
		a, ok := parseAddress(s, false)
		if !ok {
			return nil, py.Errorf(py.ValueError, "this is not an IPv4 or IPv6 address")
		}
		return "[" + a.String() + "]", nil
	}
	switch x := c.a[0].(type) {
	case *py.List, py.Tuple:
		items, err := c.Ops().Slice(x)
		if err != nil {
			return nil, err
		}
		out := py.NewList()
		for _, v := range items {
			w, err := wrap(v)
			if err != nil {
				return nil, err
			}
			out.Append(w)
		}
		return out, nil
	}
	return wrap(c.a[0])
}
