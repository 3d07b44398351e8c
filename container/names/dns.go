package names

import (
	"context"
	"encoding/base64"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"corpus-git/internal/fault"
)

// DNS is a name server that accepts updates of zones (RFC 2136), signed with a shared key (RFC 8945).
type DNS struct {
	// Server is HOST:PORT, Zone the name of the zone.
	Server, Zone string
	// Reverse are zones below in-addr.arpa and ip6.arpa, in which addresses lead to names; none are set elsewhere.
	Reverse []string
	// KeyName, Secret and Algorithm describe the key; Secret is in base64.
	KeyName, Secret, Algorithm string
}

// The time to live of the names, in seconds, and how long the server may take to answer.
const (
	ttl        = 300
	dnsTimeout = 10 * time.Second
	// fudge is the permitted difference between the clocks, in seconds (RFC 8945, 10).
	fudge = 300
)

// ReadDNS reads a key as tsig-keygen(8) prints it, and checks the other arguments.
func ReadDNS(server, zone, keyFile string, reverse ...string) (*DNS, error) {
	d := &DNS{Server: server, Zone: dns.Fqdn(zone)}
	if _, _, err := net.SplitHostPort(server); err != nil {
		d.Server = net.JoinHostPort(server, "53")
	}
	if _, ok := dns.IsDomainName(zone); !ok || zone == "" {
		return nil, fault.New(fault.Usage, "", "%q is not the name of a zone", zone)
	}
	for _, z := range reverse {
		name := dns.CanonicalName(z)
		if _, ok := dns.IsDomainName(z); !ok || !dns.IsSubDomain("in-addr.arpa.", name) && !dns.IsSubDomain("ip6.arpa.", name) {
			return nil, fault.New(fault.Usage, "", "%q is not the name of a zone of addresses", z).WithHint("such as  2.0.192.in-addr.arpa  for 192.0.2.0/24, or one below  ip6.arpa")
		}
		d.Reverse = append(d.Reverse, name)
	}
	text, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, fault.New(fault.Usage, "", "the key of the name server: %w", err).WithHint("tsig-keygen NAME  makes one")
	}
	words := strings.FieldsFunc(string(text), func(r rune) bool { return strings.ContainsRune(" \t\r\n{};\"", r) })
	for i := 0; i+1 < len(words); i++ {
		switch words[i] {
		case "key":
			d.KeyName = dns.CanonicalName(words[i+1])
		case "algorithm":
			d.Algorithm = dns.CanonicalName(words[i+1])
		case "secret":
			d.Secret = words[i+1]
		}
	}
	if _, err := base64.StdEncoding.DecodeString(d.Secret); err != nil || d.Secret == "" || d.KeyName == "" || d.Algorithm == "" {
		return nil, fault.New(fault.Usage, "", "%s is not a key as tsig-keygen prints it", keyFile)
	}
	return d, nil
}

// Full returns a name with the name of the zone appended.
func (d *DNS) Full(name string) string { return name + "." + d.Zone }

// Add makes addresses the only ones of a name in the zone, and the name the only one of each address that is in a reverse zone; in these, what led from earlier addresses to the name is removed. One that other
// machines cannot use is fault.Usage, and so is a reverse zone that contains none. It may be run again after any error.
func (d *DNS) Add(ctx context.Context, name string, addresses ...netip.Addr) error {
	var records []dns.RR
	empty := slices.Clone(d.Reverse)
	for i, a := range addresses {
		a = a.Unmap()
		if addresses[i] = a; a.Zone() != "" || a.IsUnspecified() || a.IsMulticast() {
			return fault.New(fault.Usage, "", "%s is no address at which other machines reach one", a)
		}
		header := dns.RR_Header{Name: d.Full(name), Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: ttl}
		if a.Is6() {
			header.Rrtype = dns.TypeAAAA
			records = append(records, &dns.AAAA{Hdr: header, AAAA: a.AsSlice()})
		} else {
			records = append(records, &dns.A{Hdr: header, A: a.AsSlice()})
		}
		empty = slices.DeleteFunc(empty, func(z string) bool { return z == d.reverse(a) })
	}
	if len(empty) > 0 {
		return fault.New(fault.Usage, "", "no address of %s is in the zone %s", name, empty[0])
	}
	// First what no longer leads to the name: after an interruption its addresses still say what that is.
	if err := d.forget(ctx, name, addresses); err != nil {
		return err
	}
	m := d.update(name)
	m.Insert(records)
	if err := d.send(ctx, m); err != nil {
		return err
	}
	return d.eachReverse(ctx, addresses, func(m *dns.Msg, at string) {
		m.RemoveRRset([]dns.RR{&dns.ANY{Hdr: dns.RR_Header{Name: at, Rrtype: dns.TypePTR, Class: dns.ClassANY}}})
		m.Insert([]dns.RR{d.pointer(at, name)})
	})
}

// Remove removes a name, and what leads to it in the reverse zones. It is not an error if it does not exist.
func (d *DNS) Remove(ctx context.Context, name string) error {
	if err := d.forget(ctx, name, nil); err != nil {
		return err
	}
	return d.send(ctx, d.update(name))
}

// pointer returns the record that leads from a name of an address to a name in the zone.
func (d *DNS) pointer(at, name string) dns.RR {
	return &dns.PTR{Hdr: dns.RR_Header{Name: at, Rrtype: dns.TypePTR, Class: dns.ClassINET, Ttl: ttl}, Ptr: d.Full(name)}
}

// forget removes what leads from the present addresses of a name, but some, to it.
func (d *DNS) forget(ctx context.Context, name string, but []netip.Addr) error {
	if len(d.Reverse) == 0 {
		return nil
	}
	old, err := d.addresses(ctx, name)
	if err != nil {
		return err
	}
	old = slices.DeleteFunc(old, func(a netip.Addr) bool { return slices.Contains(but, a) })
	return d.eachReverse(ctx, old, func(m *dns.Msg, at string) { m.Remove([]dns.RR{d.pointer(at, name)}) })
}

// eachReverse sends an update to each reverse zone that has some of the addresses.
func (d *DNS) eachReverse(ctx context.Context, addresses []netip.Addr, add func(m *dns.Msg, at string)) error {
	for _, zone := range d.Reverse {
		m := new(dns.Msg)
		m.SetUpdate(zone)
		for _, a := range addresses {
			if d.reverse(a) == zone {
				add(m, reverseName(a))
			}
		}
		if len(m.Ns) == 0 {
			continue
		}
		if err := d.send(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// reverse returns the reverse zone that an address is in, the smallest one, or "".
func (d *DNS) reverse(a netip.Addr) (zone string) {
	for _, z := range d.Reverse {
		if dns.IsSubDomain(z, reverseName(a)) && dns.CountLabel(z) > dns.CountLabel(zone) {
			zone = z
		}
	}
	return zone
}

// reverseName is the name of an address (RFC 1035, 3.5; RFC 3596, 2.5).
func reverseName(a netip.Addr) string {
	name, err := dns.ReverseAddr(a.String())
	if err != nil {
		return "."
	}
	return name
}

// addresses asks for the addresses of a name.
func (d *DNS) addresses(ctx context.Context, name string) (out []netip.Addr, err error) {
	for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA} {
		m := new(dns.Msg)
		m.SetQuestion(d.Full(name), kind)
		answer, err := d.ask(ctx, m)
		if err != nil {
			return nil, err
		}
		if answer.Rcode != dns.RcodeSuccess && answer.Rcode != dns.RcodeNameError {
			return nil, d.refused(m.Question[0].Name, answer.Rcode)
		}
		for _, rr := range answer.Answer {
			var ip net.IP
			switch r := rr.(type) {
			case *dns.A:
				ip = r.A
			case *dns.AAAA:
				ip = r.AAAA
			}
			if a, ok := netip.AddrFromSlice(ip); ok {
				out = append(out, a.Unmap())
			}
		}
	}
	return out, nil
}

// update returns an update that begins by removing the addresses of a name.
func (d *DNS) update(name string) *dns.Msg {
	m := new(dns.Msg)
	m.SetUpdate(d.Zone)
	for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA} {
		m.RemoveRRset([]dns.RR{&dns.ANY{Hdr: dns.RR_Header{Name: d.Full(name), Rrtype: kind, Class: dns.ClassANY}}})
	}
	return m
}

// send sends an update.
func (d *DNS) send(ctx context.Context, m *dns.Msg) error {
	answer, err := d.ask(ctx, m)
	if err == nil && answer.Rcode != dns.RcodeSuccess {
		err = d.refused(m.Question[0].Name, answer.Rcode)
	}
	return err
}

// ask signs a message and sends it. The signature of an answer with success was verified.
func (d *DNS) ask(ctx context.Context, m *dns.Msg) (*dns.Msg, error) {
	zone := m.Question[0].Name
	m.SetTsig(d.KeyName, d.Algorithm, fudge, time.Now().Unix())
	c := &dns.Client{Net: "tcp", Timeout: dnsTimeout, TsigSecret: map[string]string{d.KeyName: d.Secret}}
	answer, _, err := c.ExchangeContext(ctx, m, d.Server)
	if errors.Is(err, dns.ErrAuth) || errors.Is(err, dns.ErrSig) || errors.Is(err, dns.ErrTime) {
		return nil, fault.New(fault.Failed, "", "the name server %s: %w", d.Server, err).
			WithHint("it has no zone %s, or another key \"%s\" than the file, or its clock differs from this machine's by more than %d s", zone, strings.TrimSuffix(d.KeyName, "."), fudge)
	}
	if err != nil {
		return nil, fault.New(fault.Busy, "", "the name server %s: %w", d.Server, unanswered(err)).WithHint("try again; if it stays so, look whether it runs and takes connections over TCP")
	}
	// RFC 8945, 5.3.2: an answer to a signed request without a signature is not to be believed. The client has verified one that there is.
	if (answer.Rcode == dns.RcodeSuccess || answer.Rcode == dns.RcodeNameError) && answer.IsTsig() == nil {
		return nil, fault.New(fault.Failed, "", "the name server %s answers without a signature: it may not be the one that has the key, and the update may not have been made", d.Server)
	}
	return answer, nil
}

// refused returns the error for an answer, which RFC 2136, 3.3 to 3.8, and RFC 1035, 4.1.1, define.
func (d *DNS) refused(zone string, code int) error {
	err := fault.New(fault.Failed, "", "the name server %s refused the update of %s: %s", d.Server, zone, dns.RcodeToString[code])
	key := strings.TrimSuffix(d.KeyName, ".")
	switch code {
	case dns.RcodeRefused, dns.RcodeNotAuth:
		return err.WithHint("it must have the zone %s as its primary server, and the zone needs  allow-update { key \"%s\"; };  or an update-policy for it", zone, key)
	case dns.RcodeNotZone:
		return err.WithHint("the name is not in the zone %s", zone)
	case dns.RcodeServerFailure:
		return fault.New(fault.Busy, "", "%w", err).WithHint("it could not make the update: its log says why, for example that it cannot write the zone's file or journal")
	}
	return err.WithHint("its log says why")
}
