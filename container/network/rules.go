package network

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// The registers of the kernel's packet filter that the rules use: a published address and its port are adjacent, as in the map's values.
const (
	regAddress = unix.NFT_REG_1
	regPort    = unix.NFT_REG32_01
)

// rules replaces the table in one transaction:
//
//	table ip BRIDGE {
//		map ports { type inet_service : ipv4_addr . inet_service }
//		chain prerouting  { type nat hook prerouting priority dstnat;  fib daddr type local ip daddr != 127/8 dnat to tcp dport map @ports }
//		chain output      { type nat hook output priority dstnat;      fib daddr type local ip daddr != 127/8 dnat to tcp dport map @ports }
//		chain postrouting { type nat hook postrouting priority srcnat; ip saddr NETWORK oifname != BRIDGE masquerade; oifname BRIDGE ct status dnat ip saddr NETWORK masquerade }
//		chain forward     { type filter hook forward;                  oifname BRIDGE iifname != BRIDGE ct state established,related accept; ct status dnat accept; drop }
//	}
//
// The syntax is that of nftables: nft(8).
func (n Network) rules() error {
	c, err := nftables.New()
	if err != nil {
		return explain(err)
	}
	t := &nftables.Table{Family: nftables.TableFamilyIPv4, Name: n.Bridge}
	// A table must exist to be removed; adding an existing one changes nothing.
	c.AddTable(t)
	c.DelTable(t)
	t = c.AddTable(t)
	ports := &nftables.Set{Table: t, Name: "ports", IsMap: true, KeyType: nftables.TypeInetService, DataType: nftables.MustConcatSetType(nftables.TypeIPAddr, nftables.TypeInetService)}
	var elements []nftables.SetElement
	for _, p := range n.Ports {
		ip := p.To.Addr().As4()
		elements = append(elements, nftables.SetElement{Key: binaryutil.BigEndian.PutUint16(p.Listen), Val: append(append([]byte{}, ip[:]...), append(binaryutil.BigEndian.PutUint16(p.To.Port()), 0, 0)...)})
	}
	if err := c.AddSet(ports, elements); err != nil {
		return fmt.Errorf("publish ports: %w", err)
	}
	accept := nftables.ChainPolicyAccept
	for name, hook := range map[string]*nftables.ChainHook{"prerouting": nftables.ChainHookPrerouting, "output": nftables.ChainHookOutput} {
		ch := c.AddChain(&nftables.Chain{Name: name, Table: t, Type: nftables.ChainTypeNAT, Hooknum: hook, Priority: nftables.ChainPriorityNATDest, Policy: &accept})
		c.AddRule(&nftables.Rule{Table: t, Chain: ch, Exprs: publish(ports)})
	}
	post := c.AddChain(&nftables.Chain{Name: "postrouting", Table: t, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource, Policy: &accept})
	c.AddRule(&nftables.Rule{Table: t, Chain: post, Exprs: and(n.fromNetwork(), n.interfaceIs(expr.MetaKeyOIFNAME, expr.CmpOpNeq), masquerade())})
	c.AddRule(&nftables.Rule{Table: t, Chain: post, Exprs: and(n.interfaceIs(expr.MetaKeyOIFNAME, expr.CmpOpEq), published(), n.fromNetwork(), masquerade())})
	fwd := c.AddChain(&nftables.Chain{Name: "forward", Table: t, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter, Policy: &accept})
	into := and(n.interfaceIs(expr.MetaKeyOIFNAME, expr.CmpOpEq), n.interfaceIs(expr.MetaKeyIIFNAME, expr.CmpOpNeq))
	c.AddRule(&nftables.Rule{Table: t, Chain: fwd, Exprs: and(into, conntrack(expr.CtKeySTATE, expr.CtStateBitESTABLISHED|expr.CtStateBitRELATED), verdict(expr.VerdictAccept))})
	c.AddRule(&nftables.Rule{Table: t, Chain: fwd, Exprs: and(into, published(), verdict(expr.VerdictAccept))})
	c.AddRule(&nftables.Rule{Table: t, Chain: fwd, Exprs: and(into, verdict(expr.VerdictDrop))})
	if err := c.Flush(); err != nil {
		return explain(fmt.Errorf("write the rules of %s: %w", n.Bridge, err))
	}
	return nil
}

// removeRules removes the table. It is not an error if it does not exist.
func (n Network) removeRules() error {
	c, err := nftables.New()
	if err != nil {
		return explain(err)
	}
	c.DelTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: n.Bridge})
	if err := c.Flush(); err != nil && !errors.Is(err, syscall.ENOENT) {
		return explain(err)
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

// The offsets of addresses in an IPv4 header (RFC 791, 3.1), in bytes, and the first byte of those of the loopback interface (RFC 1122,
// 3.2.1.3).
const (
	sourceAddress      = 12
	destinationAddress = 16
	loopback           = 127
)

// fromNetwork matches packets from an address of the network.
func (n Network) fromNetwork() []expr.Any {
	net := n.Prefix.Masked().Addr().As4()
	mask := ^uint32(0) << (32 - n.Prefix.Bits())
	return []expr.Any{
		&expr.Payload{DestRegister: regAddress, Base: expr.PayloadBaseNetworkHeader, Offset: sourceAddress, Len: 4},
		&expr.Bitwise{SourceRegister: regAddress, DestRegister: regAddress, Len: 4, Mask: binaryutil.BigEndian.PutUint32(mask), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: regAddress, Data: net[:]},
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
func publish(ports *nftables.Set) []expr.Any {
	return []expr.Any{
		&expr.Fib{Register: regAddress, FlagDADDR: true, ResultADDRTYPE: true},
		&expr.Cmp{Op: expr.CmpOpEq, Register: regAddress, Data: binaryutil.NativeEndian.PutUint32(unix.RTN_LOCAL)},
		// An address of the loopback interface cannot be the source of packets that leave by another interface.
		&expr.Payload{DestRegister: regAddress, Base: expr.PayloadBaseNetworkHeader, Offset: destinationAddress, Len: 1},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: regAddress, Data: []byte{loopback}},
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: regAddress},
		&expr.Cmp{Op: expr.CmpOpEq, Register: regAddress, Data: []byte{unix.IPPROTO_TCP}},
		&expr.Payload{DestRegister: regAddress, Base: expr.PayloadBaseTransportHeader, Offset: destinationPort, Len: 2},
		&expr.Lookup{SourceRegister: regAddress, DestRegister: regAddress, IsDestRegSet: true, SetName: ports.Name, SetID: ports.ID},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: regAddress, RegProtoMin: regPort, Specified: true},
	}
}
