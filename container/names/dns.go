package names

import (
	"context"
	"encoding/base64"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/miekg/dns"

	"corpus-git/internal/fault"
)

// DNS is a name server that accepts updates of a zone (RFC 2136), signed with a shared key (RFC 8945).
type DNS struct {
	// Server is HOST:PORT, Zone the name of the zone.
	Server, Zone string
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
func ReadDNS(server, zone, keyFile string) (*DNS, error) {
	d := &DNS{Server: server, Zone: dns.Fqdn(zone)}
	if _, _, err := net.SplitHostPort(server); err != nil {
		d.Server = net.JoinHostPort(server, "53")
	}
	if _, ok := dns.IsDomainName(zone); !ok || zone == "" {
		return nil, fault.New(fault.Usage, "", "%q is not the name of a zone", zone)
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

// Add makes an address the only one of a name in the zone. One that other machines cannot use is fault.Usage.
func (d *DNS) Add(ctx context.Context, name string, a netip.Addr) error {
	a = a.Unmap()
	if a.Zone() != "" || a.IsUnspecified() || a.IsMulticast() {
		return fault.New(fault.Usage, "", "%s is no address at which other machines reach one", a)
	}
	header := dns.RR_Header{Name: d.Full(name), Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: ttl}
	var record dns.RR = &dns.A{Hdr: header, A: a.AsSlice()}
	if a.Is6() {
		header.Rrtype = dns.TypeAAAA
		record = &dns.AAAA{Hdr: header, AAAA: a.AsSlice()}
	}
	m := d.update(name)
	m.Insert([]dns.RR{record})
	return d.send(ctx, m)
}

// Remove removes a name. It is not an error if it does not exist.
func (d *DNS) Remove(ctx context.Context, name string) error { return d.send(ctx, d.update(name)) }

// update returns an update that begins by removing the addresses of a name.
func (d *DNS) update(name string) *dns.Msg {
	m := new(dns.Msg)
	m.SetUpdate(d.Zone)
	for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA} {
		m.RemoveRRset([]dns.RR{&dns.ANY{Hdr: dns.RR_Header{Name: d.Full(name), Rrtype: kind, Class: dns.ClassANY}}})
	}
	return m
}

// send signs an update and sends it.
func (d *DNS) send(ctx context.Context, m *dns.Msg) error {
	m.SetTsig(d.KeyName, d.Algorithm, fudge, time.Now().Unix())
	c := &dns.Client{Net: "tcp", Timeout: dnsTimeout, TsigSecret: map[string]string{d.KeyName: d.Secret}}
	answer, _, err := c.ExchangeContext(ctx, m, d.Server)
	if errors.Is(err, dns.ErrAuth) || errors.Is(err, dns.ErrSig) || errors.Is(err, dns.ErrTime) {
		return fault.New(fault.Failed, "", "the name server %s: %w", d.Server, err).
			WithHint("it has no zone %s, or another key \"%s\" than the file, or its clock differs from this machine's by more than %d s", d.Zone, strings.TrimSuffix(d.KeyName, "."), fudge)
	}
	if err != nil {
		return fault.New(fault.Busy, "", "the name server %s: %w", d.Server, unanswered(err)).WithHint("try again; if it stays so, look whether it runs and takes connections over TCP")
	}
	if answer.Rcode != dns.RcodeSuccess {
		return d.refused(answer.Rcode)
	}
	// RFC 8945, 5.3.2: an answer to a signed request without a signature is not to be believed. The client has verified one that there is.
	if answer.IsTsig() == nil {
		return fault.New(fault.Failed, "", "the name server %s answers without a signature: it may not be the one that has the key, and the update may not have been made", d.Server)
	}
	return nil
}

// refused returns the error for an answer, which RFC 2136, 3.3 to 3.8, and RFC 1035, 4.1.1, define.
func (d *DNS) refused(code int) error {
	err := fault.New(fault.Failed, "", "the name server %s refused the update of %s: %s", d.Server, d.Zone, dns.RcodeToString[code])
	key := strings.TrimSuffix(d.KeyName, ".")
	switch code {
	case dns.RcodeRefused, dns.RcodeNotAuth:
		return err.WithHint("it must have the zone %s as its primary server, and the zone needs  allow-update { key \"%s\"; };  or an update-policy for it", d.Zone, key)
	case dns.RcodeNotZone:
		return err.WithHint("the name is not in the zone %s", d.Zone)
	case dns.RcodeServerFailure:
		return fault.New(fault.Busy, "", "%w", err).WithHint("it could not make the update: its log says why, for example that it cannot write the zone's file or journal")
	}
	return err.WithHint("its log says why")
}
