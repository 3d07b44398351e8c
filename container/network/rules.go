package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// regAddress is the register of the kernel's packet filter for values and addresses. A published address and its port are adjacent, as in the map's values.
const regAddress = unix.NFT_REG_1

// family is a version of IP: where a packet has its addresses, which are as long as the family's, in bytes.
type family struct {
	table       nftables.TableFamily
	proto       uint32
	address     nftables.SetDatatype
	source, dst uint32
	length      uint32
	// regPort is the register behind an address.
	regPort uint32
	// loopback is how an address of the loopback interface begins.
	loopback []byte
	// network is this machine's address in the network of containers, and to a published port's.
	network netip.Prefix
	to      func(Port) netip.AddrPort
}

// ipv4 is that of RFC 791 (3.1), with the loopback addresses of RFC 1122 (3.2.1.3).
func (n Network) ipv4() family {
	return family{
		table: nftables.TableFamilyIPv4, proto: unix.NFPROTO_IPV4, address: nftables.TypeIPAddr, source: 12, dst: 16, length: 4, regPort: unix.NFT_REG32_01,
		loopback: []byte{127}, network: n.Prefix, to: func(p Port) netip.AddrPort { return p.To },
	}
}

// ipv6 is that of RFC 8200 (3), with the loopback address of RFC 4291 (2.5.3).
func (n Network) ipv6() family {
	loopback := netip.IPv6Loopback().As16()
	return family{
		table: nftables.TableFamilyIPv6, proto: unix.NFPROTO_IPV6, address: nftables.TypeIP6Addr, source: 8, dst: 24, length: 16, regPort: unix.NFT_REG32_04,
		loopback: loopback[:], network: n.Prefix6(), to: func(p Port) netip.AddrPort { return p.To6 },
	}
}

// rules replaces the tables in one transaction. For IPv4:
//
//	table ip BRIDGE {
//		map ports { type inet_service : ipv4_addr . inet_service }
//		chain raw         { type filter hook prerouting priority raw;  iifname BRIDGE ip daddr 127/8 drop }
//		chain prerouting  { type nat hook prerouting priority dstnat;  fib daddr type local ip daddr != 127/8 dnat to tcp dport map @ports }
//		chain output      { type nat hook output priority dstnat;      fib daddr type local dnat to tcp dport map @ports }
//		chain postrouting { type nat hook postrouting priority srcnat; ip saddr NETWORK oifname != BRIDGE masquerade; oifname BRIDGE ct status dnat ip saddr NETWORK masquerade; oifname BRIDGE ip saddr 127/8 masquerade }
//		chain forward     { type filter hook forward;                  oifname BRIDGE iifname != BRIDGE ct state established,related accept; ct status dnat accept; drop }
//	}
//
// For IPv6 the same, without what concerns the loopback interface: the kernel sends no packets from ::1 to others. The syntax is that of nftables: nft(8).
func (n Network) rules() error {
	c, err := nftables.New()
	if err != nil {
		return explainRules(err)
	}
	families := []family{n.ipv4()}
	if HasIPv6() {
		families = append(families, n.ipv6())
	}
	for _, f := range families {
		if err := n.add(c, f); err != nil {
			return err
		}
	}
	if err := c.Flush(); err != nil {
		return explainRules(fmt.Errorf("write the rules of %s: %w", n.Bridge, err))
	}
	return nil
}

// add adds the table of a family to a transaction.
func (n Network) add(c *nftables.Conn, f family) error {
	t := &nftables.Table{Family: f.table, Name: n.Bridge}
	// A table must exist to be removed; adding an existing one changes nothing.
	c.AddTable(t)
	c.DelTable(t)
	t = c.AddTable(t)
	ports := &nftables.Set{Table: t, Name: "ports", IsMap: true, KeyType: nftables.TypeInetService, DataType: nftables.MustConcatSetType(f.address, nftables.TypeInetService)}
	var elements []nftables.SetElement
	for _, p := range n.Ports {
		if to := f.to(p); to.IsValid() {
			elements = append(elements, nftables.SetElement{Key: binaryutil.BigEndian.PutUint16(p.Listen), Val: append(append([]byte{}, to.Addr().AsSlice()...), append(binaryutil.BigEndian.PutUint16(to.Port()), 0, 0)...)})
		}
	}
	if err := c.AddSet(ports, elements); err != nil {
		return fmt.Errorf("publish ports: %w", err)
	}
	accept := nftables.ChainPolicyAccept
	chain := func(name string, kind nftables.ChainType, hook *nftables.ChainHook, priority *nftables.ChainPriority, rules ...[]expr.Any) {
		ch := c.AddChain(&nftables.Chain{Name: name, Table: t, Type: kind, Hooknum: hook, Priority: priority, Policy: &accept})
		for _, r := range rules {
			c.AddRule(&nftables.Rule{Table: t, Chain: ch, Exprs: r})
		}
	}
	out := f.publish(ports)
	to, from := n.interfaceIs(expr.MetaKeyOIFNAME, expr.CmpOpEq), n.interfaceIs(expr.MetaKeyIIFNAME, expr.CmpOpEq)
	post := [][]expr.Any{and(f.fromNetwork(), n.interfaceIs(expr.MetaKeyOIFNAME, expr.CmpOpNeq), masquerade()), and(to, published(), f.fromNetwork(), masquerade())}
	if f.table == nftables.TableFamilyIPv4 {
		chain("raw", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, nftables.ChainPriorityRaw, and(from, f.onLoopback(f.dst, expr.CmpOpEq), verdict(expr.VerdictDrop)))
		post = append(post, and(to, f.onLoopback(f.source, expr.CmpOpEq), masquerade()))
	} else {
		out = and(f.onLoopback(f.dst, expr.CmpOpNeq), out)
	}
	chain("prerouting", nftables.ChainTypeNAT, nftables.ChainHookPrerouting, nftables.ChainPriorityNATDest, and(f.onLoopback(f.dst, expr.CmpOpNeq), f.publish(ports)))
	chain("output", nftables.ChainTypeNAT, nftables.ChainHookOutput, nftables.ChainPriorityNATDest, out)
	chain("postrouting", nftables.ChainTypeNAT, nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource, post...)
	into := and(to, n.interfaceIs(expr.MetaKeyIIFNAME, expr.CmpOpNeq))
	chain("forward", nftables.ChainTypeFilter, nftables.ChainHookForward, nftables.ChainPriorityFilter,
		and(into, conntrack(expr.CtKeySTATE, expr.CtStateBitESTABLISHED|expr.CtStateBitRELATED), verdict(expr.VerdictAccept)),
		and(into, published(), verdict(expr.VerdictAccept)), and(into, verdict(expr.VerdictDrop)))
	return nil
}

// removeRules removes the tables. It is not an error if they do not exist.
func (n Network) removeRules() error {
	c, err := nftables.New()
	if err != nil {
		return explain(err)
	}
	for _, f := range []nftables.TableFamily{nftables.TableFamilyIPv4, nftables.TableFamilyIPv6} {
		c.DelTable(&nftables.Table{Family: f, Name: n.Bridge})
		if err := c.Flush(); err != nil && !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.EAFNOSUPPORT) {
			return explain(err)
		}
	}
	return nil
}

// ifname is the longest name of an interface, with a terminating zero (linux/if.h).
const ifname = 16

// and returns a rule of several parts: the first that does not match ends it.
func and(parts ...[]expr.Any) (out []expr.Any) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// interfaceIs compares the interface by which a packet arrives or leaves with the bridge.
func (n Network) interfaceIs(key expr.MetaKey, op expr.CmpOp) []expr.Any {
	name := make([]byte, ifname)
	copy(name, n.Bridge)
	return []expr.Any{&expr.Meta{Key: key, Register: regAddress}, &expr.Cmp{Op: op, Register: regAddress, Data: name}}
}

// fromNetwork matches packets from an address of the network.
func (f family) fromNetwork() []expr.Any {
	own := f.network.Masked().Addr().AsSlice()
	return []expr.Any{
		&expr.Payload{DestRegister: regAddress, Base: expr.PayloadBaseNetworkHeader, Offset: f.source, Len: f.length},
		&expr.Bitwise{SourceRegister: regAddress, DestRegister: regAddress, Len: f.length, Mask: net.CIDRMask(f.network.Bits(), len(own)*8), Xor: make([]byte, f.length)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: regAddress, Data: own},
	}
}

// onLoopback compares the address at an offset with those of the loopback interface.
func (f family) onLoopback(offset uint32, op expr.CmpOp) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: regAddress, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: uint32(len(f.loopback))}, //nolint:gosec // 16 at most
		&expr.Cmp{Op: op, Register: regAddress, Data: f.loopback},
	}
}

// conntrack matches connections in which one of these bits is set.
func conntrack(key expr.CtKey, bits uint32) []expr.Any {
	return []expr.Any{
		&expr.Ct{Key: key, Register: regAddress},
		&expr.Bitwise{SourceRegister: regAddress, DestRegister: regAddress, Len: 4, Mask: binaryutil.NativeEndian.PutUint32(bits), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: regAddress, Data: make([]byte, 4)},
	}
}

// dnatDone is the bit of a connection whose destination was translated (IPS_DST_NAT, linux/netfilter/nf_conntrack_common.h).
const dnatDone = 1 << 5

// published matches connections to published ports.
func published() []expr.Any { return conntrack(expr.CtKeySTATUS, dnatDone) }

func masquerade() []expr.Any { return []expr.Any{&expr.Masq{}} }

func verdict(k expr.VerdictKind) []expr.Any { return []expr.Any{&expr.Verdict{Kind: k}} }

// destinationPort is the offset of the destination port in a TCP header (RFC 9293, 3.1), in bytes.
const destinationPort = 2

// publish translates the destination of packets to a published port at an address of this machine.
func (f family) publish(ports *nftables.Set) []expr.Any {
	return []expr.Any{
		&expr.Fib{Register: regAddress, FlagDADDR: true, ResultADDRTYPE: true},
		&expr.Cmp{Op: expr.CmpOpEq, Register: regAddress, Data: binaryutil.NativeEndian.PutUint32(unix.RTN_LOCAL)},
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: regAddress},
		&expr.Cmp{Op: expr.CmpOpEq, Register: regAddress, Data: []byte{unix.IPPROTO_TCP}},
		&expr.Payload{DestRegister: regAddress, Base: expr.PayloadBaseTransportHeader, Offset: destinationPort, Len: 2},
		&expr.Lookup{SourceRegister: regAddress, DestRegister: regAddress, IsDestRegSet: true, SetName: ports.Name, SetID: ports.ID},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: f.proto, RegAddrMin: regAddress, RegProtoMin: f.regPort, Specified: true},
	}
}
